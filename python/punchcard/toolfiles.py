"""Tools from files: a Python module that defines functions with `@tool`, or a JSON file of OpenAI-style definitions."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from punchcard.errors import ToolError
from punchcard.tools import Tool, as_tools


def load_tools(path: str | Path) -> list[Tool]:
    """The tools of a ``.py`` or ``.json`` file, in the order of definition.

    A Python file is executed. A JSON file holds one definition, a list of them, or ``{"tools": [...]}``; its tools
    cannot be called. Raises `ToolError` if the file cannot be read or imported, or defines no tool.
    """
    path = Path(path)
    if not path.is_file():
        raise ToolError(f"There is no tool file {path}")
    if path.suffix == ".json":
        tools = as_tools(_definitions(path))
    elif path.suffix == ".py":
        module = _import(path)
        # A tool can have several names in a module (an alias, an import); it is one tool.
        found = {id(value): value for value in vars(module).values() if isinstance(value, Tool)}
        tools = as_tools(found.values())
    else:
        raise ToolError(f"{path} is neither a .py nor a .json file")
    if not tools:
        raise ToolError(f"{path} defines no tools", hint="Decorate its functions with @punchcard.tool")
    for tool in tools:
        _ = tool.parameters  # an annotation that cannot be described is an error of the file
    return tools


def _definitions(path: Path) -> list[Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ToolError(f"{path} is not JSON: {error}") from error
    if isinstance(content, dict):
        content = content.get("tools", [content])
    if not isinstance(content, list):
        raise ToolError(f"{path} holds no tool definitions", hint="It is a list of OpenAI-style definitions")
    return content


def _import(path: Path) -> ModuleType:
    path = path.resolve()
    name = f"punchcard_tools_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # the suffix is .py
    module = importlib.util.module_from_spec(spec)
    # Registered before it runs, since dataclasses and Pydantic look their module up there; its folder is on the path
    # as it would be for a script.
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit in a tool file must not end the caller
        del sys.modules[name]
        raise ToolError(f"{path} cannot be imported: {_where(error, path)}{type(error).__name__}: {error}") from error
    finally:
        with contextlib.suppress(ValueError):  # the file may have changed the path itself
            sys.path.remove(str(path.parent))
    return module


def _where(error: BaseException, path: Path) -> str:
    """``line N: `` of the tool file, where the error passed through it."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"line {error.lineno}: "
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"line {lines[-1]}: " if lines else ""
