"""An MCP server for tests: ``mcp_server.py`` over standard streams, ``mcp_server.py PORT`` over HTTP."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

server = MCPServer("house")


class Reading(BaseModel):
    room: str
    celsius: float


@server.tool()
def dim(level: Annotated[int, Field(ge=0, le=100)]) -> str:
    """Dim the lights."""
    return f"dimmed to {level}"


@server.tool()
def measure(room: str) -> Reading:
    """Measure the temperature of a room."""
    return Reading(room=room, celsius=19.5)


@server.tool()
def jam() -> str:
    """Fail."""
    raise ToolError("the motor is jammed")


@server.tool()
def chatter(count: int) -> str:
    """Answer with that many letters."""
    return "x" * count


@server.tool()
async def sleep(seconds: float, note: str = "") -> str:
    """Sleep; write down in the file ``note`` if it was cancelled."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        if note:
            Path(note).write_text("cancelled", encoding="utf-8")
        raise
    return "slept"


@server.tool(name="9 lives")
def misnamed() -> str:
    """Has a name that no model can write."""
    return ""


@server.tool(name="wordy", description="word " * 2000)
def wordy() -> str:
    return ""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        print("the house is awake", file=sys.stderr)
        server.run()
