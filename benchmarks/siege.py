"""Do normal requests go on while a server is under siege?

    python benchmarks/siege.py [--seconds 3600] [--model smollm2-135m] [--slots 8] [--clients 4]

Starts `punchcard serve` in a process of its own and has normal clients ask it, one request after the other: first
alone, then beside hostile and clumsy ones (`tests/siege_load.py`) in a third process, then alone again. Every normal
answer is checked.

Printed as JSON, and written to ``results/siege.json``: p50 and p99 of normal requests and of ``/health`` in each phase
(seconds), normal answers that were not right, what hostile clients got by status, how many of these were 5xx, the
memory of the server over time (MiB), and what it holds in the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from serving import start  # noqa: E402
from siege_load import Figures, Siege  # noqa: E402

_SAMPLE_SECONDS = 5.0


def _resident(pid: int) -> float:
    """MiB that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


class Memory:
    """Samples a process's memory until it is stopped."""

    def __init__(self, pid: int) -> None:
        self.samples: list[tuple[float, float]] = []
        self._pid = pid
        self._started = time.monotonic()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            self.samples.append((round(time.monotonic() - self._started), round(_resident(self._pid))))


def _times(values: list[float]) -> dict[str, float]:
    p50, p99 = np.percentile(values, [50, 99])
    return {"p50": round(float(p50), 3), "p99": round(float(p99), 3), "max": round(max(values), 3)}


def _phase(figures: Figures) -> dict[str, Any]:
    return {
        "requests": len(figures.seconds),
        "seconds": _times(figures.seconds),
        "by_kind": {kind: _times(values) for kind, values in figures.by_kind.items()},
        "health": _times(figures.health),
        "wrong": figures.wrong[:20],
        "wrong_count": len(figures.wrong),
    }


def _attack(url: str, model: str, seconds: float) -> None:
    """The hostile clients. They yield to the server: what they cost is not to be measured."""
    os.nice(5)
    figures = asyncio.run(Siege(url, model, seed=int(time.time())).run(seconds, normal=0, hostile=True))
    print(json.dumps({"statuses": figures.statuses, "unfair": figures.unfair}))


def _besiege(siege: Siege, options: argparse.Namespace, url: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--attack", url, "--model", options.model, "--seconds", str(options.seconds)]
    attackers = subprocess.Popen(command, stdout=subprocess.PIPE)
    phase = _phase(asyncio.run(siege.run(options.seconds, normal=options.clients, hostile=False)))
    told = json.loads(attackers.communicate(timeout=900)[0])
    errors: Counter[str] = Counter()
    for statuses in told["statuses"].values():
        errors.update({status: count for status, count in statuses.items() if status.startswith("5")})
    return {**phase, "hostile": told["statuses"], "hostile_5xx": dict(errors), "unfair": told["unfair"]}


def _left(url: str) -> dict[str, float]:
    """What the server still has to do."""
    text = httpx.get(f"{url}/metrics", timeout=60).text
    names = ("punchcard_running", "punchcard_waiting")
    return {name: float(line.split()[1]) for line in text.splitlines() for name in names if line.startswith(name)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--seconds", type=float, default=3600, help="of the siege")
    parser.add_argument("--quiet-seconds", type=float, default=120, help="of each quiet phase")
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--clients", type=int, default=4, help="normal ones")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "siege.json")
    parser.add_argument("--attack", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        _attack(options.attack, options.model, options.seconds)
        return
    process, base = start(options.model, options.slots)
    url = base.removesuffix("/v1")
    try:
        siege = Siege(url, options.model)
        asyncio.run(siege.run(5, normal=options.clients, hostile=False))  # grammars are compiled, prompts are read
        memory = Memory(process.pid)
        quiet = _phase(asyncio.run(siege.run(options.quiet_seconds, normal=options.clients, hostile=False)))
        besieged = _besiege(siege, options, url)
        after = _phase(asyncio.run(siege.run(options.quiet_seconds, normal=options.clients, hostile=False)))
        memory.stop()
        document = {
            "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
            "settings": {name: getattr(options, name) for name in ("model", "seconds", "slots", "clients")},
            "p99_ratio": round(besieged["seconds"]["p99"] / quiet["seconds"]["p99"], 2),
            "quiet": quiet,
            "siege": besieged,
            "after": after,
            "left": _left(url),
            "memory_mib": memory.samples,
        }
    finally:
        process.terminate()
        process.wait(30)
    text = json.dumps(document, indent=1)
    print(text)
    options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
