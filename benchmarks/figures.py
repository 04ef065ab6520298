"""The figures of docs/performance.md: the same colour for an engine in all, times on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
from common import TAIL, Row

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

COLOURS = {
    "punchcard": "#c2410c",
    "punchcard-spec": "#f59e0b",
    "llguidance": "#2563eb",
    "xgrammar": "#0d9488",
    "glrmask": "#7c3aed",
}
NAMES = {
    "punchcard": "Punchcard",
    "punchcard-spec": "Punchcard, spec",
    "llguidance": "llguidance",
    "xgrammar": "XGrammar",
    "glrmask": "GLRMask",
}
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "punchcard",
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
}
AXES = {
    "output": "tokens of output before",
    "depth": "objects around",
    "vocabulary": "tokens in the vocabulary",
    "tools": "tools in the structural tag",
    "enum": "entries of the enum",
}


def draw(results: dict[str, Row], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        if "masks" in results:
            _save(_tails(results["masks"]), folder, "masks")
        if "growth" in results:
            curves = results["growth"]["curves"]
            shapes = [c for c in curves if c.startswith("shape")]
            compiled = shapes + [c for c in ("maskbench", "tools") if c in curves]
            others = [c for c in AXES if c in curves]
            for name, panel, chosen in (
                ("growth-compilation", _compilation, compiled),
                ("growth-schema", _masks, shapes),
                ("growth-masks", _masks, others),
            ):
                if chosen:
                    _save(panel(curves, chosen), folder, name)
        if "batches" in results:
            _save(_batches(results["batches"]), folder, "batches")
        if "endurance" in results:
            _save(_endurance(results["endurance"]), folder, "endurance")
        if "grammars" in results:
            _save(_grammars(results["grammars"]), folder, "grammars")


def _endurance(found: Row) -> Any:
    """Time and memory by the documents that one grammar has served."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    colours = {"object": "#c2410c", "unique": "#2563eb", "tool": "#0d9488"}
    for run in found["runs"]:
        for axis, value in zip(axes, ("us", "process_mb"), strict=True):
            axis.plot(
                [point["x"] for point in run["points"]],
                [point[value] for point in run["points"]],
                color=colours[run["load"]],
                linestyle="-" if run["threads"] == 1 else ":",
                label=f"{run['load']}, {run['threads']} thread" + "s" * (run["threads"] > 1),
            )
    for axis, title in zip(axes, ("µs a document, masks included", "memory of the process, MB"), strict=True):
        axis.set_title(title)
        axis.set_xlabel("documents")
        axis.set_ylim(bottom=0)
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1e6:g} M" if x else "0"))
    axes[1].legend(fontsize=7)
    return figure


def series(curve: str, points: Iterable[Row]) -> dict[str, list[tuple[float, Row]]]:
    """By label, the points that have masks: x, and the walks with the statistics of that label."""
    found: dict[str, list[tuple[float, Row]]] = {}
    for point in points:
        for label in point.get("warm", {}):
            walks = {walk: point[walk][label] for walk in ("cold", "warm")}
            x, key = (float(label), "") if curve in ("output", "depth") else (point["x"], label)
            found.setdefault(key, []).append((x, walks))
    return found


def _time(value: float, _: Any = None) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3), ("µs", 1)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} µs"


def _count(value: float, _: Any = None) -> str:
    for unit, size in ((" M", 1e6), (" k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _axes(axis: Any, x: str, y: str = "", title: str = "") -> None:
    axis.set(xscale="log", yscale="log", xlabel=x, ylabel=y, title=title)
    axis.xaxis.set_major_formatter(FuncFormatter(_count))
    axis.yaxis.set_major_formatter(FuncFormatter(_time))
    for side in (axis.xaxis, axis.yaxis):
        side.set_minor_formatter(NullFormatter())


def _decades(axis: Any) -> None:
    """Whole decades at both ends of the times, so that what is flat looks flat."""
    low, high = axis.get_ylim()
    axis.set_ylim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))


def _grid(count: int, columns: int = 3) -> tuple[Any, list[Any]]:
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.6 * columns, 2.9 * rows), squeeze=False)
    flat = list(axes.flat)
    for axis in flat[count:]:
        axis.remove()
    return figure, flat[:count]


