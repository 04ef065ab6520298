"""Lark and EBNF grammars side by side: time to the first mask, and time between masks along real texts.

    python benchmarks/grammars.py [--engines punchcard,llguidance,xgrammar,glrmask] [--rounds 5]

The grammars are those of tests/grammars; templates, which no peer reads, are written out. EBNF reaches llguidance
through its own converter, gbnf_to_lark. The texts are in benchmarks/data/texts. A grammar that an engine refuses, and a
text that it does not let through, are named with the reason. Every round compiles anew, and follows the text twice:
with cold and with warm caches. Figures are over all rounds but the first, which readies what belongs to the vocabulary;
an engine that needs more than --slow seconds for it is not asked again, and that round counts. A walk is cut off after
as long, and an engine given up after --limit.
"""

from __future__ import annotations

import argparse
import re
from time import perf_counter_ns

from common import HERE, Row, arguments, ratio, save, spread
from engines import Engine
from tqdm import tqdm
from workers import Worker, follow

GRAMMARS = HERE.parent / "tests" / "grammars"
TEXTS = {
    "arithmetic.lark": "arithmetic.txt",
    "json.lark": "document.json",
    "sql.lark": "queries.sql",
    "c_like.lark": "c_like.c",
    "arithmetic.ebnf": "arithmetic_plain.txt",
    "json.ebnf": "document.json",
    "sql.ebnf": "query_plain.sql",
    "c.ebnf": "expressions.c.txt",
    "csv.ebnf": "table.csv",
    "chess.ebnf": "game.txt",
}


def measure(engine: Engine, job: Row) -> Row:
    """Compile, one mask, and the text twice: with cold and with warm caches."""
    tokens = engine.vocab.encode(job["text"])
    begun = perf_counter_ns()
    grammar = engine.compile(job["notation"], job["grammar"])
    compiled = perf_counter_ns()
    engine.fill(engine.start(grammar))
    row: Row = {"compile": (compiled - begun) / 1e3, "first": (perf_counter_ns() - begun) / 1e3, "tokens": len(tokens)}
    for walk in ("cold", "warm"):
        masks, commits, problem = follow(engine, grammar, tokens, job["seconds"])
        row[walk] = [sum(pair) for pair in zip(masks, commits, strict=False)]
        if problem:
            return row | {"error": f"{problem}: …{engine.vocab.encoding.decode(tokens[: len(masks)])[-30:]!r}"}
    return row


def written_out(lark: str) -> str:
    """A Lark grammar with a rule for each use of a template, as far as these have one line and one parameter."""
    for name, parameter, body in re.findall(r"^(\w+)\{(\w+)\}: (.+)$", lark, re.MULTILINE):
        lark = re.sub(rf"^{name}\{{{parameter}\}}: .+\n", "", lark, flags=re.MULTILINE)
        for used in sorted(set(re.findall(rf"\b{name}\{{(\w+)\}}", lark))):
            rule = f"{name}_of_{used.lower()}"
            lark = lark.replace(f"{name}{{{used}}}", rule) + f"\n{rule}: " + re.sub(rf"\b{parameter}\b", used, body)
    return lark


def summary(rows: list[Row]) -> Row:
    found: Row = {"errors": sorted({row["error"] for row in rows if "error" in row})}
    if not found["errors"]:
        found["tokens"] = rows[0]["tokens"]
        found["reached"] = min(len(row["warm"]) for row in rows)
        found["compile_us"] = spread(row["compile"] for row in rows)
        found["first_us"] = spread(row["first"] for row in rows)
        found |= {f"{walk}_us": spread(x for row in rows for x in row[walk]) for walk in ("cold", "warm")}
    return found


def run(args: argparse.Namespace) -> Row:
    workers = [Worker(name, measure, limit=args.limit) for name in args.engines.split(",")]
    rows: Row = {name: {worker.name: [] for worker in workers} for name in TEXTS}
    for number in tqdm(range(args.rounds + 1), desc="rounds", mininterval=5):
        for name, text in TEXTS.items():
            job = {
                "notation": name.split(".")[1],
                "grammar": written_out((GRAMMARS / name).read_text("utf-8")),
                "seconds": args.slow,
                "text": (HERE / "data" / "texts" / text).read_bytes().decode(),
            }
            for worker in workers:
                past = rows[name][worker.name]
                if past and ("error" in past[0] or past[0]["seconds"] > args.slow):
                    continue
                begun = perf_counter_ns()
                past.append(worker.ask(job))
                past[-1]["seconds"] = (perf_counter_ns() - begun) / 1e9
                if number == 1:
                    past.pop(0)
    for worker in workers:
        worker.stop()
    found: Row = {
        "grammars": {name: {e: summary(past) for e, past in engines.items()} for name, engines in rows.items()}
    }
    found["ratios"] = {name: ratios(engines) for name, engines in found["grammars"].items()}
    return found


def ratios(engines: Row) -> Row:
    ours = engines.get("punchcard", {})
    return {
        peer: {
            f"{figure} {q}": ratio(s[figure].get(q), ours[figure].get(q))
            for figure, q in (("first_us", "p50"), ("cold_us", "mean"), ("warm_us", "mean"), ("warm_us", "p99"))
        }
        for peer, s in engines.items()
        if peer != "punchcard" and "first_us" in s and "first_us" in ours
    }


def show(found: Row) -> None:
    for name, engines in found["grammars"].items():
        print(name)
        for engine, s in engines.items():
            if s["errors"]:
                print(f"  {engine:<11} {s['errors'][0][:150]}")
                continue
            print(f"  {engine:<11} first mask after {s['first_us']['p50'] / 1e3:.2f} ms;", end=" ")
            for walk in ("cold", "warm"):
                print(walk, " ".join(f"{q} {s[f'{walk}_us'][q]}" for q in ("mean", "p50", "p99", "max")), end="; ")
            print()


def main() -> None:
    parser = arguments(__doc__, "punchcard,llguidance,xgrammar,glrmask")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=30, help="seconds for one grammar and text")
    parser.add_argument("--slow", type=float, default=5, help="seconds for one walk")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.limit, args.slow = 1, 5, 1
    found = run(args)
    show(found)
    save("grammars", found, args)


if __name__ == "__main__":
    main()
