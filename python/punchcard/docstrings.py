"""What a docstring says, in Google, NumPy or Sphinx style: a description, and one for each parameter."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Documentation:
    """``description``: the text before the first section. ``parameters``: name -> description, one line each."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def document(function: Any) -> Documentation:
    """Reads the docstring of a function, or of a callable object's class. A malformed one is taken as plain text."""
    text = inspect.getdoc(function)
    if not text:
        return Documentation()
    import docstring_parser  # takes longer than all else here, and is not needed without docstrings

    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return Documentation(text.strip())
    parts = [part.strip() for part in (parsed.short_description, parsed.long_description) if part]
    parameters = {
        parameter.arg_name.lstrip("*"): " ".join(parameter.description.split())
        for parameter in parsed.params
        if parameter.description
    }
    return Documentation("\n\n".join(parts), parameters)
