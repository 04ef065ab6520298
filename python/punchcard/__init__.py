"""Punchcard: constrained decoding for language models.

Every name below is loaded when it is first used, so that ``import punchcard`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from punchcard import batch as batch
    from punchcard._core import CancelToken as CancelToken
    from punchcard._core import CompiledGrammar as CompiledGrammar
    from punchcard._core import GrammarMatcher as GrammarMatcher
    from punchcard.agent import Agent as Agent
    from punchcard.agent.hooks import Refusal as Refusal
    from punchcard.agent.replay import ReplayTools as ReplayTools
    from punchcard.agent.transcript import Transcript as Transcript
    from punchcard.batch_matcher import BatchMatcher as BatchMatcher
    from punchcard.bitmask import allocate_token_bitmask as allocate_token_bitmask
    from punchcard.bitmask import apply_token_bitmask_inplace as apply_token_bitmask_inplace
    from punchcard.bitmask import reset_token_bitmask as reset_token_bitmask
    from punchcard.bitmask import token_bitmask_shape as token_bitmask_shape
    from punchcard.chat import Call as Call
    from punchcard.compiler import GrammarCompiler as GrammarCompiler
    from punchcard.ending import is_complete as is_complete
    from punchcard.errors import BudgetError as BudgetError
    from punchcard.errors import BudgetWarning as BudgetWarning
    from punchcard.errors import CancelledError as CancelledError
    from punchcard.errors import GrammarError as GrammarError
    from punchcard.errors import InputTypeError as InputTypeError
    from punchcard.errors import InternalError as InternalError
    from punchcard.errors import InvalidSchemaError as InvalidSchemaError
    from punchcard.errors import LimitError as LimitError
    from punchcard.errors import MatcherError as MatcherError
    from punchcard.errors import PunchcardError as PunchcardError
    from punchcard.errors import UnsatisfiableSchemaError as UnsatisfiableSchemaError
    from punchcard.errors import UnsupportedSchemaError as UnsupportedSchemaError
    from punchcard.extraction import Extractor as Extractor
    from punchcard.extraction import extract as extract
    from punchcard.fields import Field as Field
    from punchcard.grammar import Grammar as Grammar
    from punchcard.limits import Limits as Limits
    from punchcard.mcp import MCPTools as MCPTools
    from punchcard.retrieval import ToolIndex as ToolIndex
    from punchcard.schemas import build_schema as build_schema
    from punchcard.schemas import pydantic_schema as pydantic_schema
    from punchcard.tags import StructuralTag as StructuralTag
    from punchcard.tags import structural_tag as structural_tag
    from punchcard.tokenizers.info import TokenizerInfo as TokenizerInfo
    from punchcard.toolfiles import load_tools as load_tools
    from punchcard.tools import Tool as Tool
    from punchcard.tools import tool as tool

# name -> the module that defines it
_EXPORTS = {
    "Agent": "punchcard.agent",
    "BatchMatcher": "punchcard.batch_matcher",
    "BudgetError": "punchcard.errors",
    "BudgetWarning": "punchcard.errors",
    "Call": "punchcard.chat",
    "CancelToken": "punchcard._core",
    "CancelledError": "punchcard.errors",
    "CompiledGrammar": "punchcard._core",
    "Extractor": "punchcard.extraction",
    "Field": "punchcard.fields",
    "Grammar": "punchcard.grammar",
    "GrammarCompiler": "punchcard.compiler",
    "GrammarError": "punchcard.errors",
    "GrammarMatcher": "punchcard._core",
    "InputTypeError": "punchcard.errors",
    "InternalError": "punchcard.errors",
    "InvalidSchemaError": "punchcard.errors",
    "LimitError": "punchcard.errors",
    "Limits": "punchcard.limits",
    "MCPTools": "punchcard.mcp",
    "MatcherError": "punchcard.errors",
    "PunchcardError": "punchcard.errors",
    "Refusal": "punchcard.agent.hooks",
    "ReplayTools": "punchcard.agent.replay",
    "StructuralTag": "punchcard.tags",
    "TokenizerInfo": "punchcard.tokenizers.info",
    "Tool": "punchcard.tools",
    "ToolIndex": "punchcard.retrieval",
    "Transcript": "punchcard.agent.transcript",
    "UnsatisfiableSchemaError": "punchcard.errors",
    "UnsupportedSchemaError": "punchcard.errors",
    "allocate_token_bitmask": "punchcard.bitmask",
    "apply_token_bitmask_inplace": "punchcard.bitmask",
    "build_schema": "punchcard.schemas",
    "extract": "punchcard.extraction",
    "is_complete": "punchcard.ending",
    "load_tools": "punchcard.toolfiles",
    "pydantic_schema": "punchcard.schemas",
    "reset_token_bitmask": "punchcard.bitmask",
    "structural_tag": "punchcard.tags",
    "token_bitmask_shape": "punchcard.bitmask",
    "tool": "punchcard.tools",
}

# modules that are used under their own name
_MODULES = ("batch",)

__all__ = sorted([*_EXPORTS, *_MODULES])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("punchcard")
    if name in _MODULES:
        return importlib.import_module(f"punchcard.{name}")
    try:
        module = importlib.import_module(_EXPORTS[name])
    except KeyError:
        raise AttributeError(f"module 'punchcard' has no attribute {name!r}") from None
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
