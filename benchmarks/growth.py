"""How time grows: with the size of a schema, the length of the output, its depth, the vocabulary, tools and enums.

    python benchmarks/growth.py [--engines punchcard,llguidance,xgrammar] [--only output,depth]

A text is followed twice. In the first walk a mask is made for the first time (cold), in the second it may be kept
(warm); the vocabulary itself has been used before. What an engine refuses, or takes more than --limit seconds for, is
left out of its curve, and named in the results.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np
import shapes
from common import Row, arguments, maskbench, of_quick, save, spread, vocabulary
from engines import Engine
from tqdm import tqdm
from workers import Worker, follow

SIZES = [1_000, 10_000, 100_000, 1_000_000, 10_000_000]
LENGTHS = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000]
DEPTHS = [1, 3, 10, 30, 100, 300, 1_000]
VOCABULARIES = [4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144]
COUNTS = [1, 10, 100, 1_000, 10_000]
Point = tuple[float, Row]


def measure(engine: Engine, job: Row) -> Row:
    """Compile, then follow the pieces twice; statistics of the labelled ones."""
    pieces = [(label, engine.vocab.encode(text)) for label, text in job["pieces"]]
    tokens = [token for _, piece in pieces for token in piece]
    begun = perf_counter_ns()
    grammar = engine.compile(job["notation"], job["grammar"])
    compiled = perf_counter_ns()
    engine.fill(engine.start(grammar))
    row: Row = {"compile_us": (compiled - begun) / 1e3, "first_us": (perf_counter_ns() - begun) / 1e3}
    for walk in ("cold", "warm") if tokens else ():
        masks, commits, problem = follow(engine, grammar, tokens)
        if problem:
            return row | {"error": problem}
        row[walk], at = {}, 0
        for label, piece in pieces:
            here = slice(at, at + len(piece))
            if label is not None:
                row[walk][label] = {"mask_us": spread(masks[here]), "commit_us": spread(commits[here])}
            at += len(piece)
    return row


def of_shape(shape: str, largest: int) -> Iterator[Point]:
    for size in SIZES:
        if size <= largest:
            schema, document = shapes.sized(shape, size)
            yield len(schema), {"notation": "json_schema", "grammar": schema, "pieces": [("document", document)]}


def of_maskbench(cases: list[Row], count: int) -> Iterator[Point]:
    """Schemas of all sizes up to the largest, evenly on a logarithmic scale."""
    texts = sorted(((json.dumps(c["schema"]), c["tests"]) for c in cases), key=lambda pair: len(pair[0]))
    sizes = np.array([len(text) for text, _ in texts])
    wanted = np.geomspace(sizes[len(sizes) // 100], sizes[-1], count)
    for i in sorted({int(np.abs(np.log(sizes / size)).argmin()) for size in wanted}):
        text, tests = texts[i]
        valid = [json.dumps(t["data"], ensure_ascii=False) for t in tests if t["valid"]]
        pieces = [("document", valid[0])] if valid else []
        yield len(text), {"notation": "json_schema", "grammar": text, "pieces": pieces}


def of_output(longest: int) -> Iterator[Point]:
    """One document; its masks by how many tokens came before."""
    vocab, source = vocabulary(), shapes.orders()
    pieces: list[shapes.Piece] = [(None, "[")]
    length = 1
    for end in [n for n in LENGTHS if n <= longest]:
        text = ""
        while length < end:
            more = ("" if len(pieces) == 1 and not text else ", ") + json.dumps(next(source))
            text, length = text + more, length + len(vocab.encode(more))
        pieces.append((str(end), text))
    schema = {"type": "array", "items": shapes.ORDER}
    yield longest, {"notation": "json_schema", "grammar": json.dumps(schema), "pieces": [*pieces, (None, "]")]}


def of_depth(deepest: int) -> Iterator[Point]:
    for depth in DEPTHS:
        if depth <= deepest:
            schema, pieces = shapes.recursive(depth)
            yield depth, {"notation": "json_schema", "grammar": schema, "pieces": pieces}


def of_counts(kind: str, most: int) -> Iterator[Point]:
    for count in COUNTS:
        if count > most:
            continue
        if kind == "tools":
            tag, pieces = shapes.tools(count)
            yield count, {"notation": "tag", "grammar": tag, "pieces": pieces}
        else:
            schema, document = (json.dumps(x) for x in shapes.enum(count))
            yield count, {"notation": "json_schema", "grammar": schema, "pieces": [("document", document)]}


def order_job() -> Row:
    source = shapes.orders()
    document = json.dumps([next(source) for _ in range(4)])
    schema = {"type": "array", "items": shapes.ORDER}
    return {"notation": "json_schema", "grammar": json.dumps(schema), "pieces": [("document", document)]}


def curves(args: argparse.Namespace) -> Iterator[tuple[str, list[Point]]]:
    """Name and points of each curve that is wanted."""
    part = 100 if args.quick else 1
    wanted: dict[str, Any] = {f"shape: {s}": lambda s=s: of_shape(s, SIZES[-1] // part) for s in shapes.SHAPES}
    wanted["maskbench"] = lambda: of_maskbench(maskbench(args.data), 60 // (10 if args.quick else 1))
    wanted["output"] = lambda: of_output(LENGTHS[-1] // part)
    wanted["depth"] = lambda: of_depth(DEPTHS[-1] // part)
    wanted["tools"] = lambda: of_counts("tools", COUNTS[-1] // part)
    wanted["enum"] = lambda: of_counts("enum", COUNTS[-1] // part)
    for name, points in wanted.items():
        if not args.only or any(name.startswith(word) for word in args.only.split(",")):
            yield name, list(points())


def run(args: argparse.Namespace) -> Row:
    found: Row = {"curves": {}}
    before = of_quick(args) / "growth.json"
    if args.only and before.exists():
        found["curves"] = json.loads(before.read_text("utf-8"))["curves"]
    for name, points in curves(args):
        rows: dict[str, list[Row]] = {}
        workers = [Worker(engine, measure, limit=args.limit) for engine in args.engines.split(",")]
        for worker in workers:
            worker.ask(order_job())  # what is of the vocabulary, and modules that are imported when needed
            worker.ask({**points[0][1], "pieces": []})
        for x, job in tqdm(points, desc=name, mininterval=5):
            for worker in workers:
                rows.setdefault(worker.name, []).append({"x": x, **worker.ask(job)})
        for worker in workers:
            worker.stop()
        found["curves"][name] = rows
    if not args.only or "vocabulary" in args.only:
        found["curves"]["vocabulary"] = of_vocabularies(args)
    return found


def of_vocabularies(args: argparse.Namespace) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for size in VOCABULARIES[:: 3 if args.quick else 1]:
        for name in args.engines.split(","):
            worker = Worker(name, measure, size, args.limit)
            found = worker.ask(order_job())
            rows.setdefault(name, []).append({"x": size, "setup_us": worker.setup_s * 1e6, **found})
            worker.stop()
    return rows


def show(found: Row) -> None:
    for curve, engines in found["curves"].items():
        for engine, rows in engines.items():
            print(f"{curve}, {engine}")
            for row in rows:
                walks = [
                    f"{label}: {walk} mask {s['mask_us']['p50']} (p99 {s['mask_us']['p99']})"
                    for walk in ("cold", "warm")
                    for label, s in row.get(walk, {}).items()
                ]
                first = f"first mask after {row['first_us'] / 1e3:.2f} ms" if "first_us" in row else ""
                print(f"  {row['x']:>9g}  {row.get('error', '')[:90]} {first}  {'; '.join(walks)}")


def main() -> None:
    parser = arguments(__doc__, "punchcard,llguidance", data=True)
    parser.add_argument("--only", help="curves by how their names begin, such as shape,depth; the others stay")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one point")
    args = parser.parse_args()
    found = run(args)
    show(found)
    save("growth", found, args)


if __name__ == "__main__":
    main()
