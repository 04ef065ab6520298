"""Mistral: one list of calls up to version 7 of its tokenizer, a mark for each call from version 11 on."""

from __future__ import annotations

from punchcard.formats.base import ID9, Detection, Frame, ToolFormat, Variant

FORMATS = (
    ToolFormat(
        name="mistral_v3_v7",
        models=(
            "Mistral-7B-Instruct-v0.3",
            "Mixtral-8x22B",
            "Mistral-Nemo",
            "Mistral-Large-2407, 2411",
            "Mistral-Small-3.0, 3.1",
        ),
        section_begin="[TOOL_CALLS][",
        begin='{"name": "',
        between='", "arguments": ',
        end=f', "id": "{ID9}"}}',
        separator=", ",
        section_end="]",
        call_id=ID9,
        call_keys=("name", "arguments"),
        markers=("[TOOL_CALLS]",),
        stop=("</s>",),
        detection=Detection(
            template=(("[TOOL_CALLS]", "[AVAILABLE_TOOLS]"), ("[TOOL_CALLS] [",), ("[TOOL_CALLS][",)),
            names=(
                "mistral-7b-instruct-v0.3",
                "mistral-nemo",
                "ministral-8b",
                "mixtral-8x22b",
                "mistral-large-24",
                "mistral-small-3.0",
                "mistral-small-3.1",
                "mistral-small-24b",
            ),
        ),
        shown="list",
        system="[AVAILABLE_TOOLS]{tools}[/AVAILABLE_TOOLS]",
        result="[TOOL_RESULTS]{content}[/TOOL_RESULTS]",
    ),
    ToolFormat(
        name="mistral_v11",
        models=("Mistral-Small-3.2-2506", "Magistral-2506", "Mistral-Medium"),
        begin="[TOOL_CALLS]",
        between=f"[CALL_ID]{ID9}[ARGS]",
        end="",
        call_id=ID9,
        # Without an id in the history; and with the marks hidden by a decoder.
        variants=(Variant("[TOOL_CALLS]", "[ARGS]", ""), Variant("[TOOL_CALLS]", "", "")),
        reasoning=(Frame("<think>\n", "\n</think>\n"),),
        markers=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
        stop=("</s>",),
        unsure="which releases have version 11 and which 13",
        detection=Detection(
            template=(("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[AVAILABLE_TOOLS]"), ("[CALL_ID]",)),
            names=(
                "mistral-small-3.2",
                "magistral-2506",
                "magistral-small-2506",
                "magistral-medium-2506",
                "mistral-medium",
            ),
        ),
        shown="list",
        system="[AVAILABLE_TOOLS]{tools}[/AVAILABLE_TOOLS]",
        result="[TOOL_RESULTS]{id}[TOOL_CONTENT]{content}[/TOOL_RESULTS]",
    ),
    ToolFormat(
        name="mistral_v13_v15",
        models=("Devstral-2507 and later", "Magistral-2507, 2509", "Ministral-3", "Mistral-Large-3", "Mistral-Small-4"),
        begin="[TOOL_CALLS]",
        between="[ARGS]",
        end="",
        variants=(Variant("[TOOL_CALLS]", "", ""),),
        reasoning=(Frame("[THINK]", "[/THINK]"),),
        markers=("[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"),
        stop=("</s>",),
        detection=Detection(
            template=(("[TOOL_CALLS]", "[ARGS]", "[AVAILABLE_TOOLS]"), ("[TOOL_CALLS]", "[ARGS]")),
            names=("devstral", "magistral", "ministral-3", "mistral-large-3", "mistral-small-4"),
        ),
        shown="list",
        system="[AVAILABLE_TOOLS]{tools}[/AVAILABLE_TOOLS]",
        result="[TOOL_RESULTS]{content}[/TOOL_RESULTS]",
    ),
)
