"""Phi-4-mini in its own layout, and the one that FireFunction and others prompt for."""

from __future__ import annotations

from punchcard.formats.base import Detection, ToolFormat

FORMATS = (
    ToolFormat(
        name="phi4_mini",
        models=("Phi-4-mini-instruct", "Phi-4-multimodal"),
        section_begin="<|tool_call|>[",
        begin='{"name": "',
        between='", "arguments": ',
        end="}",
        separator=", ",
        section_end="]<|/tool_call|>",
        call_keys=("name", "arguments"),
        markers=("<|tool|>", "<|/tool|>", "<|tool_call|>", "<|/tool_call|>", "<|tool_response|>"),
        stop=("<|end|>",),
        confidence="medium",
        unsure="how results go back, and whether the marks are special tokens",
        detection=Detection(
            template=(("<|tool|>", "<|/tool|>"),), tokens=("<|/tool_call|>",), names=("phi-4-mini", "phi-4-multimodal")
        ),
        shown="list",
        system="You are a helpful assistant with some tools.<|tool|>{tools}<|/tool|>",
        result="<|tool_response|>{content}",
    ),
    ToolFormat(
        name="functools",
        models=("FireFunction-v2", "Phi-4-mini (vLLM's template)"),
        section_begin="functools[",
        begin='{"name": "',
        between='", "arguments": ',
        end="}",
        separator=", ",
        section_end="]",
        call_keys=("name", "arguments"),
        trigger="named",
        stop=("<|end|>", "<|eot_id|>"),
        detection=Detection(template=(("functools[",), ("functools",)), names=("firefunction",)),
        shown="list",
        system="You have access to these functions:\n{tools}\nTo call some, answer with {example}",
        result="{content}",
    ),
)
