"""The text of an answer, as far as it has come, for a coroutine that reads it."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import regex

#: White space that may stand in one place of a frame. More is no frame, which keeps reading linear.
MOST_SPACE = 128

_SPACES = re.compile(r"(\\s|\[\\s[^\]]*\])\*\+?")


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: int = 0) -> Any:
    """A pattern in which each run of white space is bounded, and is not tried again in parts."""
    return regex.compile(_SPACES.sub(rf"\1{{0,{MOST_SPACE}}}+", pattern), flags)


class Wait(NamedTuple):
    """What a reading coroutine yields where it cannot go on without more text, or the end of it."""


class Source:
    """Text that is read from its beginning and grows at its end.

    ``marks``: what the characters stand for that are marks (see `punchcard.formats.parser`).
    """

    def __init__(self, marks: Mapping[int, str]) -> None:
        self.closed = self.cut_off = False
        self._marks = dict(marks)
        self._text = ""
        self._at = 0
        self._record: list[str] | None = None

    def append(self, text: str) -> None:
        self._text = self._text[self._at :] + text
        self._at = 0

    def close(self, *, cut_off: bool = False) -> None:
        """Says that no more text will come; ``cut_off``: though there would have been more."""
        self.closed, self.cut_off = True, cut_off

    @property
    def at_end(self) -> bool:
        """Whether all that has come was read."""
        return self._at == len(self._text)

    @property
    def rest(self) -> str:
        """What has come and was not read."""
        return self._text[self._at :]

    def decoded(self, text: str) -> str:
        """Text with its marks spelled."""
        return text.translate(self._marks) if self._marks else text

    def match(self, pattern: Any) -> Generator[Wait, None, Any]:
        """The match of a pattern at this place, or None; waits as long as more text could make a difference."""
        while True:
            found = pattern.match(self._text, self._at, partial=not self.closed)
            if found is None or not found.partial:
                return found
            yield Wait()

    def accept(self, pattern: Any) -> Generator[Wait, None, Any]:
        """The match of a pattern at this place, which is read; or None."""
        found = yield from self.match(pattern)
        if found is not None:
            self.read_past(found)
        return found

    def search(self, pattern: Any) -> tuple[Any, int]:
        """The first match in what has come, or None; and how many characters are certain to be no part of one."""
        found = pattern.search(self._text, self._at, partial=not self.closed)
        if found is None:
            return None, len(self._text) - self._at
        return (None if found.partial else found), found.start() - self._at

    def read(self, count: int) -> str:
        """The next ``count`` characters, which are read."""
        text = self._text[self._at : self._at + count]
        self._at += len(text)
        if self._record is not None:
            self._record.append(text)
        return text

    def read_past(self, found: Any) -> None:
        """Reads up to the end of a match."""
        self.read(found.end() - self._at)

    def record(self) -> None:
        """From here on, what is read is kept, to be restored or recalled."""
        self._record = []

    def restore(self) -> None:
        """Goes back to where the record began."""
        self._text = self.recall() + self._text[self._at :]
        self._at = 0

    @property
    def recording(self) -> bool:
        """Whether a record is kept."""
        return self._record is not None

    def recall(self) -> str:
        """What was read since the record began. Ends the record."""
        recorded = "".join(self._record or ())
        self._record = None
        return recorded
