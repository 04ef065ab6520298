"""All masks of a step, for a batch of sequences over several schemas, side by side.

    python benchmarks/batches.py [--engines punchcard,llguidance,xgrammar] [--sequences 256] [--schemas 32]

The schemas are drawn from MaskBench: those that every engine compiles, with an instance that every engine admits. The
sequences of one schema write the same instance, each from another place on, and begin anew at its end. A step is one
call that fills all masks, on --threads threads; tokens are accepted outside of the time. Engines take turns, a few
steps each, and all follow the same tokens. The first steps meet cold caches, and are told apart.
"""

from __future__ import annotations

import argparse
import json
import random
from time import perf_counter_ns
from typing import Any

from common import Row, arguments, maskbench, ratio, save, spread, vocabulary
from engines import Engine
from tqdm import tqdm
from workers import Worker, follow

TURN = 8
LEAST, MOST = 30, 1_000  # tokens of an instance


class Batch:
    """The sequences of one engine."""

    def __init__(self, engine: Engine, job: Row) -> None:
        self.engine = engine
        self.grammars = [engine.compile("json_schema", case["schema"]) for case in job["cases"]]
        self.texts = [case["tokens"] for case in job["cases"]]
        self.matchers: list[Any] = []
        self.places: list[int] = []
        each = job["sequences"] // len(self.texts)
        for number in range(job["sequences"]):
            which = number % len(self.texts)
            place = number // len(self.texts) * len(self.texts[which]) // each
            self.matchers.append(self._matcher(which, place))
            self.places.append(place)
        engine.prepare_batch(job["sequences"], job["threads"])

    def _matcher(self, which: int, place: int) -> Any:
        matcher = self.engine.start(self.grammars[which])
        for token in self.texts[which][:place]:
            self.engine.accept(matcher, token)
        return matcher

    def step(self) -> tuple[float, float]:
        """Milliseconds for the masks, and for the tokens behind them, one after the other."""
        begun = perf_counter_ns()
        self.engine.fill_batch(self.matchers)
        filled = perf_counter_ns()
        for number, matcher in enumerate(self.matchers):
            self.engine.accept(matcher, self.texts[number % len(self.texts)][self.places[number]])
        accepted = perf_counter_ns()
        for number, place in enumerate(self.places):
            which = number % len(self.texts)
            self.places[number] = (place + 1) % len(self.texts[which])
            if not self.places[number]:
                self.matchers[number] = self._matcher(which, 0)
        return (filled - begun) / 1e6, (accepted - filled) / 1e6


STATE: dict[str, Batch] = {}


def work(engine: Engine, job: Row) -> Row:
    if "check" in job:
        grammar = engine.compile("json_schema", job["check"])
        return {"admitted": not follow(engine, grammar, job["tokens"])[2]}
    if "cases" in job:
        STATE["batch"] = Batch(engine, job)
        return {}
    steps = [STATE["batch"].step() for _ in range(job["steps"])]
    return {"fill": [fill for fill, _ in steps], "accept": [accept for _, accept in steps]}


def choose(workers: list[Worker], args: argparse.Namespace) -> list[Row]:
    """Schemas that all engines take, and one instance of each."""
    cases, vocab, chosen = maskbench(args.data), vocabulary(), []
    random.Random(args.seed).shuffle(cases)
    with tqdm(total=args.schemas, desc="schemas", mininterval=5) as bar:
        for case in cases:
            valid = [json.dumps(t["data"], ensure_ascii=False) for t in case["tests"] if t["valid"]]
            tokens = vocab.encode(valid[0]) if valid else []
            schema = json.dumps(case["schema"])
            job = {"check": schema, "tokens": tokens}
            if LEAST <= len(tokens) <= MOST and all(worker.ask(job).get("admitted") for worker in workers):
                chosen.append({"id": case["id"], "schema": schema, "tokens": tokens})
                bar.update()
            if len(chosen) == args.schemas:
                break
    return chosen


def run(args: argparse.Namespace) -> Row:
    workers = [Worker(name, work, limit=args.limit) for name in args.engines.split(",")]
    cases = choose(workers, args)
    times: dict[str, Row] = {worker.name: {"fill": [], "accept": []} for worker in workers}
    for worker in workers:
        worker.stop()  # the batch starts in a process that has compiled nothing yet
        failed = worker.ask({"cases": cases, "sequences": args.sequences, "threads": args.threads}).get("error")
        if failed:
            raise SystemExit(f"{worker.name}: {failed}")
    for _ in tqdm(range(args.steps // TURN), desc="steps", mininterval=5):
        for worker in workers:
            found = worker.ask({"steps": TURN})
            for kind in times[worker.name]:
                times[worker.name][kind] += found[kind]
    for worker in workers:
        worker.stop()
    engines = {
        name: {
            "first_step_ms": round(kinds["fill"][0], 3),
            "cold_ms": spread(kinds["fill"][:TURN]),
            "step_ms": spread(kinds["fill"][TURN:]),
            "accept_ms": spread(kinds["accept"][TURN:]),
            "steps_ms": [round(x, 3) for x in kinds["fill"]],
        }
        for name, kinds in times.items()
    }
    ours = engines.get("punchcard", {}).get("step_ms", {})
    ratios = {
        name: {q: ratio(s["step_ms"].get(q), ours.get(q)) for q in ("mean", "p50", "p99", "max")}
        for name, s in engines.items()
        if name != "punchcard"
    }
    return {"schemas": [case["id"] for case in cases], "engines": engines, "ratios": ratios}


def show(found: Row) -> None:
    for name, s in found["engines"].items():
        print(f"{name}: first step {s['first_step_ms']} ms; then", end=" ")
        print("  ".join(f"{q} {s['step_ms'].get(q)}" for q in ("mean", "p50", "p99", "max")), "ms")
    for name, ratios in found["ratios"].items():
        print(f"{name} / punchcard ", "  ".join(f"{q} {x}" for q, x in ratios.items()))


def main() -> None:
    parser = arguments(__doc__, "punchcard,llguidance,xgrammar", data=True)
    parser.add_argument("--sequences", type=int, default=256)
    parser.add_argument("--schemas", type=int, default=32)
    parser.add_argument("--steps", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120, help="seconds for one turn")
    args = parser.parse_args()
    if args.quick:
        args.steps = 64
    found = run(args)
    show(found)
    save("batches", found, args)


if __name__ == "__main__":
    main()
