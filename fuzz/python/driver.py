"""Runs statements of hypothesis under atheris: the bytes of a fuzzer, which follows coverage, make their examples.

    pip install atheris
    mkdir -p fuzz/work/tags
    python fuzz/python/tags.py fuzz/work/tags -rss_limit_mb=1024 -timeout=10 -max_total_time=3600

What it finds is replayed by the same line with the file in place of the folder.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def run(module: str, package: str, skipped: tuple[str, ...] = ()) -> None:
    """Feeds all statements of a test module; the modules of `package` are followed."""
    import atheris

    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    with atheris.instrument_imports(include=[package]):
        tests = importlib.import_module(module)
    statements = _statements(tests, skipped)

    def one_input(data: bytes) -> None:
        if data:
            statements[data[0] % len(statements)](data[1:])

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


def _statements(tests: ModuleType, skipped: tuple[str, ...]) -> list[Callable[[bytes], Any]]:
    found = [test for name, test in sorted(vars(tests).items()) if name.startswith("test_") and name not in skipped]
    return [test.hypothesis.fuzz_one_input for test in found if hasattr(test, "hypothesis")]
