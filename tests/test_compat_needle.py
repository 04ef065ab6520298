"""Needle's names, as its documentation uses them."""

from __future__ import annotations

from typing import Any

import pytest
from fake_model import FakeModel, speaker
from pydantic import BaseModel

import punchcard
import punchcard.compat.needle as needle
from punchcard import PunchcardError


@needle.tool
def set_lights(room: str, brightness: int = 50) -> dict[str, Any]:
    """Set a room's lighting level."""
    return {"room": room, "brightness": brightness}


def test_the_names_are_those_of_punchcard() -> None:
    assert needle.tool is punchcard.tool and needle.Field is punchcard.Field
    assert needle.Needle is punchcard.Agent and needle.extract is punchcard.extract
    assert set_lights("den") == {"room": "den", "brightness": 50}


def test_the_schema_of_a_function() -> None:
    schema = needle.build_schema(set_lights.function)
    assert schema["required"] == ["room"] and set(schema["properties"]) == {"room", "brightness"}


def test_what_is_not_covered_says_so() -> None:
    for name in needle.NOT_COVERED:
        with pytest.raises(PunchcardError, match=f"needle.{name} is not covered"):
            getattr(needle, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = needle.nothing


def test_an_agent_calls_the_tool() -> None:
    call = '<tool_call>\n{"name": "set_lights", "arguments": {"room": "kitchen", "brightness": 10}}\n</tool_call>'
    agent = needle.Needle(tools=[set_lights], model=FakeModel(speaker(call, "Done.")))
    result = agent.run("Dim the kitchen lights to 10%")
    assert result["results"][0]["result"] == {"room": "kitchen", "brightness": 10}


def test_extract_returns_an_instance() -> None:
    class Weather(BaseModel):
        """Weather query."""

        city: str
        units: str = "celsius"

    said = speaker('{"city":"Paris","units":"celsius"}')
    assert needle.extract("What's the weather in Paris?", Weather, FakeModel(said)) == Weather(city="Paris")
