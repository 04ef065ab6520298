"""XGrammar's names over Punchcard, as serving engines use them: ``import punchcard.compat.xgrammar as xgr``.

Names, arguments and defaults follow XGrammar 0.2.9. Where the two differ in what they admit, Punchcard's rule holds:

- A keyword of a JSON Schema is enforced or refused, never ignored. Errors are those of `punchcard.errors`.
- Of ``separators``, ``(", ", ": ")`` and ``(",", ":")`` are known; others, and ``indent``, are refused.
- ``any_order=True`` still wants every required property, and each property once.
- Special tokens that the tokenizer names are never matched by text that looks like them.
- `apply_token_bitmask_inplace` without ``vocab_size`` masks the logits beyond the bitmask too, as no token has them.

`NOT_COVERED` lists what there is not; using it raises `NotCoveredError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import PunchcardError
from . import exception, structural_tag, testing
from .compiler import CompiledGrammar, GrammarCompiler
from .exception import (
    DeserializeFormatError,
    DeserializeVersionError,
    InvalidJSONError,
    InvalidStructuralTagError,
    NotCoveredError,
)
from .grammar import Grammar, get_serialization_version
from .matcher import (
    BatchGrammarMatcher,
    GrammarMatcher,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    get_bitmask_shape,
    reset_token_bitmask,
)
from .structural_tag import StructuralTag, StructuralTagItem
from .tokenizer_info import TokenizerInfo, VocabType

if TYPE_CHECKING:
    bitmask_dtype: Any

#: Names and options of XGrammar that are not covered, and what to use instead.
NOT_COVERED: dict[str, str] = {
    "get_model_structural_tag": "Build the tag from the formats, or use punchcard.formats",
    "get_builtin_structural_tag": "Build the tag from the formats, or use punchcard.formats",
    "register_model_structural_tag": "Build the tag from the formats, or use punchcard.formats",
    "normalize_tool_choice": "Build the tag from the formats, or use punchcard.formats",
    "hf": "Fill and apply the bitmask in a logits processor of your own",
    "contrib": "Fill and apply the bitmask in a logits processor of your own",
    "get_max_recursion_depth": "Depth is bounded by punchcard.Limits",
    "set_max_recursion_depth": "Depth is bounded by punchcard.Limits",
    "max_recursion_depth": "Depth is bounded by punchcard.Limits",
    "from_json_schema(indent=...)": "Leave it out",
    "from_json_schema(separators=...) other than (',', ':')": "Leave it out",
    "from_json_schema(print_converted_ebnf=True)": "print(grammar)",
    "from_lark(named_grammars=...)": "Write the rules into one grammar",
    "GrammarMatcher(default_temperature=...)": "Choose the temperature in the sampler",
    "GrammarMatcher.get_captures": "Use the events of punchcard.GrammarMatcher",
    "BatchGrammarMatcher.batch_fill_temperature": "Choose the temperature in the sampler",
    "traverse_draft_tree(temperatures=...)": "Choose the temperature in the sampler",
    "json_schema styles cohere_xml, minimax_m3_xml, gemma": "Write the format as an EBNF grammar",
}

__all__ = [
    "NOT_COVERED",
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "DeserializeFormatError",
    "DeserializeVersionError",
    "Grammar",
    "GrammarCompiler",
    "GrammarMatcher",
    "InvalidJSONError",
    "InvalidStructuralTagError",
    "NotCoveredError",
    "PunchcardError",
    "StructuralTag",
    "StructuralTagItem",
    "TokenizerInfo",
    "VocabType",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "exception",
    "get_bitmask_shape",
    "get_serialization_version",
    "reset_token_bitmask",
    "structural_tag",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name == "bitmask_dtype":
        import torch

        return torch.int32
    if name in NOT_COVERED:
        raise NotCoveredError(f"xgrammar.{name} is not covered", hint=NOT_COVERED[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
