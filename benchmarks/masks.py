"""Engines side by side on MaskBench: what they pass, the time to the first mask, and the time between masks.

    python benchmarks/masks.py [--engines punchcard,llguidance] [--sample 1000] [--seeds 1,2,3]

Each engine has a process of its own, and all get the same schemas in turn, so that a change of the machine's speed
meets them alike. Time to the first mask is compilation and one mask. Time between masks is one mask and the commit of
one token, over all tokens of all instances. A schema passes if all its valid instances are admitted in full, and no
invalid one.
"""

from __future__ import annotations

import argparse
import json
import random
import time

from common import Row, arguments, maskbench, ratio, save, spread, tail, vocabulary
from engines import Engine
from tqdm import tqdm
from workers import Worker, follow

FAILURES = ["refused", "crashed", "too_lax", "too_tight"]
SHOWN = ["mean", "p50", "p90", "p99", "p99.9", "max"]


def measure(engine: Engine, job: Row) -> Row:
    """One schema with its instances."""
    begun = time.perf_counter_ns()
    try:
        grammar = engine.compile("json_schema", job["schema"])
        compiled = time.perf_counter_ns()
        engine.fill(engine.start(grammar))
    except BaseException as error:
        return {"fault": "refused", "why": str(error)[:200]}
    row: Row = {"compile": (compiled - begun) / 1e3, "first": (time.perf_counter_ns() - begun) / 1e3, "between": []}
    for tokens, valid in job["tests"]:
        masks, commits, problem = follow(engine, grammar, tokens)
        row["between"] += [sum(pair) for pair in zip(masks, [*commits, 0], strict=False)]
        if bool(problem) == valid:
            row["fault"] = "too_tight" if valid else "too_lax"
    return row


def summary(rows: list[Row]) -> Row:
    first = [row["first"] for row in rows if "first" in row]
    between = [x for row in rows for x in row.get("between", [])]
    faults = [row.get("fault", "crashed" if "error" in row else "") for row in rows]
    return {
        "schemas": len(rows),
        "passed": faults.count(""),
        "pass_rate": round(100 * faults.count("") / max(1, len(rows)), 2),
        **{kind: faults.count(kind) for kind in FAILURES},
        "first_us": spread(first),
        "between_us": spread(between),
        "compile_us": spread(row["compile"] for row in rows if "compile" in row),
        "first_tail": tail(first),
        "between_tail": tail(between),
        "peak_mb": round(max((row.get("peak_mb", 0) for row in rows), default=0)),
    }


def ratios(every: dict[str, list[Row]]) -> Row:
    """How many times as long each peer takes as Punchcard, over the schemas that both pass."""
    found: Row = {}
    for peer, theirs in every.items():
        if peer.startswith("punchcard") or "punchcard" not in every:
            continue
        pairs = zip(every["punchcard"], theirs, strict=True)
        both = [pair for pair in pairs if all("error" not in row and "fault" not in row for row in pair)]
        ours, others = (summary([pair[side] for pair in both]) for side in (0, 1))
        found[peer] = {"schemas": len(both)}
        for figure in ("first_us", "between_us"):
            found[peer][figure] = {q: ratio(others[figure].get(q), ours[figure].get(q)) for q in SHOWN}
    return found


def run(args: argparse.Namespace) -> Row:
    everything, vocab = maskbench(args.data), vocabulary()
    workers = [Worker(name, measure, limit=args.limit) for name in args.engines.split(",")]
    found: Row = {"seeds": {}}
    every: dict[str, list[Row]] = {worker.name: [] for worker in workers}
    for seed in map(int, args.seeds.split(",")):
        rows: dict[str, list[Row]] = {worker.name: [] for worker in workers}
        cases = random.Random(seed).sample(everything, min(args.sample or len(everything), len(everything)))
        for case in tqdm(cases, desc=f"seed {seed}", mininterval=10):
            texts = [(json.dumps(t["data"], ensure_ascii=False), t["valid"]) for t in case["tests"]]
            job = {"schema": json.dumps(case["schema"]), "tests": [(vocab.encode(text), v) for text, v in texts]}
            for worker in workers:
                rows[worker.name].append(worker.ask(job))
        summaries = {name: summary(found_rows) for name, found_rows in rows.items()}
        for s in summaries.values():
            del s["first_tail"], s["between_tail"]
        found["seeds"][seed] = summaries
        for name, found_rows in rows.items():
            every[name] += found_rows
        found["engines"] = {name: summary(found_rows) for name, found_rows in every.items()}
        found["ratios"] = ratios(every)
        save("masks", found, args)
    for worker in workers:
        worker.stop()
    return found


def show(found: Row) -> None:
    for name, s in found["engines"].items():
        print(f"{name}: {s['pass_rate']} % of {s['schemas']} pass; {s['peak_mb']} MB;", end=" ")
        print(", ".join(f"{kind} {s[kind]}" for kind in FAILURES))
        for figure in ("first_us", "between_us"):
            print(f"  {figure:<11}", "  ".join(f"{q} {s[figure].get(q)}" for q in SHOWN))
    for peer, figures in found["ratios"].items():
        for figure in ("first_us", "between_us"):
            print(f"{peer} / punchcard, {figure:<11}", "  ".join(f"{q} {x}" for q, x in figures[figure].items()))


def main() -> None:
    parser = arguments(__doc__, "punchcard,punchcard-spec,llguidance,glrmask,xgrammar", data=True)
    parser.add_argument("--sample", type=int, default=1000, help="schemas for each seed; 0 for all")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--limit", type=float, default=30, help="seconds for one schema")
    args = parser.parse_args()
    if args.quick:
        args.sample, args.seeds = 60, "1"
    show(run(args))


if __name__ == "__main__":
    main()
