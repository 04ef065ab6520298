"""Does every random walk through the masks of every MaskBench schema end in a valid document?

    python benchmarks/maskbench_walks.py [--walks 5] [--sample 300] [--part 0/8] [--rows FILE] [--verbose]

A walk takes allowed tokens of the Llama 3 vocabulary, first at random, then such as lead to an end. Its document is
judged by jsonschema and jsonschema-rs, formats asserted. Printed are the walks by outcome:

- valid: it ended, and both validators accept the document;
- dead end: no token was allowed; crash: an exception; mask: mask and ``accept_token`` disagreed about some token;
- invalid: both validators refuse the document; disputed: one does; unfinished: no end within 1,000 tokens;

and the schemas that were refused, took too long, or ended the process. ``--rows`` keeps every fault with its document.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from maskbench_cases import Row, Validators, add_arguments, no_name_twice, run

import punchcard
from punchcard import GrammarCompiler, GrammarMatcher, PunchcardError, TokenizerInfo

LONGEST = 1_000
FREE = (0, 5, 20, 60)
# Outside strings, the ways to an end, the shortest first; a digit chosen by chance stands for all.
ENDINGS = (b"}", b"]", b":", b",", b"null", b"true", b"false", b"0", b'"', b"[", b"{")


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

    @cached_property
    def closing(self) -> list[int]:
        """Tokens that end a string, and do little else."""
        return [i for piece, i in self.ids.items() if piece[:1] == b'"' and not piece.strip(b'"}]')]

    @cached_property
    def single(self) -> list[int]:
        """Printable ASCII, one byte each; no backslash."""
        return [self.ids[bytes([i])] for i in range(32, 127) if i != ord("\\")]

    def walk(self, grammar: Any, names: tuple[list[bytes], list[bytes]], rng: random.Random) -> str:
        """The document of a walk. ``names`` are spelled member names: those that are required, and all."""
        matcher, text, plan = GrammarMatcher(grammar), bytearray(), b""
        state = InString()
        free = rng.choice(FREE)
        for step in range(LONGEST):
            mask = self._mask(matcher)
            if not mask.any():
                raise Fault("dead end", bytes(text))
            # Some chance stays, for arrays that must contain what is not the shortest item.
            ending = rng.random() < (0.9 if step >= free else 0.3)
            if mask[self.end] and (step >= free or rng.random() < 0.1):
                token = self.end
            else:
                if not plan and not state.inside and mask[self.ids[b'"']] and (step >= free or rng.random() < 0.6):
                    plan = self._name(
                        matcher, names[step < free], rng, unless=step >= free and bool(mask[self.ids[b"}"]])
                    )
                token = self._planned(mask, plan)
                plan = plan[len(self.tokens[token]) :] if token >= 0 else b""
                if token < 0:
                    token = self._ending(mask, state.inside, rng) if ending else self._any(mask, rng)
            other = rng.randrange(len(self.tokens))
            if matcher.fork().accept_token(other) != mask[other]:
                raise Fault("mask", bytes(text), f"token {other} {self.tokens[other]!r}: mask {mask[other]}")
            if not matcher.accept_token(token):
                raise Fault("mask", bytes(text), f"token {token} {self.tokens[token]!r}: allowed, not accepted")
            if token == self.end:
                return text.decode()
            text += self.tokens[token]
            state.read(self.tokens[token])
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

    def _ending(self, mask: np.ndarray, inside: bool, rng: random.Random) -> int:
        if inside:
            allowed = [i for i in self.closing if mask[i]]
            if not allowed and rng.random() < 0.5:
                # A single byte decides sooner than a run of digits, say, which has more tokens than all that follow it.
                allowed = [i for i in self.single if mask[i]]
            return rng.choice(allowed) if allowed else self._any(mask, rng)
        digit = self.ids[str(rng.randrange(10)).encode()]
        for piece in ENDINGS:
            token = digit if piece == b"0" else self.ids[piece]
            if mask[token]:
                return token
        return self._any(mask, rng)

    def _name(self, matcher: GrammarMatcher, names: list[bytes], rng: random.Random, unless: bool) -> bytes:
        """A member name that may come next, if a name may, chosen by chance."""
        for name in [] if unless else rng.sample(names, min(20, len(names))):
            if matcher.fork().accept_string(name + b":"):
                return name
        return b""

    def _planned(self, mask: np.ndarray, plan: bytes) -> int:
        """The longest allowed token that begins the plan, or -1."""
        for length in range(min(len(plan), self._longest), 0, -1):
            token = self.ids.get(plan[:length], -1)
            if token >= 0 and mask[token]:
                return token
        return -1


class InString:
    """Whether the text read so far ends inside a JSON string."""

    def __init__(self) -> None:
        self.inside = self._escaped = False

    def read(self, piece: bytes) -> None:
        for byte in piece:
            if self._escaped:
                self._escaped = False
            elif byte == ord('"'):
                self.inside = not self.inside
            else:
                self._escaped = self.inside and byte == ord("\\")


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """All objects in a schema, itself first."""
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from subschemas(part)


def declared(schema: Any) -> set[str]:
    found = (part.get("properties") for part in subschemas(schema))
    return {name for properties in found if isinstance(properties, dict) for name in properties}


def required(schema: Any) -> set[str]:
    lists = []
    for part in subschemas(schema):
        lists.append(part.get("required"))
        for keyword in ("dependencies", "dependentRequired"):
            if isinstance(part.get(keyword), dict):
                lists += part[keyword].values()
    return {name for names in lists if isinstance(names, list) for name in names if isinstance(name, str)}


def spelled(names: set[str]) -> list[bytes]:
    return [json.dumps(name, ensure_ascii=False).encode() for name in sorted(names)]


def check(walker: Walker, case: Row, walks: int, seed: int) -> Row:
    """All walks of one schema."""
    row: Row = {"id": case["id"], "outcomes": Counter(), "faults": []}
    schema, started = case["schema"], time.perf_counter()
    validators = Validators(schema)
    names = (spelled(required(schema)), spelled(required(schema) | declared(schema)))
    for profile in ("generate", "spec"):
        try:
            grammar = walker.compiler.compile_json_schema(schema, profile=profile)
        except PunchcardError as error:
            row["refused"] = f"{type(error).__name__}: {error}"[:300]
            return row
        for i in range(walks):
            fault = {"profile": profile, "walk": i}
            try:
                text = walker.walk(grammar, names, random.Random(f"{seed} {i} {case['id']}"))
                fault |= {"text": text}
                json.loads(text, object_pairs_hook=no_name_twice, parse_float=str, parse_int=str)
                objections = validators.objections(text)
                refusals = sum(not o.startswith("broken") for o in objections.values())
                fault["outcome"] = "invalid" if refusals == 2 else "disputed" if refusals else "valid"
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
