"""Tools: calling with JSON arguments, definitions, files."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import pytest

from punchcard import Field, Tool, load_tools, tool
from punchcard.errors import ToolError
from punchcard.tools import as_tools

EXAMPLES = Path(__file__).parent.parent / "examples"


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Address(pydantic.BaseModel):
    street: str
    since: datetime.date | None = None


@tool
def echo(
    when: datetime.datetime,
    address: Address,
    points: list[Point],
    tags: set[str],
    price: Decimal,
    key: uuid.UUID,
    colour: Colour = Colour.RED,
    pair: tuple[int, str] = (0, ""),
    by_number: dict[int, float] | None = None,
) -> dict[str, Any]:
    """Give back what came in."""
    return dict(locals())


def test_arguments_arrive_as_the_declared_types() -> None:
    key = "12345678-1234-5678-1234-567812345678"
    result = echo.call(
        {
            "when": "2024-02-29T12:00:00Z",
            "address": {"street": "Main", "since": "2020-01-01"},
            "points": [{"x": 1}],
            "tags": ["a", "a"],
            "price": 0.1,
            "key": key,
            "pair": [1, "b"],
            "by_number": {"3": 0.5},
        }
    )
    assert result == {
        "when": datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc),
        "address": Address(street="Main", since=datetime.date(2020, 1, 1)),
        "points": [Point(1)],
        "tags": {"a"},
        "price": Decimal("0.1"),
        "key": uuid.UUID(key),
        "colour": Colour.RED,
        "pair": (1, "b"),
        "by_number": {3: 0.5},
    }


def test_every_kind_of_parameter_is_called_as_it_must_be() -> None:
    @tool
    def function(a: int, /, b: int = 2, *rest: int, c: int = 3, **further: float) -> Any:
        return a, b, rest, c, further

    assert function.call('{"a": 1}') == (1, 2, (), 3, {})
    assert function.call({"a": 1, "rest": [4, 5], "c": 6, "z": 7}) == (1, 2, (4, 5), 6, {"z": 7.0})


def test_a_tool_is_still_a_function() -> None:
    @tool
    def function(a: int, b: int = Field(7, ge=0), c: list[int] = Field(default_factory=list)) -> Any:  # noqa: B008
        """Add."""
        return a, b, c

    assert function(1) == (1, 7, [])
    assert function(1, c=[2]) == (1, 7, [2])
    assert function.__name__ == "function" and function.__doc__ == "Add."


def test_a_method_can_be_a_tool() -> None:
    class Lamp:
        level = 0

        @tool
        def dim(self, level: int) -> int:
            """Dim it."""
            self.level = level
            return level

    lamp = Lamp()
    assert list(lamp.dim.parameters["properties"]) == ["level"]
    assert lamp.dim.call({"level": 3}) == 3 and lamp.level == 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "level: Field required"),
        ({"level": "high"}, "level: Input should be a valid integer"),
        ({"level": 101}, "level: Input should be less than or equal to 100"),
        ({"level": 1, "mode": "loud"}, 'mode: Input should be one of "soft", "hard"'),
        ({"level": 1, "ids": [1, 1.0]}, "ids: Items should be unique"),
        ({"level": 1, "other": 2}, "other: Extra inputs are not permitted"),
        ('{"level": 1', "not JSON"),
        ("[1]", "Input should be an object"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments: Any, complaint: str) -> None:
    @tool
    def function(
        level: Annotated[int, Field(le=100)],
        mode: str = Field("soft", enum=["soft", "hard"]),
        ids: Annotated[list[int], Field(unique_items=True)] = [],  # noqa: B006
    ) -> None: ...

    with pytest.raises(ToolError, match="Invalid arguments for function") as raised:
        function.call(arguments)
    assert complaint in str(raised.value)
    assert raised.value.fields["tool"] == "function"


def test_enum_of_a_converted_type_accepts_its_json_value() -> None:
    @tool
    def function(
        colour: Annotated[Colour, Field(enum=["red"])], day: Annotated[datetime.date, Field(const="2024-01-01")]
    ) -> Any:
        return colour, day

    assert function.call({"colour": "red", "day": "2024-01-01"}) == (Colour.RED, datetime.date(2024, 1, 1))


def test_name_and_description_can_be_given() -> None:
    @tool(name="lights", description="Switch.")
    def function() -> None:
        """Something else."""

    definition = function.definition()
    assert definition["type"] == "function"
    assert definition["function"]["name"] == "lights"
    assert definition["function"]["description"] == "Switch."
    assert definition["function"]["parameters"] == {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.mark.parametrize("name", ["", ".a", "with space", 'a"b', "x" * 65])
def test_a_name_that_models_cannot_write_is_refused(name: str) -> None:
    with pytest.raises(ToolError):
        Tool(name=name, parameters={})


def test_definitions_round_trip_but_cannot_be_called() -> None:
    definition = echo.definition()
    copy = Tool.from_definition(definition)
    assert copy.definition() == definition
    with pytest.raises(ToolError, match="without a function"):
        copy.call({})


@pytest.mark.parametrize("definition", [{}, {"function": {}}, {"name": "a", "parameters": []}, {"name": 3}, 7])
def test_malformed_definitions_are_tool_errors(definition: Any) -> None:
    with pytest.raises(ToolError):
        as_tools([definition])


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolError, match="Two tools are named echo"):
        as_tools([echo, echo.definition()])


def test_the_example_home_loads_in_order_of_definition() -> None:
    tools = load_tools(EXAMPLES / "home.py")
    assert [tool.name for tool in tools][:2] == ["set_lights", "set_temperature"]
    assert len(tools) >= 6
    assert tools[0].call({"room": "kitchen", "brightness": 10}) == {"room": "kitchen", "brightness": 10}


def test_a_tool_file_may_import_its_neighbours_and_use_dataclasses(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("LEVEL = 5\n")
    (tmp_path / "tools.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom neighbour import LEVEL\n"
        "from punchcard import tool\n\n\n@dataclass\nclass P:\n    x: int = LEVEL\n\n\n"
        "@tool\ndef f(p: P) -> int:\n    return p.x\n\n\nalias = f\n"
    )
    (loaded,) = load_tools(tmp_path / "tools.py")
    assert loaded.call({"p": {}}) == 5


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: [one], lambda one: {"tools": [one]}])
def test_json_files_hold_definitions(tmp_path: Path, wrap: Any) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(wrap(echo.definition())))
    (loaded,) = load_tools(path)
    assert loaded.parameters == echo.parameters and loaded.function is None


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("missing.py", None, "There is no tool file"),
        ("tools.txt", "", "neither a .py nor a .json file"),
        ("tools.py", "x = 1\n", "defines no tools"),
        ("tools.py", "x = 1\nimport no_such_module\n", "line 2: ModuleNotFoundError"),
        ("tools.py", "def f(:\n", "line 1: SyntaxError"),
        ("tools.py", "import sys\nsys.exit(3)\n", "SystemExit"),
        ("tools.py", "from punchcard import tool\n@tool\ndef f(x: 'Nix'): ...\n", "'Nix' is not defined"),
        ("tools.json", "{", "is not JSON"),
        ("tools.json", "3", "holds no tool definitions"),
        ("tools.json", '[{"description": "x"}]', "has no name"),
        ("tools.json", "[]", "defines no tools"),
    ],
)
def test_bad_tool_files(tmp_path: Path, name: str, content: str | None, complaint: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(ToolError, match=complaint):
        load_tools(path)


def test_literals_stay_what_they_are() -> None:
    @tool
    def function(choice: Literal["a", 1]) -> Any:
        return choice

    assert function.call({"choice": 1}) == 1
