"""A small home to talk to: tools of different shapes over a home that lives in memory.

punchcard run "Dim the kitchen lights to 10%" --tools examples/home.py
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel

from punchcard import Field, tool

Room = Literal["kitchen", "living room", "bedroom", "bathroom", "office", "garage"]

Day = Literal["today", "tomorrow", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

HOME: dict[str, Any] = {"lights": {}, "heating": {}, "locks": {}, "reminders": [], "shopping": []}


class Time(BaseModel):
    """A time of day on a 24-hour clock."""

    hour: int = Field(ge=0, le=23)
    minute: int = Field(ge=0, le=59, default=0)


class Quantity(BaseModel):
    """How much of something."""

    amount: float = Field(gt=0, le=1000)
    unit: Literal["piece", "g", "kg", "ml", "l"] = "piece"


class Item(BaseModel):
    """One thing to buy."""

    name: str = Field(min_length=1, max_length=40)
    quantity: Quantity | None = None


@tool
def set_lights(room: Room, brightness: Annotated[int, Field(ge=0, le=100)] = 100) -> dict[str, Any]:
    """Turn the lights of a room on, off, up or down.

    Args:
        room: where the lights are
        brightness: percent; 0 is off, 100 is fully on
    """
    HOME["lights"][room] = brightness
    return {"room": room, "brightness": brightness}


@tool
def set_temperature(
    room: Room,
    celsius: Annotated[float, Field(ge=5, le=30)],
    mode: Literal["heat", "cool", "auto"] = "auto",
) -> dict[str, Any]:
    """Set the thermostat: heat or cool a room to a temperature.

    Args:
        room: which room
        celsius: target temperature in degrees
        mode: whether to heat or to cool
    """
    HOME["heating"][room] = {"celsius": celsius, "mode": mode}
    return {"room": room, **HOME["heating"][room]}


@tool
def lock_door(door: Literal["front", "back", "garage"], locked: bool = True) -> dict[str, Any]:
    """Lock or unlock a door.

    Args:
        door: which door
        locked: true locks the door, false unlocks it
    """
    HOME["locks"][door] = locked
    return {"door": door, "locked": locked}


@tool
def play_music(
    query: Annotated[str, Field(min_length=1, max_length=60)],
    rooms: Annotated[list[Room], Field(min_items=1, max_items=6)] | None = None,
    volume: Annotated[int, Field(ge=0, le=10)] = 5,
) -> dict[str, Any]:
    """Play music: an artist, album, song or genre.

    Args:
        query: what to play
        rooms: where to play it
        volume: how loud
    """
    return {"playing": query, "rooms": rooms or ["living room"], "volume": volume}


@tool
def add_to_shopping_list(items: Annotated[list[Item], Field(min_items=1, max_items=10)]) -> dict[str, Any]:
    """Add groceries or other things to buy to the shopping list.

    Args:
        items: the things to buy
    """
    HOME["shopping"].extend(item.model_dump() for item in items)
    return {"on the list": [item["name"] for item in HOME["shopping"]]}


@tool
def set_reminder(text: Annotated[str, Field(min_length=1, max_length=80)], day: Day, time: Time) -> dict[str, Any]:
    """Remind the user of something on a day at a time.

    Args:
        text: what to remind of
        day: on which day
        time: at what time
    """
    HOME["reminders"].append((day, time, text))
    return {"reminder": text, "due": f"{day} {time.hour:02}:{time.minute:02}"}


@tool
def start_timer(minutes: Annotated[int, Field(ge=1, le=240)], label: str | None = None) -> dict[str, Any]:
    """Start a countdown timer, for cooking and the like.

    Args:
        minutes: how long
        label: what the timer is for
    """
    return {"timer": label or "timer", "seconds": minutes * 60}


@tool
def get_weather(city: str, days: Annotated[int, Field(ge=1, le=7)] = 1) -> dict[str, Any]:
    """Get the weather forecast of a city.

    Args:
        city: name of the city
        days: how many days ahead
    """
    return {"city": city, "forecast": ["sunny" if (len(city) + day) % 3 else "rain" for day in range(days)]}
