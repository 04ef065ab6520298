"""From Python types to JSON Schema: types, constraints, descriptions, and what a function cannot take."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import typing
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union

import jsonschema
import pydantic
import pytest
import typing_extensions

from punchcard import Field, build_schema, pydantic_schema
from punchcard.errors import InvalidSchemaError, ToolError


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Place(typing.TypedDict, total=False):
    name: typing_extensions.Required[str]
    note: str


class Pair(NamedTuple):
    left: int
    right: str


class Node(pydantic.BaseModel):
    """A node of a tree."""

    title: str
    children: list[Node] = []


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Literal[3], {"const": 3, "type": "integer"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (Decimal, {"type": "number"}),
        (bytes, {"type": "string"}),
    ],
)
def test_the_schema_of_a_type(annotation: Any, schema: Any) -> None:
    def function(argument: Any) -> None: ...

    function.__annotations__["argument"] = annotation
    assert build_schema(function) == {
        "type": "object",
        "properties": {"argument": schema},
        "required": ["argument"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("field", "annotation", "keywords"),
    [
        (Field(ge=0, le=100), int, {"minimum": 0, "maximum": 100}),
        (Field(gt=0, lt=1), float, {"exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        (Field(multiple_of=5), int, {"multipleOf": 5}),
        (Field(min_length=1, max_length=9), str, {"minLength": 1, "maxLength": 9}),
        (Field(pattern="^(?=a)"), str, {"pattern": "^(?=a)"}),
        (Field(format="email"), str, {"format": "email"}),
        (Field(min_items=1, max_items=3), list[int], {"minItems": 1, "maxItems": 3}),
        (Field(unique_items=True), list[int], {"uniqueItems": True}),
        (Field(enum=["a", "b"]), str, {"enum": ["a", "b"]}),
        (Field(const=None), Any, {"const": None}),
        (Field(description="what for", examples=["x"]), str, {"description": "what for", "examples": ["x"]}),
    ],
)
@pytest.mark.parametrize("as_default", [False, True])
def test_field_adds_its_keywords(field: Any, annotation: Any, keywords: dict[str, Any], as_default: bool) -> None:
    if as_default:

        def function(argument: Any = field) -> None: ...

        function.__annotations__["argument"] = annotation
    else:

        def function(argument: Any) -> None: ...  # type: ignore[misc]

        function.__annotations__["argument"] = Annotated[annotation, field]
    schema = build_schema(function)
    assert schema["required"] == ["argument"]
    argument = schema["properties"]["argument"]
    assert keywords.items() <= argument.items()


def test_a_default_makes_an_argument_optional_wherever_it_stands() -> None:
    def function(a: int, b: int = 2, c: int = Field(3, ge=0), d: Annotated[int, Field(4)] = 4) -> None: ...

    schema = build_schema(function)
    assert schema["required"] == ["a"]
    assert [schema["properties"][name].get("default") for name in "abcd"] == [None, 2, 3, 4]


@pytest.mark.parametrize(
    "docstring",
    [
        "Do it.\n\nArgs:\n    room: which\n        room\n    level (int): how much\n",
        "Do it.\n\nParameters\n----------\nroom : str\n    which room\nlevel : int, optional\n    how much\n",
        "Do it.\n\n:param room: which room\n:param int level: how much\n",
    ],
    ids=["Google", "NumPy", "Sphinx"],
)
def test_descriptions_come_from_the_docstring(docstring: str) -> None:
    def function(room: str, level: int = 1) -> None: ...

    function.__doc__ = docstring
    properties = build_schema(function)["properties"]
    assert properties["room"]["description"] == "which room"
    assert properties["level"]["description"] == "how much"


def test_a_field_describes_better_than_the_docstring() -> None:
    def function(room: Annotated[str, Field(description="mine")]) -> None:
        """Do it.

        Args:
            room: theirs
        """

    assert build_schema(function)["properties"]["room"]["description"] == "mine"


def test_nested_types_are_closed_and_shared() -> None:
    def function(point: Point, place: Place, nodes: list[Node], colour: Colour = Colour.RED) -> None: ...

    schema = build_schema(function)
    definitions = schema["$defs"]
    assert definitions["Point"]["required"] == ["x"]
    assert definitions["Place"]["required"] == ["name"]
    assert definitions["Node"]["description"] == "A node of a tree."
    assert definitions["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert definitions["Colour"] == {"enum": ["red", "blue"], "type": "string"}
    assert all(definitions[name]["additionalProperties"] is False for name in ("Point", "Place", "Node"))
    assert "title" in definitions["Node"]["properties"]
    jsonschema.Draft202012Validator.check_schema(schema)


def test_a_model_that_keeps_extra_keys_stays_open() -> None:
    class Open(pydantic.BaseModel, extra="allow"):
        a: int

    assert pydantic_schema(Open)["additionalProperties"] is True


def test_keys_of_a_dict_follow_their_type() -> None:
    names = pydantic_schema(dict[int, str])["propertyNames"]["pattern"]
    assert names == r"^-?(0|[1-9][0-9]*)$"
    assert pydantic_schema(dict[Colour, int])["propertyNames"] == {"$ref": "#/$defs/Colour"}
    assert pydantic_schema(dict[Annotated[str, Field(pattern="^a")], int])["propertyNames"]["pattern"] == "^a"


def test_a_decimal_is_bounded_as_a_number() -> None:
    schema = pydantic_schema(Annotated[Decimal, pydantic.Field(ge=0, decimal_places=2, max_digits=5)])
    assert schema == {"type": "number", "minimum": 0, "multipleOf": 0.01, "exclusiveMaximum": 1000}


def test_a_discriminated_union_is_an_any_of() -> None:
    schema = pydantic_schema(Annotated[Union[Cat, Dog], pydantic.Field(discriminator="kind")])  # noqa: UP007
    assert schema["anyOf"] == [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    assert set(schema) == {"anyOf", "$defs"}


def test_further_arguments() -> None:
    def function(first: int, /, *rest: str, key: bool = False, **further: float) -> None: ...

    schema = build_schema(function)
    assert schema["properties"]["rest"] == {"type": "array", "items": {"type": "string"}, "default": []}
    assert schema["additionalProperties"] == {"type": "number"}
    assert schema["required"] == ["first"]


def test_names_that_are_no_names_for_a_field() -> None:
    def function(json: int, _id: int, model_config: int, self_: int, schema: int) -> None: ...

    assert build_schema(function)["required"] == ["json", "_id", "model_config", "self_", "schema"]


def test_callables_of_other_kinds() -> None:
    class Lamp:
        def switch(self, on: bool) -> None: ...

        def __call__(self, level: int) -> None: ...

    assert list(build_schema(Lamp().switch)["properties"]) == ["on"]
    assert list(build_schema(Lamp())["properties"]) == ["level"]
    assert list(build_schema(functools.partial(pow, 2))["properties"]) == ["exp", "mod"]


@pytest.mark.parametrize("annotation", ["NoSuchType", "range", "type", "typing.Callable[[], int]"])
def test_a_type_without_json_is_an_error_that_names_the_function(annotation: str) -> None:
    def function(argument: Any) -> None: ...

    function.__annotations__["argument"] = annotation
    with pytest.raises(ToolError, match="function cannot be described"):
        build_schema(function)


def test_a_constraint_that_does_not_apply_is_an_error() -> None:
    def function(argument: Annotated[list[int], Field(ge=1)]) -> None: ...

    with pytest.raises(ToolError, match="ge does not apply to the type array"):
        build_schema(function)


def test_unpacked_keywords_are_refused() -> None:
    def function(**options: typing_extensions.Unpack[Place]) -> None: ...

    with pytest.raises(ToolError, match="unpacked TypedDict"):
        build_schema(function)


@pytest.mark.parametrize(
    "options", [{"default": 1, "default_factory": int}, {"min_length": 1, "min_items": 1}, {"enum": []}]
)
def test_field_options_that_exclude_each_other(options: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        Field(**options)


def test_what_is_no_type_is_an_invalid_schema() -> None:
    with pytest.raises(InvalidSchemaError):
        pydantic_schema(42)
