"""Draws the figures and writes the tables of docs/performance.md, from the results that the other scripts have left.

    python benchmarks/report.py [--results benchmarks/results] [--page docs/performance.md] [--figures docs/figures]

A table stands between two markers, <!-- name --> and <!-- /name -->; what is outside of them is left alone. With
--quick, results/quick is read, and a copy of the page and the figures are written there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import figures
from common import HERE, Row, arguments, of_quick

LABELS = {
    "punchcard": "Punchcard",
    "punchcard-spec": "Punchcard, `spec`",
    "llguidance": "llguidance",
    "xgrammar": "XGrammar",
    "glrmask": "GLRMask",
}
WALKS = [("cold", "mean"), ("cold", "p99"), ("cold", "max"), ("warm", "mean"), ("warm", "p50"), ("warm", "p99")]
SHAPE_NOTE = {"text": "free text", "call": "a call", "document": ""}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def time(us: float | None) -> str:
    """Microseconds with a unit that suits them, three digits."""
    if us is None:
        return ""
    for unit, size in (("s", 1e6), ("ms", 1e3), ("µs", 1)):
        if us >= size:
            value = us / size
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{us:.2g} µs"


def times(ratio: float | None) -> str:
    if not ratio:
        return ""
    return f"{ratio:,.0f} ×" if ratio >= 100 else f"{ratio:.3g} ×"


def masks(found: Row) -> str:
    head, rows = ["engine", "pass", "refused", "too lax", "too tight", "crashed", "peak memory"], []
    for name, s in found["engines"].items():
        counts = [str(s[kind]) for kind in ("refused", "too_lax", "too_tight", "crashed")]
        rows.append([LABELS[name], f"{s['pass_rate']:.1f} %", *counts, f"{s['peak_mb']} MB"])
    parts = [table(head, rows)]
    for figure, title in (("first_us", "time to first mask"), ("between_us", "time between masks")):
        quantiles = ["mean", "p50", "p90", "p99", "p99.9", "max"]
        rows = [[LABELS[n], *(time(s[figure].get(q)) for q in quantiles)] for n, s in found["engines"].items()]
        for peer, ratios in found.get("ratios", {}).items():
            who = f"*{LABELS[peer]} / Punchcard, the {ratios['schemas']} that both pass*"
            rows.append([who, *(times(ratios[figure].get(q)) for q in quantiles)])
        parts.append(table([title, *quantiles], rows))
    seeds = found["seeds"]
    sample = next(iter(next(iter(seeds.values())).values()))["schemas"]
    count = next(iter(found["engines"].values()))["between_us"].get("count", 0)
    note = f"{len(seeds)} samples of {sample} schemas (seeds {', '.join(seeds)}); {count:,} masks for Punchcard."
    return "\n\n".join([note, *parts])


def growth(found: Row) -> str:
    """Compilation by size, and masks at both ends of each curve."""
    curves, parts = found["curves"], []
    shapes = {name.split(": ")[1]: rows for name, rows in curves.items() if name.startswith("shape")}
    if shapes:
        sizes = [f"{size} B" for size in ("1 k", "10 k", "100 k", "1 M", "10 M")]
        rows = [
            [f"{shape}, {LABELS[name]}", *(time(p.get("first_us")) or "refused" for p in points)]
            for shape, engines in shapes.items()
            for name, points in engines.items()
        ]
        longest = max(len(row) for row in rows)
        parts.append(table(["time to first mask", *sizes[: longest - 1]], rows))
    rows = []
    for curve, engines in curves.items():
        for name, points in engines.items():
            rows += ends(curve.replace("shape: ", ""), name, points)
    if rows:
        head = ["masks", "from", "to", "cold median", "cold p99", "warm median", "warm p99"]
        parts.append(table(head, rows))
    refused: dict[tuple[str, str], list[str]] = {}
    for curve, engines in curves.items():
        for name, points in engines.items() if curve != "maskbench" else ():
            for p in points:
                if "error" in p:
                    where = refused.setdefault((LABELS[name], reason(p["error"])), [])
                    where.append(f"{curve.replace('shape: ', '')} at {p['x']:,.0f}")
    if refused:
        lines = [f"- {engine}, {why}: {'; '.join(where)}" for (engine, why), where in refused.items()]
        parts.append("Left out:\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def reason(error: str) -> str:
    words = re.sub(r"\s+", " ", error.replace("`", "'")).removeprefix("ValueError: ").removeprefix("RuntimeError: ")
    return f"`{words[:77]}...`" if len(words) > 80 else f"`{words}`"


def ends(curve: str, name: str, points: list[Row]) -> list[list[str]]:
    """The first and the last point of a curve, as "from → to" in each cell."""
    if curve == "maskbench":
        return []
    rows = []
    for label, series in figures.series(curve, points).items():
        if len(series) < 2:
            continue
        (low, first), (high, last) = series[0], series[-1]
        cells = [
            f"{time(first[walk]['mask_us'][q])} → {time(last[walk]['mask_us'][q])}"
            for walk in ("cold", "warm")
            for q in ("p50", "p99")
        ]
        note = f" ({SHAPE_NOTE[label]})" if SHAPE_NOTE.get(label) else ""
        rows.append([f"{curve}{note}, {LABELS[name]}", f"{low:,.0f}", f"{high:,.0f}", *cells])
    return rows


def batches(found: Row) -> str:
    quantiles = ["mean", "p50", "p99", "max"]
    rows = []
    for name, s in found["engines"].items():
        steps = [time(s["step_ms"][q] * 1e3) for q in quantiles]
        rows.append([LABELS[name], time(s["first_step_ms"] * 1e3), time(s["cold_ms"]["mean"] * 1e3), *steps])
    for peer, ratios in found["ratios"].items():
        rows.append([f"*{LABELS[peer]} / Punchcard*", "", "", *(times(ratios[q]) for q in quantiles)])
    head = ["all masks of a step", "first step", "steps 1 to 8", *(f"later: {q}" for q in quantiles)]
    options = found["options"]
    note = (
        f"{options['sequences']} sequences over {options['schemas']} schemas,"
        f" {options['threads']} threads, {options['steps']} steps."
    )
    return note + "\n\n" + table(head, rows)


def grammars(found: Row) -> str:
    rows, refused = [], []
    for grammar, engines in found["grammars"].items():
        for name, s in engines.items():
            if s["errors"]:
                if name != "glrmask" or not grammar.endswith("ebnf"):
                    refused.append(f"- {grammar}, {LABELS[name]}: {reason(s['errors'][0])}")
                continue
            ratios = found["ratios"][grammar].get(name, {})
            rows.append(
                [
                    f"{grammar}, {LABELS[name]}" + cut(s),
                    time(s["first_us"]["p50"]),
                    *(time(s[f"{walk}_us"][q]) for walk, q in WALKS),
                    times(ratios.get("first_us p50")),
                    times(ratios.get("cold_us mean")),
                    times(ratios.get("warm_us mean")),
                ]
            )
    walks = [f"{walk} {q}" for walk, q in WALKS]
    versus = [f"{what} / Punchcard" for what in ("first", "cold", "warm")]
    parts = [table(["mask and commit", "first mask", *walks, *versus], rows)]
    if refused:
        parts.append("Not measured:\n\n" + "\n".join(refused))
    return "\n\n".join(parts)


def cut(s: Row) -> str:
    return f" ({s['reached']} of {s['tokens']} tokens)" if s.get("reached", s["tokens"]) < s["tokens"] else ""


def setup(found: Row) -> str:
    rows = []
    for name, s in found["engines"].items():
        rows.append([LABELS[name], *(time(s["import"][q] * 1e3) for q in ("best_ms", "median_ms"))])
        for v in s["vocabularies"].values():
            rows[-1] += [time(v["median_ms"] * 1e3), f"{v['peak_mb']} MB"]
        rows[-1] += [f"{s['matcher'][state].get('bytes', 0):,} B" for state in ("new", "used")]
    head = ["engine", "import, best", "median"]
    for label in next(iter(found["engines"].values()))["vocabularies"]:
        head += [label, "peak memory"]
    tokens = max(s["matcher"]["used"].get("tokens", 0) for s in found["engines"].values())
    parts = [table([*head, "a new matcher", f"one behind {tokens} tokens"], rows)]
    if "wheel" in found:
        parts.append(f"The wheel `{found['wheel']['name']}` has {found['wheel']['mb']} MB.")
    return "\n\n".join(parts)


def environment(results: dict[str, Row]) -> str:
    lines = []
    for name, found in results.items():
        m = found["machine"]
        where = f"{m['cpu']}, {m['cores']} cores, {m['memory_gb']} GB; {m['os']}"
        versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
        lines.append((f"{where}. {versions}.", f"{name} {found['date']}"))
    together: dict[str, list[str]] = {}
    for where, what in lines:
        together.setdefault(where, []).append(what)
    return "\n\n".join(f"{where} Measured: {', '.join(whats)}." for where, whats in together.items())


def endurance(found: Row) -> str:
    """The first and the last tenth of each curve."""
    rows = []
    for run in found["runs"]:
        points, tenth = run["points"], len(run["points"]) // 10
        cells = [f"{run['load']}, {run['threads']} thread" + "s" * (run["threads"] > 1)]
        for figure, unit in (("us", "µs"), ("process_mb", "MB"), ("grammar_mb", "MB")):
            first, last = (sum(p[figure] for p in part) / tenth for part in (points[:tenth], points[-tenth:]))
            cells.append(f"{first:,.0f} → {last:,.0f} {unit}")
        cells.append(f"{max(p['process_mb'] for p in points):,.0f} MB")
        rows.append(cells)
    head = ["first tenth → last tenth", "a document", "process", "grammar", "process at most"]
    return f"{found['documents']:,} documents each.\n\n" + table(head, rows)


TABLES = {
    "masks": masks,
    "growth": growth,
    "batches": batches,
    "grammars": grammars,
    "setup": setup,
    "endurance": endurance,
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "performance.md")
    parser.add_argument("--figures", type=Path, default=HERE.parent / "docs" / "figures")
    args = parser.parse_args()
    folder = of_quick(args)
    page, out = (folder / "performance.md", folder / "figures") if args.quick else (args.page, args.figures)
    results = {
        name: json.loads((folder / f"{name}.json").read_text("utf-8"))
        for name in TABLES
        if (folder / f"{name}.json").exists()
    }
    text = args.page.read_text("utf-8")
    parts = {name: TABLES[name](found) for name, found in results.items()} | {"environment": environment(results)}
    for name, part in parts.items():
        text, count = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)",
            lambda marks, part=part: f"{marks[1]}\n{part}\n\n{marks[2]}",  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
        print(f"{name}: {'written' if count else 'no such markers in the page'}")
    page.write_text(text, "utf-8")
    figures.draw(results, out)


if __name__ == "__main__":
    main()
