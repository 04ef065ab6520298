"""What an MCP server lists, tool by tool: one that is described against the protocol takes none of the others along.

The client library checks a listing as a whole. So each message is looked at before it comes to it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any


class Listing:
    """What was found wrong with the tools that a server lists.

    ``mended``: tools that are used all the same, and ``left_out``: those that cannot be, by name, and why.
    """

    def __init__(self) -> None:
        self.mended: dict[str, str] = {}
        self.left_out: dict[str, str] = {}

    @contextlib.asynccontextmanager
    async def over(self, transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
        """The transport, with listings in which every tool is described as the protocol wants."""
        async with transport as (read, write):
            yield _Mended(read, self), write

    def mend(self, message: Any) -> None:
        """Mends a message in place, if it is the answer to a listing of tools."""
        result = getattr(getattr(message, "message", None), "result", None)
        tools = result.get("tools") if isinstance(result, dict) else None
        if isinstance(tools, list):
            tools[:] = [made for tool in tools if (made := self._tool(tool)) is not None]

    def _tool(self, tool: Any) -> dict[str, Any] | None:
        """One tool as the protocol wants it, or None if it cannot be."""
        from mcp.types import Tool
        from pydantic import ValidationError

        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str):
            self.left_out[str(name)] = "it has no name"
            return None
        schema = tool.get("inputSchema")
        if not isinstance(schema, Mapping | None):
            self.left_out[name] = "its schema is no object"
            return None
        kinds = (schema or {}).get("type")
        if not (kinds in (None, "object") or (isinstance(kinds, list) and "object" in kinds)):
            self.left_out[name] = "its schema is not of an object"
            return None
        if kinds != "object":
            self.mended[name] = "its schema does not say that the arguments are an object; they are taken for one"
        made = {**tool, "inputSchema": {**(schema or {}), "type": "object"}}
        output = made.get("outputSchema")
        if output is not None and not (isinstance(output, Mapping) and output.get("type") == "object"):
            del made["outputSchema"]  # results are not checked against it
        for kept in (made, {key: made[key] for key in ("name", "description", "inputSchema") if key in made}):
            try:
                Tool.model_validate(kept, by_name=False)
            except ValidationError as error:
                self.left_out[name] = str(error.errors()[0]["msg"])
                continue
            self.left_out.pop(name, None)
            return kept
        return None


class _Mended:
    """A stream of messages that are mended as they are read."""

    def __init__(self, stream: Any, listing: Listing) -> None:
        self._stream = stream
        self._listing = listing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def receive(self) -> Any:
        message = await self._stream.receive()
        self._listing.mend(message)
        return message

    def __aiter__(self) -> _Mended:
        return self

    async def __anext__(self) -> Any:
        message = await self._stream.__anext__()
        self._listing.mend(message)
        return message

    async def __aenter__(self) -> _Mended:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> Any:
        return await self._stream.__aexit__(*exception)
