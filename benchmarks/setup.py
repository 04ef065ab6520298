"""What it takes before the first schema: importing, the vocabulary, memory, the size of the wheel and of a matcher.

    python benchmarks/setup.py [--engines punchcard,llguidance] [--rounds 10]

Every figure comes from fresh processes. Setting a vocabulary up is what turns a list of tokens into an engine that can
compile; importing modules and reading the file are not in it. The size of a matcher is the growth of the process by
--matchers of them, of one grammar: new ones, and ones that have followed a document.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import shapes
from common import HERE, Row, arguments, save, vocabulary
from engines import ENGINES
from tqdm import tqdm
from workers import peak_mb

SIZES = {"Llama 3, 128,256 entries": None, "synthesised, 262,144 entries": 262_144}
IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def resident_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1e3
    return 0.0


def inside_vocabulary(name: str, size: int | None) -> Row:
    vocab = vocabulary(size)
    _ = vocab.tokens(), vocab.encoding, __import__(name)
    before, begun = resident_mb(), time.perf_counter()
    engine = ENGINES[name](vocab)
    row = {"seconds": time.perf_counter() - begun, "grown_mb": resident_mb() - before}
    engine.compile("json_schema", '{"type": "object"}')
    return row | {"peak_mb": peak_mb()}


def inside_matchers(name: str, count: int, used: bool) -> Row:
    vocab = vocabulary()
    engine = ENGINES[name](vocab)
    grammar = engine.compile("json_schema", json.dumps(shapes.ORDER))
    text = vocab.encode(json.dumps(next(shapes.orders()))) if used else []
    matcher = engine.start(grammar)
    for token in text:  # caches of the grammar are full before any memory is counted
        engine.fill(matcher)
        engine.accept(matcher, token)
    before = resident_mb()
    matchers = [engine.start(grammar) for _ in range(count)]
    for matcher in matchers:
        for token in text:
            engine.accept(matcher, token)
    return {"bytes": round((resident_mb() - before) * 1e6 / len(matchers)), "count": count, "tokens": len(text)}


def fresh(*words: object) -> Row:
    """What this script prints in a process of its own."""
    command = [sys.executable, str(HERE / "setup.py"), "--inside", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def import_seconds(name: str) -> float:
    return float(subprocess.run([sys.executable, "-c", IMPORT.format(name)], capture_output=True, check=True).stdout)


def times(seconds: Iterable[float]) -> Row:
    found = sorted(seconds)
    return {"best_ms": round(found[0] * 1e3, 2), "median_ms": round(statistics.median(found) * 1e3, 2)}


def run(args: argparse.Namespace) -> Row:
    found: Row = {"engines": {}}
    for name in tqdm(args.engines.split(","), desc="engines"):
        row: Row = {"import": times(import_seconds(name) for _ in range(args.rounds)), "vocabularies": {}}
        for label, size in SIZES.items():
            rounds = [fresh("vocabulary", name, size or 0) for _ in range(max(1, args.rounds // 3))]
            row["vocabularies"][label] = {
                **times(r["seconds"] for r in rounds),
                "grown_mb": round(max(r["grown_mb"] for r in rounds)),
                "peak_mb": round(max(r["peak_mb"] for r in rounds)),
            }
        count = args.matchers // (1 if name == "punchcard" else 50)
        row["matcher"] = {state: fresh(state, name, count) for state in ("new", "used")}
        found["engines"][name] = row
    wheels = sorted((HERE.parent / "dist").glob("punchcard-*.whl"), key=lambda p: p.stat().st_mtime)
    if wheels:
        found["wheel"] = {"name": wheels[-1].name, "mb": round(wheels[-1].stat().st_size / 1e6, 2)}
    return found


def show(found: Row) -> None:
    for name, row in found["engines"].items():
        print(f"{name}: import {row['import']}")
        for label, figures in row["vocabularies"].items():
            print(f"  {label}: {figures}")
        print(f"  matcher: {row['matcher']}")
    if "wheel" in found:
        print(f"wheel: {found['wheel']}")


def main() -> None:
    parser = arguments(__doc__, "punchcard,llguidance,glrmask,xgrammar")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--matchers", type=int, default=100_000, help="a fiftieth of it for the peers")
    parser.add_argument("--inside", nargs=3, metavar=("WHAT", "ENGINE", "NUMBER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        what, name, number = args.inside
        if what == "vocabulary":
            print(json.dumps(inside_vocabulary(name, int(number) or None)))
        else:
            print(json.dumps(inside_matchers(name, int(number), used=what == "used")))
        return
    if args.quick:
        args.rounds, args.matchers = 1, 10_000
    found = run(args)
    show(found)
    del args.inside
    save("setup", found, args)


if __name__ == "__main__":
    main()
