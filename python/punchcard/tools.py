"""Tools: functions that a language model may call.

    @tool
    def set_lights(room: str, brightness: int = 50) -> dict:
        \"\"\"Set a room's lights.\"\"\"

A `Tool` is still the function (calling it calls the function), and knows besides its name, its description and the JSON
Schema of its arguments. It can also be a mere description, from an OpenAI-style definition; then it cannot be called.
The function may be a coroutine function: `Tool.acall` awaits it, `Tool.call` runs it to its end.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

from punchcard.errors import ToolError
from punchcard.schemas import JsonSchema, Signature
from punchcard.toolschemas import without_nulls

# What OpenAI's API takes as a function's name, and dots, which servers have in them.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}")


class Tool:
    """A named function with a JSON Schema for its arguments.

    ``name``: what the model calls it; ``description``: what the model reads; ``parameters``: the schema of the
    arguments, in which a keyword that is null counts as absent; ``function``: the Python function, or `None` for a mere
    description.

    The schema is made at first use, so that annotations may name types that are defined later in the module.
    """

    def __init__(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: JsonSchema | None = None,
    ) -> None:
        if function is None and (name is None or parameters is None):
            raise ToolError("A tool needs a function, or else a name and parameters")
        self.function = function
        self.name = str(getattr(function, "__name__", type(function).__name__)) if name is None else name
        if not _NAME.fullmatch(self.name):
            raise ToolError(
                f"{self.name!r} cannot be a tool's name",
                hint="Use at most 64 letters, digits, '_', '-' and '.', not beginning with '.'",
                tool=self.name,
            )
        self._description = description
        self._parameters = without_nulls(parameters)
        if function is not None:
            functools.update_wrapper(self, function)

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> Tool:
        """A description without a function, from ``{"type": "function", "function": {"name", "description",
        "parameters"}}`` or the inner object alone. Raises `ToolError` if it has another shape."""
        inner = definition.get("function", definition) if isinstance(definition, Mapping) else None
        if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
            raise ToolError(
                "A tool definition has no name",
                hint='It looks like {"type": "function", "function": {"name": ..., "parameters": {...}}}',
            )
        name = inner["name"]
        description = inner.get("description") or ""
        parameters = inner.get("parameters")
        if parameters is None:
            parameters = {"type": "object", "properties": {}, "additionalProperties": False}
        if not isinstance(parameters, Mapping) or not isinstance(description, str):
            raise ToolError(
                f"The definition of {name} is malformed",
                hint="description is a text, parameters a JSON Schema",
                tool=name,
            )
        return cls(name=name, description=description, parameters=dict(parameters))

    @functools.cached_property
    def signature(self) -> Signature:
        """How JSON arguments become a call. Raises `ToolError` if the function cannot be described."""
        if self.function is None:
            raise ToolError(f"{self.name} is a definition without a function", tool=self.name)
        return Signature(self.function)

    @property
    def description(self) -> str:
        """What the tool does: as given, or from the function's docstring."""
        if self._description is None:
            return self.signature.documentation.description
        return self._description

    @property
    def parameters(self) -> JsonSchema:
        """The JSON Schema of the arguments."""
        return self.signature.schema if self._parameters is None else self._parameters

    def definition(self) -> dict[str, Any]:
        """The tool as model prompts and OpenAI's API spell it."""
        inner = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": inner}

    @property
    def executes(self) -> bool:
        """Whether the tool can be called; a mere description is left to the caller."""
        return self.function is not None

    @property
    def is_coroutine(self) -> bool:
        """Whether the function is a coroutine function."""
        from punchcard.waiting import is_coroutine_function

        return is_coroutine_function(self.function)

    def call(self, arguments: Mapping[str, Any] | str, *, timeout: float | None = None) -> Any:
        """Calls the function with JSON arguments (plain data or text), converted to the types that it declares.

        A coroutine function is run to its end, in an event loop of its own; after ``timeout`` seconds it is cancelled,
        and `TimeoutError` raised. A plain function cannot be interrupted.

        Raises `ToolError` if the arguments do not fit, or for a coroutine function where an event loop is running; what
        the function raises is not caught.
        """
        result = self._called(arguments)
        if not inspect.isawaitable(result):
            return result
        from punchcard.waiting import loop_is_running, to_end

        if loop_is_running():
            if inspect.iscoroutine(result):
                result.close()
            raise ToolError(
                f"{self.name} is a coroutine function, and an event loop is running already",
                hint="Await `acall` of the tool, or `arun` of the agent",
                tool=self.name,
            )
        return to_end(result, timeout)

    async def acall(self, arguments: Mapping[str, Any] | str) -> Any:
        """Calls the function as `call` does, and lets others work meanwhile: a coroutine function is awaited, any other
        called in a thread. Where the caller is cancelled, so is the coroutine; a thread is left behind."""
        from punchcard.waiting import awaited, in_thread

        return await awaited(self._called(arguments) if self.is_coroutine else await in_thread(self._called, arguments))

    def _called(self, arguments: Mapping[str, Any] | str) -> Any:
        if self.function is None:
            raise ToolError(
                f"{self.name} cannot be called: it is a definition without a function",
                hint="Give the tools as Python functions to have them executed",
                tool=self.name,
            )
        bound = self.signature.bind(arguments)
        return self.function(*bound.args, **bound.kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function as if it were not a tool; defaults given by `Field` count as defaults."""
        if self.function is None:
            return self.call(kwargs)
        bound = self.signature.complete(*args, **kwargs)
        return self.function(*bound.args, **bound.kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Tool:
        """A tool made of a method is bound like one."""
        if instance is None or self.function is None:
            return self
        bound = self.function.__get__(instance, owner)
        return Tool(bound, name=self.name, description=self._description, parameters=self._parameters)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(*, name: str | None = None, description: str | None = None) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, description: str | None = None
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a function a `Tool`. Plain (``@tool``) or with another name or description than the function's own
    (``@tool(name="lights")``)."""
    if function is None:
        return functools.partial(Tool, name=name, description=description)
    return Tool(function)


def as_tools(tools: Iterable[Any]) -> list[Tool]:
    """Tools from a mixture of `Tool` objects, functions and OpenAI-style definitions.

    Raises `ToolError` if two have the same name.
    """
    result: dict[str, Tool] = {}
    for item in tools:
        made = _as_tool(item)
        if made.name in result:
            raise ToolError(f"Two tools are named {made.name}", hint="Give one of them another name", tool=made.name)
        result[made.name] = made
    return list(result.values())


def _as_tool(item: Any) -> Tool:
    if isinstance(item, Tool):
        return item
    if isinstance(item, Mapping):
        return Tool.from_definition(item)
    if callable(item) and not inspect.isclass(item):
        return Tool(item)
    raise ToolError(f"{item!r} is no tool", hint="A tool is a function or an OpenAI-style definition")
