"""Does the profile ``spec`` admit every spelling of every valid document of MaskBench's schemas?

    python benchmarks/maskbench_complete.py [--documents 5] [--sample 300] [--part 0/8] [--rows FILE] [--verbose]

The documents are MaskBench's valid instances, and some that hypothesis-jsonschema draws from each schema and both
jsonschema and jsonschema-rs accept. Each is spelled anew, with members in another order, white space between tokens,
numbers with needless digits or exponents and ``\\u`` escapes, and must get through the masks byte by byte. One that
does not is spelled plainly again, which tells a refused value from a refused spelling. ``--rows`` keeps each refusal
with its text and the offset where it ended.

Needs hypothesis-jsonschema besides what the tests need. Its release 0.23.1 wants a Hypothesis of 2024, 6.122 say.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import hypothesis
import hypothesis_jsonschema
from hypothesis import HealthCheck, Phase
from maskbench_cases import Row, Validators, add_arguments, run

import punchcard
from punchcard import CompiledGrammar, GrammarCompiler, GrammarMatcher, PunchcardError, TokenizerInfo

END = 256
COMPILER = GrammarCompiler(
    TokenizerInfo.from_vocab([bytes([i]) for i in range(256)], eos_token_ids=[END], vocab_size=257), cache_enabled=False
)


class Speller:
    """Spells documents as JSON, differently each time."""

    def __init__(self, rng: random.Random, by_value: bool) -> None:
        self._rng, self._by_value = rng, by_value

    def spell(self, value: Any) -> str:
        return self._space() + self._value(value) + self._space()

    def _value(self, value: Any) -> str:
        if isinstance(value, dict):
            pairs = [(self._string(name), self._value(member)) for name, member in value.items()]
            self._rng.shuffle(pairs)
            return self._between("{", [f"{n}{self._space()}:{self._space()}{m}" for n, m in pairs], "}")
        if isinstance(value, list):
            return self._between("[", [self._value(item) for item in value], "]")
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, bool) or value is None:
            return json.dumps(value)
        return self._number(value)

    def _between(self, opening: str, parts: list[str], closing: str) -> str:
        return opening + ",".join(self._space() + part + self._space() for part in parts or [""]) + closing

    def _space(self) -> str:
        return "".join(self._rng.choices(" \t\n\r", k=self._rng.choice([0, 0, 0, 1, 3])))

    def _string(self, text: str) -> str:
        return '"' + "".join(map(self._character, text)) + '"'

    def _character(self, char: str) -> str:
        if self._rng.random() < 0.8:
            return json.dumps(char, ensure_ascii=False)[1:-1]
        if char in '"\\/':
            return "\\" + char
        units = char.encode("utf-16-be").hex()
        units = units.upper() if self._rng.random() < 0.5 else units
        return "".join("\\u" + units[i : i + 4] for i in range(0, len(units), 4))

    def _number(self, value: float) -> str:
        exact = Decimal(repr(value))
        plain = f"{exact:f}"
        if isinstance(value, int) and not self._by_value:
            return plain
        others = [plain, plain, plain + ("0" if "." in plain else ".0")]
        if exact:
            others += [f"{plain}e0", f"{exact.scaleb(-2):f}E+02"]
        return self._rng.choice(others)


def refused_at(grammar: CompiledGrammar, text: str) -> int | None:
    """The offset of the byte that the mask does not let pass; None if all pass, and the end."""
    matcher, bitmask = GrammarMatcher(grammar), punchcard.allocate_token_bitmask(1, 257)
    for offset, token in enumerate([*text.encode(), END]):
        matcher.fill_next_token_bitmask(bitmask)
        if not int(bitmask[0, token >> 5]) >> (token & 31) & 1:
            return offset
        matcher.accept_token(token)
    return None


def drawn(schema: Any, count: int, seconds: float) -> tuple[list[Any], str | None]:
    """Documents that hypothesis-jsonschema draws from a schema in the time given, and why there are no more."""
    documents: list[Any] = []
    if count == 0:
        return documents, None
    try:
        with deadline(seconds):
            strategy = hypothesis_jsonschema.from_schema(schema)

            @hypothesis.settings(
                max_examples=count,
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @hypothesis.given(strategy)
            def draw(document: Any) -> None:
                documents.append(document)

            draw()
    except BaseException as error:  # time, what the library cannot handle, and what it raises on odd schemas
        if isinstance(error, KeyboardInterrupt):
            raise
        return documents, f"{type(error).__name__}: {error}"[:150]
    return documents, None


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"over {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check(case: Row, args: argparse.Namespace) -> Row:
    """All documents of one schema."""
    schema, started = case["schema"], time.perf_counter()
    row: Row = {"id": case["id"], "outcomes": Counter(), "faults": []}
    try:
        grammar = COMPILER.compile_json_schema(schema, profile="spec")
    except PunchcardError as error:
        return row | {"refused": f"{type(error).__name__}: {error}"[:300]}
    rng = random.Random(f"{args.seed} {case['id']}")
    # In draft 4 an integer is what is spelled without a fraction.
    dialect = schema.get("$schema", "") if isinstance(schema, dict) else ""
    by_value = not any(draft in str(dialect) for draft in ("draft-03", "draft-04"))
    validators, speller = Validators(schema), Speller(rng, by_value)
    documents = [("given", test["data"]) for test in case["tests"] if test["valid"]]
    more, row["no_more"] = drawn(schema, args.documents, args.draw_limit)
    documents += [("drawn", document) for document in more]
    for source, document in documents:
        try:
            plain = json.dumps(document, ensure_ascii=False, allow_nan=False)
            text = speller.spell(document)
            if source == "drawn" and validators.objections(plain):
                row["outcomes"]["drawn, invalid"] += 1
                continue
            offset = refused_at(grammar, text)
            if offset is None:
                row["outcomes"][f"{source}, admitted"] += 1
                continue
            kind = "spelling" if refused_at(grammar, plain) is None else "value"
            fault = {"kind": kind, "text": text, "offset": offset, **validators.objections(plain)}
        except UnicodeEncodeError:
            row["outcomes"]["half a surrogate pair"] += 1
            continue
        except Exception as error:
            kind, fault = (
                "crash",
                {"kind": "crash", "text": repr(document), "detail": f"{type(error).__name__}: {error}"},
            )
        row["outcomes"][f"{source}, {kind} refused" if kind != "crash" else "crash"] += 1
        row["faults"].append(fault | {"source": source})
    row["seconds"] = round(time.perf_counter() - started, 3)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--documents", type=int, default=5, help="documents to draw from each schema")
    parser.add_argument("--draw-limit", type=float, default=5, help="seconds for drawing them")
    parser.add_argument("--verbose", action="store_true", help="print every refusal")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = run(lambda case: check(case, args), args)
    outcomes: Counter[str] = Counter()
    for row in rows:
        outcomes.update(row.get("outcomes", {}))
        for fault in row.get("faults", []) if args.verbose else []:
            print(row["id"], json.dumps(fault, ensure_ascii=False))
    print(f"{len(rows)} schemas, {outcomes.total()} documents: {dict(outcomes.most_common())}")
    for kind in ("refused", "no_more", "slow", "died"):
        ids = [row["id"] for row in rows if row.get(kind)]
        print(f"{kind}: {len(ids)} {' '.join(ids[:40])}")


if __name__ == "__main__":
    main()
