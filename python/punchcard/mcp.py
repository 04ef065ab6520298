"""Tools of MCP servers (Model Context Protocol), for agents.

    with MCPTools.stdio("uvx", ["mcp-server-time"]) as tools:
        Agent(tools).run("What time is it in Tokyo?")

The tools keep the server's own JSON Schemas, so that calls are written under them, and are executed by the server. The
connection lives in an event loop of its own, in a thread; so the tools serve ordinary code and coroutines alike.

What a server says is not trusted. Its tools' names are checked, and what it says of them and answers is limited in size
and time; what does not fit is left out, cut, or an error. Its words do reach the model: which calls to execute is for
`before_call` of the agent to say.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import os
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from pydantic_core import from_json

from punchcard.errors import PunchcardError, ToolError, extra_hint
from punchcard.mcp_listing import Listing
from punchcard.tools import Tool
from punchcard.toolschemas import object_schema, without_nulls
from punchcard.waiting import within

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as ServerTool

T = TypeVar("T")


@dataclass(frozen=True)
class MCPLimits:
    """What a server may cost.

    Attributes:
        connect_seconds: for starting or reaching it, and learning its tools; ``call_seconds``: for each call.
        tools: how many of its tools are taken; ``schema_chars``: JSON text of the schema of one, which is left out if
            it has more; ``description_chars``: where a description is cut.
        result_chars: where a result is cut.
    """

    connect_seconds: float = 30.0
    call_seconds: float = 60.0
    tools: int = 256
    schema_chars: int = 65_536
    description_chars: int = 4_096
    result_chars: int = 32_768


class MCPTool(Tool):
    """A tool that a server executes."""

    def __init__(
        self, source: MCPTools, name: str, description: str, parameters: dict[str, Any], own_name: str
    ) -> None:
        super().__init__(name=name, description=description, parameters=parameters)
        self._source = source
        self._own_name = own_name

    @property
    def executes(self) -> bool:
        return True

    def call(self, arguments: Mapping[str, Any] | str, *, timeout: float | None = None) -> Any:
        """Has the server execute the tool; waits for ``timeout`` seconds at most, if that is less than its own limit.

        Returns JSON data where the server answers with data, else text. Raises `ToolError` with the server's words if
        the tool failed, if it does not answer in time, or the connection is lost; `TimeoutError` after ``timeout``.
        """
        future = self._source._start(self._answer(arguments))
        try:
            return future.result(timeout)
        except concurrent.futures.TimeoutError:  # another class than TimeoutError before Python 3.11
            raise TimeoutError(f"not done after {timeout or 0:g} seconds") from None
        finally:
            future.cancel()

    async def acall(self, arguments: Mapping[str, Any] | str) -> Any:
        return await asyncio.wrap_future(self._source._start(self._answer(arguments)))

    async def _answer(self, arguments: Mapping[str, Any] | str) -> Any:
        plain = from_json(arguments) if isinstance(arguments, str) else dict(arguments)
        return await self._source._call(self._own_name, plain)


class MCPTools:
    """The tools of an MCP server, while it is entered with ``with`` or ``async with``.

    Iterating gives the tools, ``Agent([*tools, my_function])``. ``left_out``: those that cannot be used, and why.
    """

    def __init__(self, name: str, client: Callable[[], contextlib.AbstractAsyncContextManager[Client]], **options: Any):
        """Use `stdio` or `http`. ``client``: makes the connection."""
        self.name = name
        self.left_out: dict[str, str] = {}
        self._client = client
        self._prefix: str = options.pop("prefix")
        self._limits: MCPLimits = options.pop("limits") or MCPLimits()
        self._excuse: Callable[[], str] = options.pop("excuse", str)
        self._listing: Listing = options.pop("listing", None) or Listing()
        self._tools: list[Tool] = []
        self._session: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._end: Callable[[], None] | None = None

    @classmethod
    def stdio(
        cls,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        prefix: str = "",
        limits: MCPLimits | None = None,
    ) -> MCPTools:
        """A server that is started as a program and spoken to over its standard streams.

        ``env``: variables for it besides the harmless ones (``PATH``, ``HOME``, ...) that it inherits; ``cwd``: its
        folder; ``prefix``: goes before the names of its tools, for servers whose names would clash.

        Raises `PunchcardError` if the package ``mcp`` is not installed; entering it raises `ToolError` if the server
        cannot be started or does not speak the protocol.
        """
        _require()
        name = Path(command).name
        errors = _Tail()
        listing = Listing()

        @contextlib.asynccontextmanager
        async def client() -> AsyncIterator[Client]:
            from mcp import Client, StdioServerParameters
            from mcp.client.stdio import stdio_client

            parameters = StdioServerParameters(
                command=command,
                args=list(args),
                env=None if env is None else dict(env),
                cwd=None if cwd is None else str(cwd),
            )
            with errors.writer() as stream:
                async with Client(listing.over(stdio_client(parameters, errlog=stream))) as connected:
                    yield connected

        return cls(name, client, prefix=prefix, limits=limits, excuse=errors.text, listing=listing)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        prefix: str = "",
        limits: MCPLimits | None = None,
    ) -> MCPTools:
        """A server at an address, over streamable HTTP. ``headers``: for each request, such as ``Authorization``;
        else as `stdio`."""
        _require()
        listing = Listing()

        @contextlib.asynccontextmanager
        async def client() -> AsyncIterator[Client]:
            import httpx2
            from mcp import Client
            from mcp.client.streamable_http import streamable_http_client

            patience = limits or MCPLimits()
            timeout = httpx2.Timeout(patience.connect_seconds, read=patience.call_seconds)
            async with (
                httpx2.AsyncClient(headers=dict(headers or {}), timeout=timeout) as web,
                Client(listing.over(streamable_http_client(url, http_client=web))) as connected,
            ):
                yield connected

        return cls(url.split("?")[0], client, prefix=prefix, limits=limits, listing=listing)

    def __iter__(self) -> Iterator[Tool]:
        self._connected()
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __enter__(self) -> MCPTools:
        opening = self._open()
        try:
            opening.result()
        except BaseException:
            self._shut()
            raise
        self._warn()
        return self

    def __exit__(self, *exception: object) -> None:
        self._shut()

    async def __aenter__(self) -> MCPTools:
        opening = self._open()
        try:
            await asyncio.wrap_future(opening)
        except BaseException:
            await asyncio.to_thread(self._shut)
            raise
        self._warn()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await asyncio.to_thread(self._shut)

    def _warn(self) -> None:
        """Warns of tools that the server describes wrongly."""
        for name, reason in {**self._listing.mended, **self._listing.left_out}.items():
            used = "" if name in self._listing.mended else ", so it is left out"
            warnings.warn(f"The tool {_cut(name, 100)} of {self.name}: {reason}{used}", stacklevel=3)

    # The connection, in its own thread.

    def _open(self) -> Future[None]:
        """Starts to connect. The future is done when the tools are known."""
        if self._thread is not None:
            raise PunchcardError(f"The tools of {self.name} are in use already", hint="Make MCPTools for each `with`")
        opened: Future[None] = Future()
        opened.set_running_or_notify_cancel()  # who waits for it may give up; the thread still has to say something
        self._thread = threading.Thread(target=self._work, args=(opened,), name=f"mcp {self.name}", daemon=True)
        self._thread.start()
        return opened

    def _work(self, opened: Future[None]) -> None:
        try:
            asyncio.run(self._serve(opened))
        except BaseException as error:
            if not opened.done():
                opened.set_exception(self._lost(error))
        finally:
            self._loop = self._end = None

    async def _serve(self, opened: Future[None]) -> None:
        """Holds the connection, in one task from beginning to end, as its scopes want."""
        loop, task, closing = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()
        assert task is not None

        def end() -> None:
            closing.set()
            if not opened.done():
                task.cancel()

        self._loop, self._end = loop, end
        seconds = self._limits.connect_seconds
        timer = loop.call_later(seconds, task.cancel)  # a scope around would have to last as long as the connection
        try:
            async with self._client() as session:
                self._session = session
                self._tools = [tool async for tool in self._listed(session)]
                timer.cancel()
                opened.set_result(None)
                await closing.wait()
        except asyncio.CancelledError:
            raise TimeoutError(f"no answer within {seconds:g} seconds") from None
        finally:
            self._session = None

    def _shut(self) -> None:
        """Ends the connection, and waits until it is ended."""
        thread, loop, end = self._thread, self._loop, self._end
        if loop is not None and end is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(end)
        if thread is not None:
            thread.join(timeout=10)
        self._thread = None

    def _connected(self) -> Client:
        if self._session is None:
            raise ToolError(
                f"There is no connection to {self.name}", hint="Use the tools inside `with MCPTools...(...) as tools:`"
            )
        return self._session

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Has the connection's thread do something."""
        loop = self._loop
        if loop is None or self._session is None:
            work.close()
            self._connected()
        assert loop is not None
        return asyncio.run_coroutine_threadsafe(work, loop)

    def _lost(self, error: BaseException) -> ToolError:
        while inner := getattr(error, "exceptions", ()):  # groups of them, which Python 3.10 does not know
            error = inner[0]
        reason = _cut(str(error) or type(error).__name__, 500)
        said = self._excuse()
        return ToolError(
            f"There is no speaking to the MCP server {self.name}: {reason}" + (f" (it said: {said})" if said else ""),
            hint="Look whether the command or address is right, and the server runs alone",
        )

    # What the server says.

    async def _listed(self, client: Client) -> AsyncIterator[Tool]:
        """The tools of the server, as far as they can be used."""
        cursor: str | None = None
        seen: set[str] = set()
        pages = 0
        while True:
            page = await client.list_tools(cursor=cursor)
            for listed in page.tools:
                reason = "there are too many" if len(seen) >= self._limits.tools else None
                tool = None
                if reason is None:
                    tool, reason = self._tool(listed, seen)
                if tool is not None:
                    seen.add(tool.name)
                    yield tool
                elif len(self.left_out) < self._limits.tools:
                    self.left_out[_cut(listed.name, 100)] = str(reason)
            for name, reason in self._listing.left_out.items():
                if len(self.left_out) < self._limits.tools:
                    self.left_out[_cut(name, 100)] = _cut(reason, 500)
            cursor = page.next_cursor
            pages += 1
            if cursor is None or pages > self._limits.tools:
                return

    def _tool(self, listed: ServerTool, seen: set[str]) -> tuple[Tool | None, str]:
        """A tool as the server describes it, or why it cannot be used."""
        name = self._prefix + listed.name
        schema = listed.input_schema
        try:
            size = len(json.dumps(schema))
        except (ValueError, RecursionError):
            return None, "its schema is no JSON"
        if size > self._limits.schema_chars:
            return None, f"its schema has {size} characters; {self._limits.schema_chars} are allowed"
        if name in seen:
            return None, "another tool has its name"
        try:
            object_schema(name, without_nulls(schema))
        except PunchcardError as error:
            return None, error.message
        description = _cut(listed.description or listed.title or "", self._limits.description_chars)
        try:
            return MCPTool(self, name, description, {"type": "object", **schema}, listed.name), ""
        except ToolError as error:
            return None, error.message

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        """What the server answers to a call, as JSON data or text."""
        session = self._connected()
        seconds = self._limits.call_seconds
        try:
            answer = await within(session.call_tool(name, arguments), seconds)
        except asyncio.CancelledError:
            if self._session is None:
                raise ToolError(f"The connection to {self.name} was closed", tool=name) from None
            raise
        except TimeoutError:
            raise ToolError(f"{self.name} has not answered within {seconds:g} seconds", tool=name) from None
        except Exception as error:  # whatever the protocol finds wrong with the answer
            raise ToolError(f"{self.name}: {_cut(str(error) or type(error).__name__, 2000)}", tool=name) from error
        if answer.is_error:
            raise ToolError(_cut(_text(answer), self._limits.result_chars) or "the tool failed", tool=name)
        data = answer.structured_content
        if data is not None and len(json.dumps(data, ensure_ascii=False)) <= self._limits.result_chars:
            return data
        return _cut(_text(answer), self._limits.result_chars)


