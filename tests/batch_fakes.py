"""Stand-ins for what answers the documents of a batch: one that other processes can import, and a server."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Writer:
    """Says how long a text is, and in which process. Some texts are bad for it: ``poison`` kills it each time,
    ``poison once`` the first time (which it notes in ``folder``), ``bad`` is an error."""

    def __init__(self, folder: str, threads: int = 1) -> None:
        self._folder = Path(folder)

    def __call__(self, text: str) -> str:
        if text == "poison" or (text == "poison once" and not (self._folder / "died").exists()):
            (self._folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "bad":
            raise ValueError("this one I do not like")
        time.sleep(0.01)
        return json.dumps({"length": len(text), "process": os.getpid()})


def open_nothing() -> Any:
    raise OSError("no model here")


def die_at_once() -> Any:
    os._exit(3)


class Server:
    """OpenAI's chat completions, on a port of its own. What it does hangs on the text that it is asked about.

    ``seen``: how often each text came; ``bodies``, ``keys``: the requests and their authorization; ``most``: the most
    requests that were under way at once.
    """

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.most = 0
        self.models = ["tiny"]
        self._under_way = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in server.models]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    server.bodies.append(body)
                    server.keys.add(self.headers["Authorization"])
                    text = body["messages"][-1]["content"]
                    server.seen[text] += 1
                    times = server.seen[text]
                    server._under_way += 1
                    server.most = max(server.most, server._under_way)
                try:
                    self._send(*server.answer(text, times))
                finally:
                    with server._lock:
                        server._under_way -= 1

            def _send(self, status: int, content: Any) -> None:
                if status == 0:  # no answer at all
                    self.close_connection = True
                    return
                data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                if status >= 400:
                    self.send_header("retry-after-ms", "5")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):  # the client did not wait
                    super().handle()

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def answer(self, text: str, times: int) -> tuple[int, Any]:
        """Status and content for a text that has come ``times`` times."""
        match text.split(":")[0]:
            case "busy":
                return (429, {"error": {"message": "slow down"}}) if times <= 2 else (200, _completion(text))
            case "shaky":
                return (503, {"error": {"message": "starting"}}) if times <= 2 else (200, _completion(text))
            case "broken":
                return 500, {"error": {"message": "a bug"}}
            case "down":
                return 502, {"error": {"message": "bad gateway"}}
            case "dropped":
                return (0, "") if times <= 2 else (200, _completion(text))
            case "gone":
                return 0, ""
            case "hang":
                self._closing.wait(5)
                return 0, ""
            case "garbage":
                return 200, "<html>not what you think</html>"
            case "empty":
                return 200, {"id": "x", "object": "chat.completion", "choices": []}
            case "prose":
                return 200, _completion(text, "Surely! The length is 5.")
            case "wrong":
                return 200, _completion(text, '{"length": "five"}')
            case "twice":
                return 200, _completion(text, '{"length": 5, "length": 6}')
            case "cut":
                return 200, _completion(text, '{"len', finish="length")
            case "silent":
                return 200, _completion(text, None)
            case "forbidden":
                return 401, {"error": {"message": "wrong key"}}
            case "refused":
                return 400, {"error": {"message": "no such response_format"}}
            case "schema":
                error = {"message": "Invalid schema", "param": "response_format", "code": "invalid_schema"}
                return 400, {"error": error}
            case "vllm":
                return 400, {"object": "error", "message": "The schema has unsupported features", "code": 400}
            case "long":
                return 400, {"error": {"message": "too long for the model", "code": "context_length_exceeded"}}
            case "slow":
                time.sleep(0.1)
        return 200, _completion(text)

    def close(self) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()


def _completion(text: str, content: str | None = "", finish: str = "stop") -> dict[str, Any]:
    if content == "":
        content = f' {{"length": {len(text)}}}\n'
    message = {"role": "assistant", "content": content}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "tiny",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
