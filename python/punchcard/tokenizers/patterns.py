"""Regular expressions out of a ``tokenizer.json``, which comes from anybody.

Python's engine backtracks, and a pattern such as ``(a+)+$`` takes it twice as long for each further character. So a
pattern is taken only if it leaves the engine next to nothing to try: one part that varies in length, which is a single
set of characters, and few alternatives. What real files have, such as ``▁`` or ``\\s+``, is like this.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from ..errors import TokenizerError

if sys.version_info >= (3, 11):
    from re import _parser
else:
    import sre_parse as _parser

#: Characters of a pattern.
_MOST_SOURCE = 1 << 10
#: Alternatives, all in all.
_MOST_BRANCHES = 8
_ONE_CHARACTER = ("LITERAL", "NOT_LITERAL", "IN", "ANY", "CATEGORY")
_PLAIN = (*_ONE_CHARACTER, "AT")


def linear_pattern(source: str) -> re.Pattern[str]:
    """A compiled pattern. Raises `TokenizerError` if it is none, or might take long."""
    if len(source) > _MOST_SOURCE:
        raise TokenizerError(f"tokenizer.json has a pattern of more than {_MOST_SOURCE} characters")
    try:
        parsed: Any = _parser.parse(source)
        repeats, branches = _count(parsed)
        if repeats <= 1 and branches <= _MOST_BRANCHES:
            return re.compile(source)
    except (re.error, OverflowError, RecursionError) as error:
        raise TokenizerError(f"tokenizer.json has a decoder with the pattern {source!r}: {error}") from error
    raise TokenizerError(
        f"tokenizer.json has a decoder with the pattern {source[:80]!r}, which could take for ever",
        hint="One part may vary in length, a character or a set of them, with at most eight alternatives",
    )


def _count(parsed: Any) -> tuple[int, int]:
    """Parts that vary in length, and alternatives; many of both for what is not known to be quick."""
    repeats = branches = 0
    for operator, argument in parsed:
        name = str(operator)
        inner: tuple[int, int] = (0, 0)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, body = argument
            single = len(body) == 1 and str(body[0][0]) in _ONE_CHARACTER
            inner = (int(least != most), 0) if single and least <= _MOST_SOURCE else (2, 0)
        elif name == "BRANCH":
            counts = [_count(branch) for branch in argument[1]]
            inner = (sum(count[0] for count in counts), len(counts) + sum(count[1] for count in counts))
        elif name == "SUBPATTERN":
            inner = _count(argument[-1])
        elif name not in _PLAIN:
            inner = (2, 0)
        repeats, branches = repeats + inner[0], branches + inner[1]
    return repeats, branches
