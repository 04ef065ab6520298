"""What an element holds: a text, or another value in the family's spelling.

A text stands in an element as it is. Where the schema admits a text and other values, and nothing says which it is,
only what the family would write of another value is that value: ``5``, but not ``0x5``, ``5e0`` or ``5 # five``.
"""

from __future__ import annotations

import math
import re
from typing import Any

from punchcard.exact import write_json
from punchcard.formats.literals import NUMBER, WORDS, as_json
from punchcard.tags.parameters import schema_admits, schema_kinds
from punchcard.tags.styles import Style

_JSON_WORDS = ("true", "false", "null")
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_LOOSE_NUMBER = re.compile(r"([-+]?)(0[xX][0-9A-Fa-f_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*)")
_LOOSE_DECIMAL = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_QUOTED = re.compile(r"([rRbBuUfF]{0,2})(\'\'\'|\"\"\"|\'|\")(.*)\2", re.DOTALL)
#: Characters of a number in another spelling than JSON's.
_MOST_LOOSE = 1_000


def read_value(style: Style, written: str, schema: Any, root: Any, *, is_string: bool | None) -> str:
    """The JSON text of what stands in an element whose value is under ``schema``, a part of ``root``.

    ``is_string``: as the element says, if it does.
    """
    if is_string:
        return write_json(written)
    kinds = schema_kinds(schema, root)
    if is_string is None and "string" in kinds:
        return _text_or_value(style, written, schema, root, kinds)
    return bare_value(written.strip(), kinds)


def bare_value(written: str, kinds: frozenset[str] = frozenset()) -> str:
    """The JSON text of a value without a frame: a literal of JSON or Python, of one of these types if it is known; what
    is none is a text."""
    if (made := as_json(written)) is not None:
        return made[0]
    if "number" in kinds and (number := _number(written)) is not None:
        return number
    if "array" in kinds and "," in written and (made := as_json(f"[{written}]")) is not None:
        return made[0]
    if (found := _QUOTED.fullmatch(written)) is not None and (quoted := _quoted(*found.groups())) is not None:
        return quoted
    return write_json(written)


def _quoted(prefix: str, quotes: str, inside: str) -> str | None:
    """The JSON text of a string of Python that is raw, in three quotes, or has its own quote inside."""
    if "r" in prefix.lower():
        return write_json(inside)
    quote = quotes[0]
    escaped = re.sub(rf"(\\.)|{quote}", lambda found: found[1] or f"\\{quote}", inside, flags=re.DOTALL)
    made = as_json(quote + escaped + quote)
    return None if made is None else made[0]


def _text_or_value(style: Style, written: str, schema: Any, root: Any, kinds: frozenset[str]) -> str:
    own = _own_spelling(style, written)
    if own is not None:
        admitted = schema_admits(schema, root, own)
        if admitted or (admitted is None and _kind(own) in kinds):
            return own
    text = write_json(written)
    if schema_admits(schema, root, text) is False:
        # No such text is admitted, so it is the other value in a spelling that the family would not write.
        other = bare_value(written.strip(), kinds)
        if schema_admits(schema, root, other):
            return other
    return text


def _own_spelling(style: Style, written: str) -> str | None:
    """The JSON text of another value than a text, if the family would write it so."""
    for word, value in zip(style.words, _JSON_WORDS, strict=True):
        if word and written == word:
            return value
    if NUMBER.fullmatch(written):
        return written if _is_plain(written) else None
    if written[:1] not in ("[", "{") or style.inner is style or (made := as_json(written)) is None:
        return None
    value, spelled = made
    return value if (spelled.exact if style.inner is None else spelled.python) else None


def _is_plain(number: str) -> bool:
    """Whether this is how the number is written."""
    if _WHOLE.fullmatch(number):
        return True
    read = float(number)
    return math.isfinite(read) and repr(read) == number


def _number(written: str) -> str | None:
    """A number as Python, or a hurried writer, spells it, in JSON."""
    if len(written) > _MOST_LOOSE:
        return None
    try:
        if found := _LOOSE_NUMBER.fullmatch(written):
            value = int(found[2].lstrip("0") or "0", 10) if found[2].replace("_", "").isdigit() else int(found[2], 0)
            return str(-value if found[1] == "-" else value)
        if _LOOSE_DECIMAL.fullmatch(written) and math.isfinite(decimal := float(written)):
            return repr(decimal)
    except ValueError:
        return None
    return None


def _kind(value: str) -> str:
    """The JSON type of a JSON text."""
    if value in WORDS:
        return "null" if value == "null" else "boolean"
    return {"[": "array", "{": "object", '"': "string"}.get(value[0], "number")
