"""What a program may say about the calls of an agent, before and after they are executed.

def approve(call: Call) -> Call | Refusal | None:
    if call.name == "unlock_door" and input(f"{call}? ") != "y":
        return Refusal("the user said no")

Agent(tools, before_call=approve)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from punchcard.chat import Call


@dataclass(frozen=True)
class Refusal:
    """A call that is not to be executed. The model is told the ``reason``."""

    reason: str


@dataclass(frozen=True)
class Outcome:
    """What came of a call.

    ``result``: what the tool returned; ``error``: in words what went wrong, `None` if nothing did; ``seconds``: wall
    time.
    """

    result: Any = None
    error: str | None = None
    seconds: float = 0.0


#: Asked before a call is executed. Returns `None`: go on; another call: execute this in its place; `Refusal`: do not.
BeforeCall = Callable[[Call], "Call | Refusal | Awaitable[Call | Refusal | None] | None"]

#: Told what came of a call that was executed.
AfterCall = Callable[[Call, Outcome], "Awaitable[None] | None"]
