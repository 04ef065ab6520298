"""Schemas named on the command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from punchcard.errors import InvalidSchemaError

SCHEMA_METAVAR = "FILE.json|MODULE:MODEL"


def load_schema(schema: str) -> Any:
    """A schema's JSON text, or a type. Raises `InvalidSchemaError` if it cannot be found."""
    path = Path(schema)
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _invalid(f"{schema} cannot be read: {error}") from error
    module, colon, name = schema.partition(":")
    if not colon or not name or path.suffix == ".json":
        raise _invalid(f"There is no schema file {schema}", "Give a .json file, or MODULE:MODEL")
    # As with `python -m`, modules of the current folder can be imported.
    sys.path.insert(0, "")
    try:
        value: Any = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except AttributeError as error:
        raise _invalid(f"The module {module} has no {name}") from error
    except Exception as error:  # whatever the module raises when it is imported
        raise _invalid(f"The module {module} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove("")
    return value


def _invalid(message: str, hint: str | None = None) -> InvalidSchemaError:
    return InvalidSchemaError(message, hint=hint, pointer="", keyword="")
