"""Functionary: the name in a tag (3.1), or as the recipient of a message (3.2)."""

from __future__ import annotations

from punchcard.formats.base import Detection, Frame, ToolFormat

FORMATS = (
    ToolFormat(
        name="functionary_v3_1",
        models=("Functionary v3.1", "Llama-3.1 with a custom prompt"),
        begin="<function=",
        between=">",
        end="</function>",
        trigger="named",
        stop=("<|eom_id|>", "<|eot_id|>"),
        detection=Detection(
            template=(("<function=example_function_name>",), ("<function=",)),
            names=("functionary-v3.1", "functionary-small-v3.1", "functionary-medium-v3.1"),
        ),
        system=(
            "You have access to these functions:\n{tools}\nIf you choose to call one, answer with nothing but {example}"
        ),
        result="{content}",
    ),
    ToolFormat(
        name="functionary_v3_2",
        models=("Functionary v3.2",),
        begin=">>>",
        between="\n",
        end="",
        trigger="named",
        text=(Frame(">>>all\n", ""),),
        prefill=">>>",
        stop=("<|eot_id|>",),
        detection=Detection(
            template=((">>>all",), (">>>${recipient}",)),
            names=("functionary-v3.2", "functionary-small-v3.2", "functionary-medium-v3.2"),
        ),
        result="{content}",
    ),
)
