"""Clients of a server: normal ones, whose answers are checked, beside hostile and clumsy ones.

`tests/test_siege.py` runs them for seconds against a fake model, `benchmarks/siege.py` for as long as one likes against
a real one.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import httpx

#: Statuses that a hostile client may get: its request is wrong, too large, too late, or the server is busy with it.
FAIR = frozenset({200, 400, 401, 404, 405, 408, 413, 429, 503, 504})

Check: TypeAlias = Callable[[dict[str, Any]], bool]


@dataclass
class Figures:
    """What clients have seen. ``seconds``: of each normal answer, also ``by_kind``; ``wrong``: those that were not
    right; ``statuses``: of hostile requests, by kind."""

    seconds: list[float] = field(default_factory=list)
    by_kind: dict[str, list[float]] = field(default_factory=dict)
    health: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    statuses: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def unfair(self) -> dict[str, list[str]]:
        """What hostile clients must not get: that the server failed, or no answer."""
        fair = {str(status) for status in FAIR} | {"gone"}
        return {kind: sorted(set(got) - fair) for kind, got in self.statuses.items() if set(got) - fair}

    def note(self, kind: str, status: object) -> None:
        self.statuses.setdefault(kind, Counter())[str(status)] += 1


def _message(answer: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = answer["choices"][0]["message"]
    return message


def _is_weather(answer: dict[str, Any]) -> bool:
    value = json.loads(_message(answer)["content"])
    return set(value) == {"city", "celsius"} and value["city"] in ("Paris", "Oslo") and type(value["celsius"]) is int


def _is_call(answer: dict[str, Any]) -> bool:
    calls = _message(answer)["tool_calls"]
    arguments = [json.loads(call["function"]["arguments"]) for call in calls]
    return bool(calls) and all(value["room"] in ("kitchen", "office") for value in arguments)


_WEATHER = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Oslo"]}, "celsius": {"type": "integer", "minimum": -50, "maximum": 50}},
    "required": ["city", "celsius"],
    "additionalProperties": False,
}
_LIGHTS = {
    "type": "function",
    "function": {
        "name": "set_lights",
        "parameters": {
            "type": "object",
            "properties": {"room": {"enum": ["kitchen", "office"]}},
            "required": ["room"],
            "additionalProperties": False,
        },
    },
}
_NORMAL: list[tuple[str, dict[str, Any], Check]] = [
    (
        "schema",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "weather", "schema": _WEATHER}}},
        _is_weather,
    ),
    ("tool", {"tools": [_LIGHTS], "tool_choice": "required", "max_tokens": 100}, _is_call),
    ("regex", {"structured_outputs": {"regex": "(yes|no), [0-9]{4}"}}, lambda answer: bool(
        re.fullmatch("(yes|no), [0-9]{4}", _message(answer)["content"]))),
    ("choice", {"structured_outputs": {"choice": ["red", "green"]}}, lambda answer: _message(answer)["content"] in (
        "red", "green")),
    ("words", {}, lambda answer: answer["choices"][0]["finish_reason"] in ("stop", "length")),
]  # fmt: skip


class Siege:
    """Clients of the server at ``url``, which serves ``model``."""

    def __init__(self, url: str, model: str, *, seed: int = 0, slow_readers: int = 4, unfinished: int = 20) -> None:
        self._url = url
        self._model = model
        self._random = random.Random(seed)
        self._fresh = itertools.count()
        self._slow_readers = slow_readers
        self._unfinished = unfinished
        address = urlsplit(url)
        self._address = (address.hostname or "127.0.0.1", address.port or 80)

    async def run(self, seconds: float, *, normal: int = 4, hostile: bool, pause: float = 0.05) -> Figures:
        """Has clients ask for ``seconds``, or the time that the last of their requests takes."""
        figures = Figures()
        end = time.monotonic() + seconds
        limits = httpx.Limits(max_connections=1000)
        async with httpx.AsyncClient(timeout=400, limits=limits) as http:
            tasks = [self._normal(http, figures, end, index, pause) for index in range(normal)]
            if normal:
                tasks.append(self._health(http, figures, end))
            if hostile:
                tasks += [self._hostile(http, figures, end, kind, make) for kind, make in self._bodies().items()]
                tasks += [self._raw(figures, end, kind, attack) for kind, attack in self._attacks()]
            await asyncio.gather(*tasks)
        return figures

    # Normal clients

    async def _normal(self, http: httpx.AsyncClient, figures: Figures, end: float, index: int, pause: float) -> None:
        for turn in itertools.count(index):
            if time.monotonic() > end:
                return
            kind, options, check = _NORMAL[turn % len(_NORMAL)]
            started = time.perf_counter()
            try:
                answer = await http.post(f"{self._url}/v1/chat/completions", json=self._body(**options))
                figures.seconds.append(time.perf_counter() - started)
                figures.by_kind.setdefault(kind, []).append(figures.seconds[-1])
                if answer.status_code != 200 or not check(answer.json()):
                    figures.wrong.append(f"{kind}: {answer.status_code} {answer.text[:300]}")
            except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
                figures.wrong.append(f"{kind}: {error!r}")
            await asyncio.sleep(pause)

    async def _health(self, http: httpx.AsyncClient, figures: Figures, end: float) -> None:
        while time.monotonic() < end:
            started = time.perf_counter()
            answer = await http.get(f"{self._url}/health")
            figures.health.append(time.perf_counter() - started)
            if answer.status_code != 200:
                figures.wrong.append(f"health: {answer.status_code}")
            await asyncio.sleep(0.1)

    def _body(self, text: str = "How is the weather in Paris?", **options: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": text}]
        return {"model": self._model, "messages": messages, "max_tokens": 32, "temperature": 0, **options}

    # Hostile bodies

    def _bodies(self) -> dict[str, Callable[[], bytes]]:
        """A body of each kind, new each time, so that nothing is known of it."""

        def of(**options: Any) -> bytes:
            return json.dumps(self._body(**options)).encode()

        def chat(messages: Any) -> bytes:
            return json.dumps({"model": self._model, "messages": messages}).encode()

        user = {"role": "user", "content": "x"}

        # What is refused before it is understood may be the same each time: a siege is to burden the server.
        def same(body: bytes) -> Callable[[], bytes]:
            return lambda: body

        return {
            "triggers": lambda: of(structured_outputs={"structural_tag": _triggers(self._random, 700)}, max_tokens=200),
            "slow masks": lambda: of(structured_outputs={"structural_tag": _triggers(self._random, 300)}, n=2),
            "slow schema": lambda: of(guided_json=_slow_schema(next(self._fresh))),
            "slow tool": lambda: of(tools=[_tool(_slow_schema(next(self._fresh)))], tool_choice="required"),
            "large enum": lambda: of(guided_json={"enum": [f"v{next(self._fresh)}x{i}" for i in range(20_000)]}),
            "large pattern": lambda: of(guided_regex=f"(a|b){{{900 + next(self._fresh) % 100}}}(c{{1,900}}d){{1,900}}"),
            "wide grammar": lambda: of(
                guided_grammar="root ::= " + " | ".join(f'"w{next(self._fresh)}"' for _ in range(5_000))
            ),
            "ambiguous grammar": lambda: of(
                guided_grammar=f'root ::= root root root | root root | "a" | "b{next(self._fresh)}"', max_tokens=200
            ),
            "unsatisfiable": same(of(guided_json={"allOf": [{"type": "integer"}, {"type": "string"}]})),
            "unknown keys": same(json.dumps({**self._body(), **{f"key{i}": i for i in range(150_000)}}).encode()),
            "too many values": same(b'{"model": "x", "messages": [' + b"[]," * 1_000_000 + b"[]]}"),
            "bad messages": same(chat([{"role": "user", "contents": "x"}] * 20_000)),
            "bad parts": same(chat([{"role": "user", "content": [{"type": "x"}] * 20_000}])),
            "many messages": same(chat([user] * 20_000)),
            "long prompt": same(of(text="why " * 900_000)),
            "deep": same(b'{"a":' * 100_000),
            "no JSON": same(b"{" + b"x" * 1000),
            "too large": same(b" " * (6 << 20)),
            "many answers": same(of(n=1_000_000_000)),
            "many digits": same(b'{"model": 1' + b"1" * 100_000 + b"}"),
        }  # fmt: skip

    async def _hostile(
        self, http: httpx.AsyncClient, figures: Figures, end: float, kind: str, make: Callable[[], bytes]
    ) -> None:
        head = {"content-type": "application/json"}
        while time.monotonic() < end:
            body = await asyncio.to_thread(make)
            try:
                answer = await http.post(f"{self._url}/v1/chat/completions", content=body, headers=head)
                figures.note(kind, answer.status_code)
                if answer.status_code != 200:
                    assert set(answer.json()) == {"error"}
                # Whoever is told to come back later does, if a little early.
                await asyncio.sleep(min(1.0, float(answer.headers.get("retry-after", 0.2))))
            except (httpx.HTTPError, ValueError, AssertionError) as error:
                figures.note(kind, repr(error)[:100])
                await asyncio.sleep(0.2)

    # Hostile connections

    def _attacks(self) -> Iterator[tuple[str, Callable[[], Awaitable[object]]]]:
        for _ in range(self._unfinished):
            yield "unfinished body", lambda: self._talk(self._head(1000) + b'{"model"', wait=1.0)
            yield "unfinished head", lambda: self._talk(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x", wait=1.0)
        for _ in range(self._slow_readers):
            yield "does not read", lambda: self._ask_and_leave(read=False)
            yield "goes away", lambda: self._ask_and_leave(read=True)
        yield "no HTTP", lambda: self._talk(b"\x16\x03\x01 nonsense\r\n\r\n", wait=1.0)
        yield (
            "wrong type",
            lambda: self._talk(self._head(2).replace(b"application/json", b"text/plain") + b"{}"),
        )

    async def _raw(self, figures: Figures, end: float, kind: str, attack: Callable[[], Awaitable[object]]) -> None:
        while time.monotonic() < end:
            try:
                figures.note(kind, await attack())
            except OSError as error:
                figures.note(kind, repr(error)[:100])
            await asyncio.sleep(0.2)

    def _head(self, length: int) -> bytes:
        return (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {length}\r\n\r\n"
        ).encode()

    async def _talk(self, data: bytes, wait: float = 30.0) -> object:
        """Sends bytes. Returns the status, or that none came in time, after which the client goes."""
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            writer.write(data)
            await writer.drain()
            line = await asyncio.wait_for(reader.readline(), wait)
            return line.split()[1].decode() if line else "gone"
        except (asyncio.TimeoutError, ConnectionError):
            return "gone"
        finally:
            writer.close()

    async def _ask_and_leave(self, read: bool) -> object:
        body = json.dumps({**self._body(), "max_tokens": 64, "stream": True}).encode()
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            writer.write(self._head(len(body)) + body)
            await writer.drain()
            if read:
                await asyncio.wait_for(reader.read(300), 30)
            else:
                await asyncio.sleep(2.0)
            return "gone"
        except (asyncio.TimeoutError, ConnectionError):
            return "gone"
        finally:
            writer.transport.abort()


def _triggers(source: random.Random, count: int) -> dict[str, Any]:
    """A structural tag whose masks take long: so many triggers that free text must not hold."""
    names = [f"{source.choice('abcdefgh')}{source.randrange(10**6)}q{index}" for index in range(count)]
    content = {"type": "json_schema", "json_schema": True}
    tags = [{"type": "tag", "begin": name, "content": content, "end": "</c>"} for name in names]
    return {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": names, "tags": tags}}


def _slow_schema(fresh: int) -> dict[str, Any]:
    contains = [{"contains": {"type": "string", "pattern": f"x{fresh}a{i}.*y"}} for i in range(12)]
    return {"type": "object", "properties": {"a": {"type": "array", "allOf": contains, "maxItems": 9}}}


def _tool(parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}