def _text(answer: CallToolResult) -> str:
    """The parts of an answer as one text. Pictures and sounds are only named: a model of words cannot read them."""
    parts = []
    for part in answer.content:
        resource = getattr(part, "resource", None)
        text = getattr(part, "text", None) if resource is None else getattr(resource, "text", None)
        if isinstance(text, str):
            parts.append(text)
        elif part.type == "resource_link":
            parts.append(f"[{part.uri}: {part.description or part.name}]")
        else:
            kind = getattr(part if resource is None else resource, "mime_type", None) or "data"
            parts.append(f"[{kind}, which cannot be shown]")
    if not parts and answer.structured_content is not None:
        return json.dumps(answer.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… [cut: {len(text)} characters in all]"


class _Tail:
    """Keeps the end of what a program writes to its standard error, for messages."""

    def __init__(self, size: int = 500) -> None:
        self._size = size
        self._end = b""

    @contextlib.contextmanager
    def writer(self) -> Iterator[TextIO]:
        """A file for the program to write to."""
        read, write = os.pipe()
        thread = threading.Thread(target=self._read, args=(read,), daemon=True)
        thread.start()
        with os.fdopen(write, "w") as stream:
            yield stream
        # A child of the program may hold the pipe for longer; its words are not waited for.
        thread.join(timeout=0.5)

    def _read(self, source: int) -> None:
        with os.fdopen(source, "rb", buffering=0) as stream:
            while piece := stream.read(65_536):
                self._end = (self._end + piece)[-self._size :]

    def text(self) -> str:
        return " ".join(self._end.decode("utf-8", "replace").split())


def _require() -> None:
    """Raises `PunchcardError` where the package is missing."""
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise PunchcardError(f"Tools of MCP servers need the package mcp ({error})", hint=extra_hint("mcp")) from error
