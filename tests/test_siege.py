"""Hostile and clumsy clients beside normal ones: all normal requests are answered rightly, and nothing is left over."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import pytest
from server_process import FakeBatchModel, counting, eventually, serving

from punchcard.server.options import ServerOptions

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from siege_load import Siege  # noqa: E402

SECONDS = float(os.environ.get("PUNCHCARD_SIEGE_SECONDS", "12"))
OPTIONS = ServerOptions(
    slots=4, max_tokens=200, compile_seconds=3, request_seconds=60, read_seconds=5, mask_seconds=3
)  # fmt: skip


def _resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0


def test_normal_requests_are_answered_under_siege() -> None:
    with serving(FakeBatchModel(counting, seconds=0.002), OPTIONS) as server:
        siege = Siege(server.url, "fake", unfinished=10)
        quiet = asyncio.run(siege.run(1, hostile=False))
        assert not quiet.wrong
        figures = asyncio.run(siege.run(SECONDS, hostile=True))
        assert not figures.wrong
        assert len(figures.seconds) >= 4
        assert not figures.unfair, figures.unfair
        # Every kind of hostile client was there.
        assert len(figures.statuses) == 26

        scheduler = server.service.scheduler
        assert scheduler.alive
        assert eventually(lambda: (scheduler.state.running, scheduler.state.waiting) == (0, 0), 90)
        assert eventually(lambda: server.service._in_flight == 0, 90)
        gc.collect()
        held = _resident()
        again = asyncio.run(siege.run(1, hostile=False))
        assert not again.wrong
        assert _resident() < held + (64 << 20)
