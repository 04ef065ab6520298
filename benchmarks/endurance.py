"""One grammar for a million documents: the memory it holds and the time a document takes, from the first to the last.

    python benchmarks/endurance.py [--documents 1000000] [--only object,unique,tool]

Each load has a process of its own. A document is followed token by token, with a mask at every token; its names and
numbers are new, so it leads to states that no document before it had. With several threads each follows its share.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

from common import Row, arguments, save, vocabulary

#: Documents between two points of a curve.
POINTS = 50
THREADS = [1, 4]


def _object(rng: random.Random) -> str:
    return json.dumps({f"key {rng.randrange(10**9)}": rng.randrange(1000), "id": {f"x{rng.randrange(10**9)}": True}})


def _unique(rng: random.Random) -> str:
    return json.dumps([rng.randrange(10**9), f"tag {rng.randrange(10**9)}", {"id": rng.randrange(10**6)}])


def _tool(rng: random.Random) -> str:
    call = {"name": "note", "arguments": {f"field {rng.randrange(10**9)}": f"text {rng.randrange(10**6)}"}}
    return f"Let me note this.\n<tool_call>\n{json.dumps(call)}\n</tool_call>"


def _json(schema: Row) -> Callable[[Any], Any]:
    return lambda compiler: compiler.compile_json_schema(schema)


def _tag(compiler: Any) -> Any:
    begin = '<tool_call>\n{"name": "note", "arguments": '
    content = {"type": "json_schema", "json_schema": {"type": "object"}}
    tag = {"begin": begin, "content": content, "end": "}\n</tool_call>"}
    return compiler.compile_structural_tag(
        {"format": {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": [tag]}}
    )


LOADS: dict[str, tuple[Callable[[Any], Any], Callable[[random.Random], str]]] = {
    "object": (_json({"type": "object"}), _object),
    "unique": (_json({"type": "array", "uniqueItems": True}), _unique),
    "tool": (_tag, _tool),
}


def resident_mb() -> float:
    fields = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in fields if line.startswith("VmRSS"))


def inside(load: str, documents: int, threads: int) -> Row:
    """Follows all documents in this process."""
    import punchcard

    vocab = vocabulary()
    info = punchcard.TokenizerInfo.from_vocab(vocab.tokens(), eos_token_ids=[vocab.eos])
    compile_grammar, document = LOADS[load]
    compiled = compile_grammar(punchcard.GrammarCompiler(info, cache_enabled=False))

    def follow(seed: int, count: int) -> None:
        rng, bitmask = random.Random(seed), punchcard.allocate_token_bitmask(1, info.vocab_size)
        for _ in range(count):
            matcher = punchcard.GrammarMatcher(compiled)
            for token in vocab.encode(document(rng)):
                matcher.fill_next_token_bitmask(bitmask)
                if not matcher.accept_token(token):
                    raise AssertionError("a valid document was refused")
            if not matcher.is_accepting():
                raise AssertionError("a valid document is not complete")

    follow(0, 100)
    points, each = [], documents // POINTS // threads
    with ThreadPoolExecutor(threads) as pool:
        for point in range(POINTS):
            begun = perf_counter()
            list(pool.map(follow, [1 + point * threads + i for i in range(threads)], [each] * threads))
            us = (perf_counter() - begun) * 1e6 / (each * threads)
            grammar_mb = compiled.memory_size_bytes / 2**20
            points.append(
                {"x": (point + 1) * each * threads, "us": us, "process_mb": resident_mb(), "grammar_mb": grammar_mb}
            )
    return {"load": load, "threads": threads, "points": points}


def run(args: argparse.Namespace) -> Row:
    runs = []
    for load in args.only or LOADS:
        for threads in THREADS:
            words = [sys.executable, __file__, "--inside", load, str(args.documents), str(threads)]
            found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
            first, last = found["points"][0], found["points"][-1]
            print(
                f"{load}, {threads} threads: {first['us']:.0f} → {last['us']:.0f} µs a document,"
                f" {first['process_mb']:.0f} → {last['process_mb']:.0f} MB"
            )
            runs.append(found)
    return {"documents": args.documents, "runs": runs}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--inside", nargs=3, metavar=("LOAD", "DOCUMENTS", "THREADS"))
    args = parser.parse_args()
    if args.inside:
        load, documents, threads = args.inside
        print(json.dumps(inside(load, int(documents), int(threads))))
        return
    if args.quick:
        args.documents = 20_000
    save("endurance", run(args), args)


if __name__ == "__main__":
    main()
