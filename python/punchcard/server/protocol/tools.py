"""Tools and the choice among them, as chat completions and responses spell them, for a `punchcard.chat.Request`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from punchcard.errors import ToolError
from punchcard.server.protocol.common import Items, Part, blamed, required
from punchcard.server.protocol.constraints import check_size
from punchcard.tools import Tool, as_tools

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$")]


class Function(Part):
    """What a tool is. Arguments are always written under ``parameters``; ``strict`` adds nothing to that."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(Part):
    """A tool, as chat completions spell it."""

    type: Literal["function"]
    function: Function


class FlatFunctionTool(Function):
    """A tool, as responses spell it."""

    type: Literal["function"]


class FunctionName(Part):
    name: str


class NamedFunction(Part):
    """A tool by its name, as chat completions spell it."""

    type: Literal["function"]
    function: FunctionName


class FlatNamedFunction(Part):
    """A tool by its name, as responses spell it."""

    type: Literal["function"]
    name: str


class AllowedTools(Part):
    mode: Literal["auto", "required"]
    tools: Annotated[Items[NamedFunction | FlatNamedFunction], Field(min_length=1)]


class AllowedToolsChoice(Part):
    """Some of the tools, as chat completions spell it."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


class FlatAllowedToolsChoice(AllowedTools):
    """Some of the tools, as responses spell it."""

    type: Literal["allowed_tools"]


Mode = Literal["none", "auto", "required"]
ToolChoice = Mode | NamedFunction | AllowedToolsChoice
FlatToolChoice = Mode | FlatNamedFunction | FlatAllowedToolsChoice


@dataclass(frozen=True)
class Choice:
    """The fields of a `punchcard.chat.Request` that say what may be called."""

    tools: tuple[Tool, ...]
    tool_choice: Mode
    allowed: tuple[str, ...] | None
    one: bool = False
    """A certain tool is to be called, once."""


def read_tools(
    tools: Sequence[FunctionTool | FlatFunctionTool] | None,
    choice: ToolChoice | FlatToolChoice | None,
    limit: int,
) -> Choice:
    """What may be called. ``limit``: bytes of a tool's schema. Raises `BadRequest` if it does not fit together."""
    made = []
    for index, tool in enumerate(tools or ()):
        function = tool.function if isinstance(tool, FunctionTool) else tool
        param = f"tools[{index}].{'function.' if isinstance(tool, FunctionTool) else ''}parameters"
        check_size(function.parameters, limit, param)
        definition = function.model_dump(include={"name", "description", "parameters"}, exclude_none=True)
        try:
            made.append(Tool.from_definition(definition))
        except ToolError as error:
            raise blamed(error, f"tools[{index}]") from error
    try:
        made = as_tools(made)
    except ToolError as error:
        raise blamed(error, "tools") from error
    mode: Mode
    names: tuple[str, ...] | None = None
    if choice is None:
        mode = "auto" if made else "none"
    elif isinstance(choice, str):
        mode = choice
    elif isinstance(choice, (NamedFunction, FlatNamedFunction)):
        mode, names = "required", (_name(choice),)
    else:
        among = choice.allowed_tools if isinstance(choice, AllowedToolsChoice) else choice
        mode, names = among.mode, tuple(map(_name, among.tools))
    known = {tool.name for tool in made}
    for name in names or ():
        required(
            name in known,
            f"tool_choice names {name!r}, which is not among the tools",
            "tool_choice",
            f"Known are {', '.join(sorted(known))}" if known else "Give tools",
        )
    required(bool(made) or mode != "required", "tool_choice wants a call, but there are no tools", "tool_choice")
    # Tools that may not be called are not shown to the model: it would call them all the same.
    if not made or mode == "none":
        return Choice((), "none", None)
    return Choice(tuple(made), mode, names, one=isinstance(choice, (NamedFunction, FlatNamedFunction)))


def _name(function: NamedFunction | FlatNamedFunction) -> str:
    return function.function.name if isinstance(function, NamedFunction) else function.name
