"""How often does the profile ``generate`` mask the natural next token of a valid document, and what masks it?

    python benchmarks/maskbench_spellings.py [--sample 300] [--part 0/8] [--rows FILE] [--output FILE]

The documents are MaskBench's valid instances, spelled as the libraries spell them that wrote most JSON there is:
Python's ``json.dumps`` (as it comes, without ``ensure_ascii``, compact, indented), PHP's ``json_encode`` and
JavaScript's ``JSON.stringify``. Each goes through the grammar byte by byte, so the figures hold for every tokenizer: a
token is masked exactly if one of its bytes is. A document that ends early is tried again with one option after the
other set as the profile ``spec`` has it; the first with which it gets through is the cause.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from maskbench_cases import Row, add_arguments, run

from punchcard import CompiledGrammar, GrammarCompiler, GrammarMatcher, PunchcardError, TokenizerInfo

COMPILER = GrammarCompiler(
    TokenizerInfo.from_vocab([bytes([i]) for i in range(256)], eos_token_ids=[256], vocab_size=257), cache_enabled=False
)

#: Causes, and the options without which they are none.
CAUSES: dict[str, dict[str, Any]] = {
    "order of members": {"property_order": "any"},
    "white space": {"whitespace": "any", "outer_whitespace": True},
    "digits of numbers": {"number_digits": "any"},
    "spelling of numbers": {"number_spelling": "any"},
    "formats": {"assert_formats": False},
    "order and numbers": {"property_order": "any", "number_spelling": "any"},
    "order and formats": {"property_order": "any", "assert_formats": False},
    "something else": {"profile": "spec", "assert_formats": False},
}


def php(value: Any) -> str:
    """As PHP's ``json_encode``: slashes and all beyond ASCII escaped, exponents like ``1.0e-7``."""
    return written(value, php_number, lambda text: json.dumps(text).replace("/", r"\/"))


def php_number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent):+d}"


def javascript(value: Any) -> str:
    """As JavaScript's ``JSON.stringify``: whole numbers without a point, exponents from 1e21 and below 1e-6."""
    return written(value, javascript_number, lambda text: json.dumps(text, ensure_ascii=False))


def javascript_number(value: float) -> str:
    value = float(value)
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "null"
    text = f"{value!r}"
    if 1e-6 <= abs(value) < 1e21:
        text = f"{Decimal(text):f}"
        return text.removesuffix(".0")
    mantissa, exponent = text.split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+d}"


def written(value: Any, number: Callable[[float], str], string: Callable[[str], str]) -> str:
    """Compact JSON."""
    if isinstance(value, dict):
        members = (f"{string(name)}:{written(member, number, string)}" for name, member in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(item, number, string) for item in value) + "]"
    if isinstance(value, str):
        return string(value)
    return json.dumps(value) if isinstance(value, bool) or value is None else number(value)


SPELLINGS: dict[str, Callable[[Any], str]] = {
    "json.dumps": json.dumps,
    "json.dumps, ensure_ascii=False": lambda value: json.dumps(value, ensure_ascii=False),
    "json.dumps, compact": lambda value: json.dumps(value, separators=(",", ":")),
    "json.dumps, indent=2": lambda value: json.dumps(value, indent=2),
    "json.dumps, indent=4": lambda value: json.dumps(value, indent=4, ensure_ascii=False),
    "json_encode (PHP)": php,
    "JSON.stringify (JavaScript)": javascript,
}


def refused_at(grammar: CompiledGrammar, text: str) -> int | None:
    """The offset of the byte with which the grammar does not go on; None if all of the text is admitted."""
    matcher = GrammarMatcher(grammar)
    data = text.encode()
    if matcher.accept_string(data):
        return None if matcher.is_accepting() else len(data)
    low, high = 0, len(data)
    while high - low > 1:
        middle = (low + high) // 2
        matcher = GrammarMatcher(grammar)
        low, high = (middle, high) if matcher.accept_string(data[:middle]) else (low, middle)
    return low


def check(case: Row) -> Row:
    """All documents of one schema, in all spellings."""
    schema = case["schema"]
    row: Row = {"id": case["id"], "documents": Counter(), "faults": []}
    grammars: dict[str, CompiledGrammar] = {}

    def grammar(cause: str) -> CompiledGrammar:
        if cause not in grammars:
            grammars[cause] = COMPILER.compile_json_schema(schema, **CAUSES.get(cause, {}))
        return grammars[cause]

    for test in case["tests"]:
        if not test["valid"]:
            continue
        for name, spell in SPELLINGS.items():
            try:
                text = spell(test["data"])
                text.encode()
                offset = refused_at(grammar("generate"), text)
                row["documents"][name] += 1
                if offset is None:
                    continue
                free = (cause for cause in CAUSES if refused_at(grammar(cause), text) is None)
                cause = next(free, "a value that is refused")
            except UnicodeEncodeError:
                continue
            except PunchcardError as error:
                return row | {"refused": f"{type(error).__name__}: {error}"[:300]}
            shown = text.encode()[max(0, offset - 40) : offset + 20].decode(errors="replace")
            row["faults"].append({"spelling": name, "cause": cause, "offset": offset, "around": shown})
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--output", type=Path, help="the figures as JSON")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    documents: Counter[str] = Counter()
    causes: dict[str, Counter[str]] = defaultdict(Counter)
    for row in run(check, args):
        documents.update(row.get("documents", {}))
        for fault in row.get("faults", []):
            causes[fault["spelling"]][fault["cause"]] += 1
    names = [name for name in [*CAUSES, "a value that is refused"] if any(causes[s][name] for s in SPELLINGS)]
    print(f"| spelling | documents | masked | {' | '.join(names)} |")
    print("|---|" + "---:|" * (len(names) + 2))
    for spelling in SPELLINGS:
        counts = causes[spelling]
        cells = " | ".join(str(counts[name]) for name in names)
        print(f"| `{spelling}` | {documents[spelling]:,} | {counts.total():,} | {cells} |")
    if args.output:
        figures = {s: {"documents": documents[s], "masked": dict(causes[s])} for s in SPELLINGS}
        args.output.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
