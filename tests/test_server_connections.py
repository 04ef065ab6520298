"""Connections that come to nothing: heads and bodies that are not finished, answers that are not read, and too many."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from server_process import FakeBatchModel, counting, eventually, serving

from punchcard.errors import PunchcardError
from punchcard.server.options import ServerOptions

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from punchcard.server.connections import reserve  # noqa: E402

OPTIONS = ServerOptions(read_seconds=1, max_request_bytes=300_000, connections=40, max_tokens=4000)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with serving(FakeBatchModel(counting), OPTIONS) as running:
        yield running


def connect(server: Any) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def head(length: int, *more: str) -> bytes:
    lines = [
        "POST /v1/chat/completions HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def answer(connection: socket.socket) -> tuple[int, Any]:
    """The status and the body of an answer, after which the server closes the connection."""
    data = b""
    while piece := connection.recv(65536):
        data += piece
    begin, _, body = data.partition(b"\r\n\r\n")
    return int(begin.split()[1]), json.loads(body)


def chat(**options: Any) -> bytes:
    body = {"model": "fake", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 8, **options}
    return json.dumps(body).encode()


def is_well(server: Any) -> bool:
    sent = httpx.post(
        f"{server.url}/v1/chat/completions", content=chat(), headers={"content-type": "application/json"}, timeout=30
    )
    return bool(sent.status_code == 200 and httpx.get(f"{server.url}/health").status_code == 200)


@pytest.mark.parametrize("body", [b"", b'{"model": "fake"', b" " * 299_000])
def test_a_body_that_is_not_finished(server: Any, body: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(head(299_999) + body)
        assert is_well(server)
        status, told = answer(connection)
        assert status == 408
        assert told["error"]["type"] == "timeout_error"
        assert "within 1 seconds" in told["error"]["message"]


def test_a_body_that_trickles_in_has_no_more_time(server: Any) -> None:
    with connect(server) as connection:
        connection.sendall(head(299_999))
        started = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() < started + 30:
                connection.sendall(b" ")
                time.sleep(0.05)
        assert is_well(server)


@pytest.mark.parametrize("begin", [b"", b"POST /v1/chat", b"GET /health HTTP/1.1\r\nHost: x\r\nA: "])
def test_a_head_that_is_not_finished(server: Any, begin: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(begin)
        assert is_well(server)
        assert connection.recv(1000) == b""


def test_a_second_head_that_is_not_finished(server: Any) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /hea")
        data = b""
        while piece := connection.recv(1000):
            data += piece
        assert data.count(b"HTTP/1.1 ") == 1


def test_a_connection_that_is_used_again(server: Any) -> None:
    with httpx.Client() as client:
        for _ in range(3):
            assert client.get(f"{server.url}/health").status_code == 200
            time.sleep(0.5)


@pytest.mark.parametrize("more", [(), ("Connection: close",)])
def test_a_body_that_is_too_large_gets_an_answer(server: Any, more: tuple[str, ...]) -> None:
    body = b" " * 4_000_000
    with connect(server) as connection:
        connection.sendall(head(len(body), *more) + body)
        status, told = answer(connection)
        assert status == 413
        assert told["error"]["code"] == "request_too_large"
    # Also where the size is not said, and where the client waits to be asked for the body.
    chunks = (b" " * 1000 for _ in range(4_000))
    sent = httpx.post(f"{server.url}/v1/responses", content=chunks, headers={"content-type": "application/json"})
    assert sent.status_code == 413
    with connect(server) as connection:
        connection.sendall(head(len(body), "Expect: 100-continue"))
        assert answer(connection)[0] == 413


def test_an_answer_that_is_not_read_is_given_up() -> None:
    # Long pieces, so that the buffers of the connection are soon full.
    with serving(FakeBatchModel(counting), OPTIONS) as server, connect(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        body = chat(max_tokens=4000, stream=True, logprobs=True, top_logprobs=20, n=8)
        connection.sendall(head(len(body)) + body)
        assert eventually(lambda: server.service._in_flight == 8)
        assert eventually(lambda: server.service._in_flight == 0, 60)
        assert is_well(server)


def test_too_many_connections(server: Any) -> None:
    held = [connect(server) for _ in range(OPTIONS.connections)]
    try:
        with connect(server) as one_more:
            status, told = answer(one_more)
            assert status == 503
            assert "connections" in told["error"]["message"]
    finally:
        for connection in held:
            connection.close()
    assert eventually(lambda: is_well(server))


def test_garbage(server: Any) -> None:
    for data in (b"\x16\x03\x01\x00", b"x" * 100_000, b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 10, b"POST x\r\n\r\n"):
        with connect(server) as connection:
            connection.sendall(data)
            with contextlib.suppress(ConnectionError):
                connection.recv(1000)
    assert is_well(server)


def test_large_bodies_do_not_hold_small_ones_up() -> None:
    options = ServerOptions(max_tokens=8)
    bad = json.dumps({"model": "fake", "messages": [{"contents": "x"}] * 60_000}).encode()
    keys = json.dumps({"model": "fake", **{f"k{i}": i for i in range(150_000)}}).encode()
    headers = {"content-type": "application/json"}
    with serving(FakeBatchModel(counting), options) as server, concurrent.futures.ThreadPoolExecutor(8) as pool:
        url = f"{server.url}/v1/chat/completions"
        large = [pool.submit(httpx.post, url, content=body, headers=headers, timeout=120) for body in (bad, keys) * 4]
        answered = 0
        while not all(sent.done() for sent in large):
            assert is_well(server)
            answered += 1
        assert answered > 2
        assert {sent.result().status_code for sent in large} == {400}


def test_a_port_that_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PunchcardError, match=f"cannot listen on 127.0.0.1, port {port}") as caught:
            reserve("127.0.0.1", port)
        assert "--port" in str(caught.value)


def test_a_host_that_is_not_here() -> None:
    with pytest.raises(PunchcardError, match=r"cannot listen on 192\.0\.2\.1"):
        reserve("192.0.2.1", 0)
    with pytest.raises(PunchcardError, match="cannot listen on no such host"):
        reserve("no such host", 0)


def test_a_port_is_found_and_kept() -> None:
    port, held = reserve("127.0.0.1", 0)
    assert port > 0
    for reserved in held:
        reserved.close()
