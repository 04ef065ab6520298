"""JSON with numbers of any size.

Python refuses to read or write integers of more than some 4,300 digits, reads 1e999 as infinity, and writes that as a
word that is no JSON. A model may write such numbers all the same.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

#: Digits of an integer that is read as one, as the time for that grows with their square. A longer one is infinite.
MOST_DIGITS = 100_000


class LongInteger(int):
    """An integer that can be shown, however many digits it has."""

    def __repr__(self) -> str:
        return _digits(self)

    __str__ = __repr__


def read_json(text: str, *, strict: bool = True, words: bool = False) -> Any:
    """The value of a JSON text. Raises `ValueError` if it is none.

    ``strict``: strings hold no control characters; ``words``: NaN and Infinity, which Python writes, are numbers.
    """
    return (_WORDS if words else _STRICT if strict else _LOOSE).decode(text)


def write_json(value: Any, **options: Any) -> str:
    """The JSON text of a value; ``options``: of `json.dumps`. A number beyond Python's range is written as 1e999."""
    options = {"ensure_ascii": False, **options}
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        mark = uuid.uuid4().hex
        numbers: list[str] = []
        written = json.dumps(_marked(value, mark, numbers), **options)
        for index, number in enumerate(numbers):
            written = written.replace(f'"{mark} {index}"', number, 1)
        return written


def _marked(value: Any, mark: str, numbers: list[str]) -> Any:
    """The value with a mark in place of each number that Python cannot write."""
    if isinstance(value, Mapping):
        return {key: _marked(item, mark, numbers) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_marked(item, mark, numbers) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        written = _digits(value)
    elif isinstance(value, float) and not math.isfinite(value):
        written = "null" if math.isnan(value) else "1e999" if value > 0 else "-1e999"
    else:
        return value
    numbers.append(written)
    return f"{mark} {len(numbers) - 1}"


def _digits(value: int) -> str:
    return f"{Decimal(int(value)):f}"  # a Decimal knows no limit


def _integer(digits: str) -> float:
    if len(digits) > MOST_DIGITS:
        return float(digits)
    try:
        return int(digits)
    except ValueError:
        return LongInteger(int(Decimal(digits)))


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_STRICT = json.JSONDecoder(parse_constant=_no_number, parse_int=_integer)
_WORDS = json.JSONDecoder(parse_int=_integer)
_LOOSE = json.JSONDecoder(strict=False, parse_constant=_no_number, parse_int=_integer)
