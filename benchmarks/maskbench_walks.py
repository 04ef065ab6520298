"""Does every random walk through the masks of every MaskBench schema end in a valid document?

    python benchmarks/maskbench_walks.py [--walks 5] [--sample 300] [--part 0/8] [--rows FILE] [--verbose]

A walk takes allowed tokens of the Llama 3 vocabulary, first at random, then those of `find_completion`. Its document is
judged by jsonschema and jsonschema-rs, formats asserted. Printed are the walks by outcome:

- valid: it ended, and both validators accept the document;
- dead end: no token was allowed; crash: an exception; mask: mask and ``accept_token`` disagreed about some token;
- leap second: jsonschema refuses second 60, which Python's datetime does not have, and jsonschema-rs accepts it;
- invalid: both validators refuse the document; disputed: one does; unfinished: no end within 10,000 tokens;

and the schemas that were refused, took too long, or ended the process. ``--rows`` keeps every fault with its document.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import re
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
from maskbench_cases import Row, Validators, add_arguments, no_name_twice, run

import punchcard
from punchcard import GrammarCompiler, GrammarMatcher, PunchcardError, TokenizerInfo

LONGEST = 10_000
FREE = (0, 5, 20, 60)


class Fault(Exception):
    """A walk that did not end well: the kind, and the text so far."""


class Walker:
    """Walks through compiled schemas over one vocabulary."""

    def __init__(self, ranks: dict[bytes, int]) -> None:
        n = len(ranks)
        tokens = [*sorted(ranks, key=ranks.__getitem__), *(f"<|special_{i}|>".encode() for i in range(256))]
        self.tokens, self.ids = tokens, ranks
        self.info = TokenizerInfo.from_vocab(tokens, eos_token_ids=[n + 9], special_token_ids=range(n, n + 256))
        self.end = n + 9
        self.compiler = GrammarCompiler(self.info, cache_enabled=False)
        self._bitmask = punchcard.allocate_token_bitmask(1, len(tokens))
        self._longest = max(map(len, ranks))

    def walk(self, grammar: Any, rng: random.Random) -> str:
        """The document of a walk: tokens by chance, now and then one on the way to an end, and then all of that way."""
        matcher, text, plan = GrammarMatcher(grammar), bytearray(), b""
        free = rng.choice(FREE)
        for step in range(LONGEST):
            mask = self._mask(matcher)
            if not mask.any():
                raise Fault("dead end", bytes(text))
            if step <= free:
                plan = matcher.find_completion() if step == free or rng.random() < 0.3 else b""
            if mask[self.end] and ((step >= free and not plan) or rng.random() < 0.1):
                token = self.end
            elif plan:
                token = self._planned(mask, plan)
                plan = plan[len(self.tokens[token]) :]
            else:
                token = self._any(mask, rng)
            other = rng.randrange(len(self.tokens))
            if matcher.fork().accept_token(other) != mask[other]:
                raise Fault("mask", bytes(text), f"token {other} {self.tokens[other]!r}: mask {mask[other]}")
            if token < 0 or not matcher.accept_token(token):
                raise Fault("mask", bytes(text), f"token {token}: on the way to an end, or allowed, and not accepted")
            if token == self.end:
                return text.decode()
            text += self.tokens[token]
        raise Fault("unfinished", bytes(text))

    def _mask(self, matcher: GrammarMatcher) -> np.ndarray:
        matcher.fill_next_token_bitmask(self._bitmask)
        bits = np.unpackbits(self._bitmask[0].view(np.uint8), bitorder="little")
        return bits[: len(self.tokens)].astype(bool)

    def _any(self, mask: np.ndarray, rng: random.Random) -> int:
        for _ in range(20):
            if mask[token := rng.randrange(len(mask))]:
                return token
        return int(rng.choice(np.flatnonzero(mask)))

    def _planned(self, mask: np.ndarray, plan: bytes) -> int:
        """The longest allowed token that begins the plan, or -1."""
        for length in range(min(len(plan), self._longest), 0, -1):
            token = self.ids.get(plan[:length], -1)
            if token >= 0 and mask[token]:
                return token
        return -1


def is_leap_second(objections: dict[str, str]) -> bool:
    """Whether all that jsonschema minds is a time that ends in second 60 (RFC 3339, 5.6 and 5.7)."""
    objection = objections.get("jsonschema", "")
    return "jsonschema-rs" not in objections and re.search(r":60\S*' is not a '(date-)?time'", objection) is not None


def check(walker: Walker, case: Row, walks: int, seed: int) -> Row:
    """All walks of one schema."""
    row: Row = {"id": case["id"], "outcomes": Counter(), "faults": []}
    schema, started = case["schema"], time.perf_counter()
    validators = Validators(schema)
    for profile in ("generate", "spec"):
        try:
            grammar = walker.compiler.compile_json_schema(schema, profile=profile)
        except PunchcardError as error:
            row["refused"] = f"{type(error).__name__}: {error}"[:300]
            return row
        for i in range(walks):
            fault = {"profile": profile, "walk": i}
            try:
                text = walker.walk(grammar, random.Random(f"{seed} {i} {case['id']}"))
                fault |= {"text": text}
                json.loads(text, object_pairs_hook=no_name_twice, parse_float=str, parse_int=str)
                objections = validators.objections(text)
                refusals = sum(not o.startswith("broken") for o in objections.values())
                fault["outcome"] = "invalid" if refusals == 2 else "disputed" if refusals else "valid"
                if refusals == 1 and is_leap_second(objections):
                    fault["outcome"] = "leap second"
                fault |= objections
            except Fault as error:
                fault |= {"outcome": error.args[0], "text": error.args[1].decode(errors="backslashreplace")}
                fault |= {"detail": str(error.args[2:])}
            except Exception as error:
                fault |= {"outcome": "crash", "detail": f"{type(error).__name__}: {error}"[:300]}
            row["outcomes"][fault["outcome"]] += 1
            if fault["outcome"] != "valid" or "broken" in str(fault.get("jsonschema-rs")) + str(
                fault.get("jsonschema")
            ):
                row["faults"].append(fault)
    row["seconds"] = round(time.perf_counter() - started, 3)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--walks", type=int, default=5, help="walks for each schema and profile")
    parser.add_argument("--verbose", action="store_true", help="print every fault")
    args = parser.parse_args()
    sys.path.insert(0, str(args.shared / "bench"))
    walker = Walker(importlib.import_module("maskbench").llama3_ranks())
    rows = run(lambda case: check(walker, case, args.walks, args.seed), args)
    outcomes: Counter[str] = Counter()
    for row in rows:
        outcomes.update(row.get("outcomes", {}))
        for fault in row.get("faults", []) if args.verbose else []:
            print(row["id"], json.dumps(fault, ensure_ascii=False))
    print(f"{len(rows)} schemas, {outcomes.total()} walks: {dict(outcomes.most_common())}")
    for kind in ("refused", "slow", "died"):
        ids = [row["id"] for row in rows if row.get(kind)]
        print(f"{kind}: {len(ids)} {' '.join(ids[:40])}")


if __name__ == "__main__":
    main()
