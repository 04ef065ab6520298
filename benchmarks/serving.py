"""How does the server bear many clients at once, with constraints and without?

    python benchmarks/serving.py [--model smollm2-135m] [--clients 8] [--seconds 60] [--slots 8] [--mode MODE ...]

Starts `punchcard serve` in a process of its own, and has N clients ask it, one request after the other, for T seconds.
Modes:

- tools: the 40 requests in ``data/tool_calls.json`` over the tools of ``examples/home.py``, ``tool_choice="required"``;
- auto: the same, but the model may answer in words;
- json: the same requests, answered under a JSON Schema;
- free: as auto, asked of a server that enforces nothing (``--no-grammar``);
- text: the same requests, answered in at most 48 tokens of words, without any constraint.

Printed, and written to ``results/serving.json``: requests and tokens a second, p50 and p99 of the latency (seconds) and
of the time to the first token (tools are streamed), errors by status, and for tools how many answers call just the
expected tools. ``--url`` asks a server that runs already.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from punchcard import load_tools

HERE = Path(__file__).parent
MODES = ("tools", "auto", "free", "json", "text")
SCHEMA = {
    "type": "object",
    "properties": {
        "topic": {"enum": ["lights", "heating", "locks", "music", "shopping", "reminder", "other"]},
        "room": {"type": ["string", "null"], "maxLength": 20},
        "urgent": {"type": "boolean"},
    },
    "required": ["topic", "room", "urgent"],
    "additionalProperties": False,
}


@dataclass
class Figures:
    """What one mode gave. Times are seconds."""

    latencies: list[float] = field(default_factory=list)
    first_tokens: list[float] = field(default_factory=list)
    tokens: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    right: int = 0
    judged: int = 0
    seconds: float = 0.0

    def row(self) -> dict[str, Any]:
        done = len(self.latencies)
        return {
            "requests": done,
            "requests_per_second": round(done / self.seconds, 3),
            "tokens_per_second": round(self.tokens / self.seconds, 1),
            "latency_p50": _percentile(self.latencies, 50),
            "latency_p99": _percentile(self.latencies, 99),
            "first_token_p50": _percentile(self.first_tokens, 50),
            "errors": dict(self.errors),
            "right_tools": round(self.right / self.judged, 3) if self.judged else None,
        }


def _percentile(values: list[float], percent: int) -> float | None:
    return round(float(np.percentile(values, percent)), 3) if values else None


class Clients:
    """N clients that ask one request after the other."""

    def __init__(self, url: str, model: str, key: str | None) -> None:
        self._url = url
        self._model = model
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._requests = json.loads((HERE / "data" / "tool_calls.json").read_text(encoding="utf-8"))
        self._tools = [tool.definition() for tool in load_tools(HERE.parent / "examples" / "home.py")]

    async def run(self, mode: str, clients: int, seconds: float) -> Figures:
        figures = Figures()
        started = time.perf_counter()
        limits = httpx.Limits(max_connections=clients)
        async with httpx.AsyncClient(timeout=600, limits=limits, headers=self._headers) as http:
            turn = iter(range(1 << 60))

            async def client() -> None:
                while time.perf_counter() - started < seconds:
                    await self._ask(http, mode, self._requests[next(turn) % len(self._requests)], figures)

            await asyncio.gather(*(client() for _ in range(clients)))
        figures.seconds = time.perf_counter() - started
        return figures

    async def _ask(self, http: httpx.AsyncClient, mode: str, request: Any, figures: Figures) -> None:
        body = self._body(mode, request["query"])
        started = time.perf_counter()
        names: list[str] = []
        first = None
        try:
            async with http.stream("POST", f"{self._url}/chat/completions", json=body) as answer:
                if answer.status_code != 200:
                    figures.errors[str(answer.status_code)] += 1
                    await asyncio.sleep(float(answer.headers.get("retry-after", 0.1)))
                    return
                async for line in answer.aiter_lines():
                    if not line.startswith("data: {"):
                        continue
                    chunk = json.loads(line[6:])
                    if "error" in chunk:
                        figures.errors[str(chunk["error"]["type"])] += 1
                        return
                    if chunk.get("usage"):
                        figures.tokens += chunk["usage"]["completion_tokens"]
                    for choice in chunk["choices"]:
                        delta = choice["delta"]
                        if first is None and (delta.get("content") or delta.get("tool_calls")):
                            first = time.perf_counter() - started
                        for call in delta.get("tool_calls") or ():
                            if call["function"].get("name"):
                                names.append(call["function"]["name"])
        except httpx.HTTPError as error:
            figures.errors[type(error).__name__] += 1
            return
        figures.latencies.append(time.perf_counter() - started)
        if first is not None:
            figures.first_tokens.append(first)
        if mode in ("tools", "auto", "free"):
            figures.judged += 1
            wanted = [sorted(call["name"] for call in calls) for calls in request["calls"]] or [[]]
            figures.right += sorted(names) in wanted

    def _body(self, mode: str, query: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "user", "content": query}],
            "temperature": 0,
            "max_tokens": 48 if mode == "text" else 200,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if mode in ("tools", "auto", "free"):
            body["tools"] = self._tools
            body["tool_choice"] = "required" if mode == "tools" else "auto"
        if mode == "json":
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "intent", "schema": SCHEMA}}
        return body


def start(model: str, slots: int, *, grammar: bool = True) -> tuple[subprocess.Popen[bytes], str]:
    """Starts a server, and waits until it serves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", "from punchcard.cli import main; main()", "serve", "--model", model]
    command += ["--port", str(port), "--slots", str(slots), "--log-level", "warning"]
    command += [] if grammar else ["--no-grammar"]
    process = subprocess.Popen(command)
    for _ in range(1200):
        if process.poll() is not None:
            raise SystemExit(f"the server ended with {process.returncode}")
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200:
                return process, f"http://127.0.0.1:{port}/v1"
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    process.terminate()
    raise SystemExit("the server did not start within two minutes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--seconds", type=float, default=60, help="for each mode and number of clients")
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--mode", choices=MODES, nargs="+", default=MODES)
    parser.add_argument("--url", help="of a server that runs, such as http://127.0.0.1:8000/v1")
    parser.add_argument("--key", default=os.environ.get("PUNCHCARD_API_KEY"))
    parser.add_argument("--output", type=Path, default=HERE / "results" / "serving.json")
    options = parser.parse_args()
    rows = []
    print("mode   clients  req/s  tok/s    p50    p99  first  right  errors")
    for mode in options.mode:
        process, url = None, options.url
        if url is None:
            process, url = start(options.model, options.slots, grammar=mode != "free")
        try:
            asked = Clients(url, options.model, options.key)
            for clients in options.clients:
                row = asyncio.run(asked.run(mode, clients, options.seconds)).row()
                settings = {"slots": options.slots, "seconds": options.seconds}
                rows.append({"model": options.model, "mode": mode, "clients": clients, **settings, **row})
                right = "-" if row["right_tools"] is None else f"{100 * row['right_tools']:.0f} %"
                print(
                    f"{mode:6} {clients:7} {row['requests_per_second']:6.2f} {row['tokens_per_second']:6.1f} "
                    f"{row['latency_p50']!s:>6} {row['latency_p99']!s:>6} {row['first_token_p50']!s:>6} {right:>6}  "
                    f"{row['errors'] or 'none'}",
                    flush=True,
                )
        finally:
            if process is not None:
                process.terminate()
                process.wait(30)
    machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    document = {"machine": machine, "rows": rows}
    options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