def _legend(figure: Any, axes: Iterable[Any]) -> None:
    """One legend for all panels, above them."""
    found = {}
    for axis in axes:
        found.update({label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)})
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    figure.legend(found.values(), found.keys(), loc="upper center", ncols=len(found))


def _save(figure: Any, folder: Path, name: str) -> None:
    figure.savefig(folder / f"{name}.png", dpi=150)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def _tails(found: Row) -> Any:
    figure, axes = _grid(2)
    figure.set_size_inches(9, 3.8)
    for axis, key, title in zip(axes, ("first", "between"), ("time to first mask", "time between masks"), strict=True):
        _axes(axis, title, "share that takes longer")
        axis.xaxis.set_major_formatter(FuncFormatter(_time))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share * 100:g} %"))
        for name, s in found["engines"].items():
            if s[f"{key}_tail"]:
                axis.plot(s[f"{key}_tail"], TAIL, color=COLOURS[name], label=NAMES[name])
    _legend(figure, axes)
    return figure


def _compilation(curves: Row, chosen: list[str]) -> Any:
    figure, axes = _grid(len(chosen))
    for axis, curve in zip(axes, chosen, strict=True):
        x = AXES["tools"] if curve == "tools" else "bytes of the schema"
        title = {"maskbench": "MaskBench's schemas", "tools": "structural tags"}.get(curve, curve.split(": ")[-1])
        _axes(axis, x, "time to first mask", title)
        for name, points in curves[curve].items():
            good = [(p["x"], p["first_us"]) for p in points if "first_us" in p]
            if good:
                line = "" if curve == "maskbench" else "-"
                axis.plot(*zip(*good, strict=True), line + "o", color=COLOURS[name], label=NAMES[name])
        _decades(axis)
    _legend(figure, axes)
    return figure


def _masks(curves: Row, chosen: list[str]) -> Any:
    """Medians of masks, cold and warm."""
    figure, axes = _grid(len(chosen), 2 if len(chosen) == 4 else 3)
    for axis, curve in zip(axes, chosen, strict=True):
        _axes(axis, AXES.get(curve, "bytes of the schema"), "median mask", curve.split(": ")[-1])
        for name, points in curves[curve].items():
            found = series(curve, points)
            label = "call" if "call" in found else next(iter(found), None)
            for walk, style in (("warm", "-o"), ("cold", "--o")):
                if label is not None:
                    good = [(x, walks[walk]["mask_us"]["p50"]) for x, walks in found[label]]
                    axis.plot(
                        *zip(*good, strict=True),
                        style,
                        color=COLOURS[name],
                        label=f"{NAMES[name]}, {walk}",
                        mfc="white",
                    )
        _decades(axis)
    _legend(figure, axes)
    return figure


def _batches(found: Row) -> Any:
    figure, axis = plt.subplots(figsize=(8, 3.4))
    for name, s in found["engines"].items():
        steps = [value * 1e3 for value in s["steps_ms"]]
        axis.plot(range(1, len(steps) + 1), steps, color=COLOURS[name], label=NAMES[name], linewidth=0.9)
    _axes(axis, "step", "all masks of the step")
    _decades(axis)
    axis.set_xscale("linear")
    _legend(figure, [axis])
    return figure


def _grammars(found: Row) -> Any:
    figure, axes = _grid(3)
    figure.set_size_inches(11, 4.2)
    names = list(found["grammars"])[::-1]
    panels = {"first_us": "time to first mask", "cold_us": "mask and commit, cold", "warm_us": "mask and commit, warm"}
    for axis, (key, title) in zip(axes, panels.items(), strict=True):
        for engine in found["grammars"][names[0]]:
            rows = [(found["grammars"][n][engine], i) for i, n in enumerate(names)]
            good = [(s[key]["mean"], i) for s, i in rows if key in s]
            if good:
                axis.plot(*zip(*good, strict=True), "o", color=COLOURS[engine], label=NAMES[engine], markersize=6)
        axis.set(xscale="log", xlabel=f"{title}, mean", yticks=range(len(names)))
        axis.set_yticklabels(names if axis is axes[0] else [])
        axis.xaxis.set_major_formatter(FuncFormatter(_time))
        axis.xaxis.set_minor_formatter(NullFormatter())
    _legend(figure, axes)
    return figure
