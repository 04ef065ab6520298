"""How many instructions compiling and masks take, against the figures in ``benchmarks/instructions.json``.

    python scripts/instructions.py [--update] [--verbose] [CASE...]

Seconds vary with the machine and with what else it does; instructions hardly do, so a change that makes the engine
slower is seen at once. Each case of `instruction_cases.py` is run by the example ``replay`` of ``punchcard-engine``
under valgrind, which counts the instructions of each phase: ``vocabulary``, ``compile``, ``cold`` (a mask before each
token, of a grammar that was just compiled) and ``warm`` (the same again).

Fails where a phase takes more than 30 % above its figure and 20,000 instructions more; says where figures should be
renewed, with ``--update``, because a phase takes 30 % less. Without valgrind it does nothing, and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from instruction_cases import CASES, vocabulary

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "benchmarks" / "instructions.json"
PHASES = ["vocabulary", "compile", "cold", "warm"]
#: How far a phase may be from its figure, and by how many instructions at least: warm masks take few.
BOUND, SLACK = 0.30, 20_000

Counts = dict[str, int]


def build() -> Path:
    """The path of the example, in a release build."""
    command = ["cargo", "build", "--release", "-p", "punchcard-engine", "--example", "replay"]
    done = subprocess.run([*command, "-q", "--message-format=json"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    built = [json.loads(line) for line in done.stdout.splitlines()]
    return next(Path(message["executable"]) for message in built if message.get("executable"))


def inclusive(profile: str) -> Counts:
    """Instructions of each phase, with all that it calls, from what callgrind writes.

    A function is named ``(number) name`` the first time, and by its number alone afterwards. A line ``calls=`` is
    followed by one that ends with the instructions of these calls.
    """
    names: dict[str, str] = {}
    counts: Counts = {}
    called, is_cost_of_call = "", False
    for line in profile.splitlines():
        if named := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line):
            if named[3]:
                names[named[2]] = named[3]
            called = named[2] if named[1] else called
        elif line.startswith("calls="):
            is_cost_of_call = True
        elif is_cost_of_call:
            is_cost_of_call = False
            if phase := re.search(r"replay::phase_(\w+?)(?:::h[0-9a-f]+)?$", names[called]):
                counts[phase[1]] = counts.get(phase[1], 0) + int(line.split()[-1])
    return counts


def measure(replay: Path, folder: Path, name: str) -> Counts:
    """The instructions of one case by phase."""
    out = folder / f"{name}.callgrind"
    tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--max-stackframe=300000000", "-q"]
    run = [*tool, str(replay), str(folder / "vocabulary.json"), str(folder / "cases.jsonl"), name]
    done = subprocess.run(run, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: the replay failed\n{done.stderr[-2000:]}")
    counts = inclusive(out.read_text())
    if missing := set(PHASES) - counts.keys():
        raise SystemExit(f"{name}: no instructions were counted for {', '.join(sorted(missing))}")
    return {phase: counts[phase] for phase in PHASES}


def main() -> int:
    known = [case["name"] for case in CASES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the figures instead of comparing with them")
    parser.add_argument("--verbose", action="store_true", help="print all figures")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"some of: {' '.join(known)}")
    options = parser.parse_args()
    if unknown := set(options.cases) - set(known):
        parser.error(f"no case is called {', '.join(sorted(unknown))}")
    if shutil.which("valgrind") is None:
        print("instructions: not counted, because valgrind is not installed")
        return 0

    chosen = options.cases or known
    replay = build()
    with tempfile.TemporaryDirectory(prefix="punchcard-") as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(name)
        (folder / "vocabulary.json").write_text(json.dumps(vocabulary()), encoding="utf-8")
        lines = (json.dumps(case, ensure_ascii=False) + "\n" for case in CASES)
        (folder / "cases.jsonl").write_text("".join(lines), encoding="utf-8")
        measured = dict(zip(chosen, pool.map(lambda case: measure(replay, folder, case), chosen), strict=True))

    # All cases have the same vocabulary.
    found = {"vocabulary": {"vocabulary": measured[chosen[0]]["vocabulary"]}}
    found.update({case: {phase: counts[phase] for phase in PHASES[1:]} for case, counts in measured.items()})
    figures: dict[str, Counts] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if options.update:
        figures = {case: {**figures, **found}[case] for case in ["vocabulary", *known] if case in {**figures, **found}}
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"instructions: {len(found)} entries of {FIGURES.relative_to(ROOT)} written")
        return 0
    return compare(found, figures, options.verbose)


def compare(found: dict[str, Counts], figures: dict[str, Counts], verbose: bool) -> int:
    slower = 0
    for case, counts in found.items():
        for phase, count in counts.items():
            figure = figures.get(case, {}).get(phase)
            what, change = f"{case}, {phase}", f"{count:,} instructions, {figure or 0:,} expected"
            if figure is None:
                print(f"instructions: {what}: {count:,}, and no figure to compare with: --update writes it")
                slower += 1
            elif count > figure * (1 + BOUND) + SLACK:
                print(f"instructions: SLOWER {what}: {change} ({count / figure - 1:+.0%})")
                slower += 1
            elif count < figure * (1 - BOUND) - SLACK:
                print(f"instructions: faster {what}: {change} ({count / figure - 1:+.0%}); --update renews the figure")
            elif verbose:
                print(f"instructions: {what}: {change} ({count / figure - 1:+.1%})")
    print(f"instructions: {len(found)} entries compared, {slower} of their phases slower or unknown")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
