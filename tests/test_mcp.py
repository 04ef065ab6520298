"""Tools of MCP servers: a real server in a process of its own, over standard streams and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_model import FakeModel, speaker

from punchcard import Agent, MCPTools
from punchcard.errors import PunchcardError, ToolError
from punchcard.mcp import MCPLimits

pytest.importorskip("mcp", reason="mcp is not installed")

SERVER = str(Path(__file__).parent / "mcp_server.py")


RAW = str(Path(__file__).parent / "raw_mcp_server.py")
GOOD = {"name": "good", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": None}}


@pytest.mark.parametrize(
    ("odd", "used"),
    [
        ({"inputSchema": {}}, True),
        ({"inputSchema": {"properties": {}}}, True),
        ({}, True),
        ({"inputSchema": None}, True),
        ({"inputSchema": {"type": None}}, True),
        ({"inputSchema": {"type": ["object", "null"]}}, True),
        ({"inputSchema": {"type": "array"}}, False),
        ({"inputSchema": []}, False),
        ({"inputSchema": {"type": "object"}, "description": 5}, False),
    ],
)
def test_a_tool_that_is_described_wrongly_takes_no_other_along(odd: dict[str, Any], used: bool) -> None:
    source = MCPTools.stdio(sys.executable, [RAW, json.dumps([{"name": "odd", **odd}, GOOD])])
    answer = '<tool_call>\n{"name": "good", "arguments": {"a": "x"}}\n</tool_call>'
    with pytest.warns(UserWarning, match="The tool odd of"), source as tools:
        assert [tool.name for tool in tools] == (["odd", "good"] if used else ["good"])
        assert ("odd" in tools.left_out) == (not used)
        for tool in tools:
            assert tool.call({}) == tool.name
        run = Agent([*tools], FakeModel(speaker(answer, "Done."))).run("Do")
        assert run["results"][0]["result"] == "good"


def test_a_tool_whose_schema_is_malformed_is_left_out() -> None:
    listed = [{"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "strng"}}}}, GOOD]
    with MCPTools.stdio(sys.executable, [RAW, json.dumps(listed)]) as tools:
        assert [tool.name for tool in tools] == ["good"] and "/properties/a/type" in tools.left_out["odd"]


@pytest.fixture(scope="module")
def house() -> Iterator[MCPTools]:
    with MCPTools.stdio(sys.executable, [SERVER]) as tools:
        yield tools


def named(tools: MCPTools, name: str) -> Any:
    return next(tool for tool in tools if tool.name == name)


def block(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_the_tools_have_the_schemas_of_the_server(house: MCPTools) -> None:
    dim = named(house, "dim")
    assert dim.description == "Dim the lights."
    assert dim.parameters["properties"]["level"] == {"maximum": 100, "minimum": 0, "title": "Level", "type": "integer"}
    assert {tool.name for tool in house} == {"dim", "measure", "jam", "chatter", "sleep", "wordy"}


def test_text_comes_back_as_text_and_data_as_data(house: MCPTools) -> None:
    assert named(house, "dim").call({"level": 3}) == {"result": "dimmed to 3"}
    assert named(house, "measure").call('{"room": "attic"}') == {"room": "attic", "celsius": 19.5}


def test_an_agent_calls_them_under_their_schemas(house: MCPTools) -> None:
    model = FakeModel(speaker(block("dim", level=10), "Done."), context_length=60_000)
    result = Agent([named(house, "dim"), named(house, "measure")], model).run("Dim it to 10")
    assert result["success"], result["error"]
    assert result["results"] == [{"name": "dim", "arguments": {"level": 10}, "result": {"result": "dimmed to 10"}}]
    # The server's bounds hold while the model writes.
    model = FakeModel(speaker(block("dim", level=101)), context_length=60_000)
    Agent([named(house, "dim")], model).complete("Dim it to 101", max_new_tokens=60)
    assert '"level": 10' in model.detokenize(model.tokens) and '"level": 101' not in model.detokenize(model.tokens)


def test_what_a_tool_fails_with_is_told_to_the_model(house: MCPTools) -> None:
    model = FakeModel(speaker(block("jam"), "It is jammed."), context_length=60_000)
    result = Agent([named(house, "jam")], model).run("Open it")
    assert "the motor is jammed" in result["results"][0]["error"]
    assert "error: " in model.detokenize(model.tokens) and "the motor is jammed" in model.detokenize(model.tokens)
    with pytest.raises(ToolError, match="level"):  # arguments that a model without a grammar may write
        named(house, "dim").call({"level": "high"})


def test_a_server_is_not_trusted(house: MCPTools) -> None:
    assert list(house.left_out) == ["9 lives"] and "cannot be a tool's name" in house.left_out["9 lives"]
    wordy = named(house, "wordy").description
    assert len(wordy) < 4200 and wordy.endswith("[cut: 10000 characters in all]")
    long = named(house, "chatter").call({"count": 100_000})
    assert isinstance(long, str) and len(long) < 33_000 and long.endswith("[cut: 100000 characters in all]")


def test_limits_and_prefixes_are_the_callers() -> None:
    limits = MCPLimits(tools=2, result_chars=10, description_chars=10)
    with MCPTools.stdio(sys.executable, [SERVER], prefix="house_", limits=limits) as tools:
        assert [tool.name for tool in tools] == ["house_dim", "house_measure"]
        assert tools.left_out["jam"] == "there are too many"
        assert named(tools, "house_dim").call({"level": 1}).startswith("dimmed to ")
    with MCPTools.stdio(sys.executable, [SERVER], limits=MCPLimits(schema_chars=120)) as tools:
        assert "its schema has" in tools.left_out["sleep"]


def test_a_tool_that_takes_too_long() -> None:
    with MCPTools.stdio(sys.executable, [SERVER], limits=MCPLimits(call_seconds=0.3)) as tools:
        with pytest.raises(ToolError, match=r"has not answered within 0\.3 seconds"):
            named(tools, "sleep").call({"seconds": 20})
        with pytest.raises(TimeoutError):
            named(tools, "sleep").call({"seconds": 20}, timeout=0.1)
        assert named(tools, "dim").call({"level": 1})  # the connection goes on


def test_calls_run_at_the_same_time_and_are_cancelled_with_their_task(house: MCPTools, tmp_path: Path) -> None:
    sleep = named(house, "sleep")
    note = tmp_path / "note"

    async def several() -> None:
        assert await asyncio.gather(*(sleep.acall({"seconds": 0.5}) for _ in range(4))) == [{"result": "slept"}] * 4
        task = asyncio.ensure_future(sleep.acall({"seconds": 30, "note": str(note)}))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(several())
    deadline = time.monotonic() + 5
    while not note.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert note.read_text(encoding="utf-8") == "cancelled"  # the server was told


def test_a_run_that_is_out_of_time_does_not_wait_for_the_server(house: MCPTools) -> None:
    model = FakeModel(speaker(block("sleep", seconds=30.5), "Done."), context_length=60_000)
    result = asyncio.run(Agent([named(house, "sleep")], model).arun("Sleep", max_seconds=2))
    assert "max_seconds" in result["error"] and result["results"][0]["error"].startswith("stopped")


def test_over_http_with_an_asynchronous_agent(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, SERVER, str(port)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)

        async def answer() -> dict[str, Any]:
            async with MCPTools.http(f"http://127.0.0.1:{port}/mcp", headers={"X-Test": "1"}) as tools:
                model = FakeModel(speaker(block("measure", room="attic"), "Cold."), context_length=60_000)
                return await Agent([named(tools, "measure")], model).arun("How cold is the attic?")

        result = asyncio.run(answer())
        assert result["results"][0]["result"] == {"room": "attic", "celsius": 19.5}
        assert result["text"] == "Cold."
    finally:
        server.terminate()
        server.wait(10)


def test_servers_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"no speaking to the MCP server no-such-program"):
        MCPTools.stdio("no-such-program").__enter__()
    talker = tmp_path / "talker.py"
    talker.write_text("import sys; sys.exit('the licence has expired')", encoding="utf-8")
    with pytest.raises(ToolError, match="the licence has expired"):
        MCPTools.stdio(sys.executable, [str(talker)]).__enter__()
    talker.write_text("import time; time.sleep(60)", encoding="utf-8")
    with pytest.raises(ToolError, match="no answer within 1 seconds"):
        MCPTools.stdio(sys.executable, [str(talker)], limits=MCPLimits(connect_seconds=1)).__enter__()
    with pytest.raises(ToolError, match="no speaking to the MCP server"):
        MCPTools.http("http://127.0.0.1:9/mcp").__enter__()


def test_tools_outlive_no_connection() -> None:
    source = MCPTools.stdio(sys.executable, [SERVER])
    with pytest.raises(ToolError, match="There is no connection"):
        list(source)
    with source as tools:
        dim = named(tools, "dim")
        with pytest.raises(PunchcardError, match="in use already"):
            source.__enter__()
    with pytest.raises(ToolError, match="There is no connection"):
        dim.call({"level": 1})


def test_a_server_that_dies_is_an_error_of_the_call(tmp_path: Path) -> None:
    mortal = tmp_path / "mortal.py"
    mortal.write_text(
        "import os\nfrom mcp.server import MCPServer\nserver = MCPServer('mortal')\n"
        "@server.tool()\ndef die() -> str:\n    os._exit(1)\nserver.run()\n",
        encoding="utf-8",
    )
    with MCPTools.stdio(sys.executable, [str(mortal)], env=dict(os.environ)) as tools:
        for _ in range(2):
            with pytest.raises(ToolError):
                named(tools, "die").call({})


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(PunchcardError, match=r"pip install 'punchcard\[mcp\]'"):
        MCPTools.stdio("x")


def test_importing_loads_no_protocol() -> None:
    code = "import sys; from punchcard import MCPTools, Agent; print('mcp' in sys.modules, 'httpx2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False", "False"]
