"""What importing the package loads, and what it leaves until it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

OPTIONAL = ["torch", "transformers", "tokenizers", "tiktoken", "sentencepiece", "triton", "railroad"]
OPTIONAL += ["bm25s", "snowballstemmer", "openai", "pyarrow", "ray"]
OPTIONAL += ["llama_cpp", "mlx", "mlx_lm", "vllm", "sglang"]
OPTIONAL += ["fastapi", "starlette", "uvicorn", "prometheus_client"]
OF_TOOLS = ["pydantic", "pydantic_core", "jinja2", "docstring_parser", "click", "tqdm"]


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import punchcard", [*OPTIONAL, *OF_TOOLS, "numpy", "json", "punchcard._core"]),
        (
            "from punchcard import CompiledGrammar, Grammar, GrammarCompiler, GrammarMatcher, Limits, TokenizerInfo",
            [*OPTIONAL, *OF_TOOLS, "numpy"],
        ),
        ("from punchcard import BatchMatcher, allocate_token_bitmask", [*OPTIONAL, *OF_TOOLS]),
        ("from punchcard import StructuralTag", [*OPTIONAL, "jinja2", "docstring_parser", "click", "tqdm"]),
        ("from punchcard import Tool, build_schema, tool", [*OPTIONAL, "jinja2", "docstring_parser", "click", "tqdm"]),
        ("from punchcard import *", OPTIONAL),
        ("import punchcard.models", OPTIONAL),
        ("import punchcard.models.transformers, punchcard.models.llama_cpp, punchcard.models.mlx", OPTIONAL),
        ("import punchcard.models.remote, punchcard.models.vllm, punchcard.models.sglang", OPTIONAL),
    ],
)
def test_an_import_loads_what_it_needs(statement: str, absent: list[str]) -> None:
    code = f"import sys\n{statement}\nprint(*set({absent!r}).intersection(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_every_name_can_be_imported() -> None:
    code = "import punchcard\nfor name in punchcard.__all__: getattr(punchcard, name)\nprint(len(punchcard.__all__))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) > 20
