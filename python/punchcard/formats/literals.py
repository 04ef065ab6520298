"""JSON and Python literals as JSON text, piece by piece.

What a model writes is nearly JSON, or nearly Python: line breaks inside strings, strings in single quotes, ``True``, a
comma too many. What comes out is JSON, with each number as it was written.
"""

from __future__ import annotations

import re

from punchcard.exact import read_json, write_json

#: Values within each other; deeper ones are no arguments that anybody asked for.
MAX_DEPTH = 200

WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")

_SPACE = re.compile(r"[ \t\r\n]*")
_BARE = re.compile(r"[^\s{}\[\](),:\"']+")
_DELIMITER = re.compile(r"[\s{}\[\](),:\"']")
_PLAIN = re.compile(r"[^\"'\\\x00-\x1f]+")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
#: The beginning of an escape that more text could complete, or change the meaning of: half of a surrogate pair.
_OPEN_ESCAPE = re.compile(
    r"\\(?:u[0-9A-Fa-f]{0,3}|U[0-9A-Fa-f]{0,7}|x[0-9A-Fa-f]?|u[dD][89abAB][0-9A-Fa-f]{2}(?:\\(?:u[0-9A-Fa-f]{0,3})?)?)?"
)
_LOW = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})")
_FOLLOWS = re.compile(r"[ \t\r\n]{0,126}([^ \t\r\n])")
#: Behind a quote, with it; more is waited for no longer.
_MOST_SPACE = 128
_CLOSERS = {"{": "}", "[": "]", "(": ")"}


class Literal:
    """Reads one value that comes in pieces, as JSON text.

    Attributes:
        ended: the value is complete; ``broken``: it is none. Brackets are paired here, commas and colons are not.
        exact: so far everything was JSON as it stands; ``python``: it was JSON, or how Python spells it.
        inside: the quote of the string that the text has come to.
    """

    def __init__(self) -> None:
        self.ended = self.broken = False
        self.exact = self.python = True
        self.inside = ""
        self._closers: list[str] = []
        self._held = ""  # an escape that more text could complete
        self._word: list[str] = []  # a bare word that more text could go on with
        self._comma = ""  # a comma with its space, told of when something follows it
        self._key = False  # a name may come
        self._out: list[str] = []

    def feed(self, piece: str, *, last: bool = False) -> tuple[str, int]:
        """Goes on with a piece. Returns its JSON text, and how many of its characters belong to the value.

        ``last``: nothing follows the piece.
        """
        if self._word and not last and _DELIMITER.search(piece) is None:
            self._word.append(piece)
            return "", len(piece)
        before = "".join(self._word) or self._held
        text = before + piece
        at, held = 0, len(before)
        self._held = ""
        self._word.clear()
        while at < len(text) and not (self.ended or self.broken):
            step = self._string(text, at, last) if self.inside else self._token(text, at, last)
            if step is None:
                if self.inside:
                    self._held = text[at:]
                else:
                    self._word.append(text[at:])
                at = len(text)
            else:
                at = step
        written = "".join(self._out)
        self._out.clear()
        return written, max(at - held, 0)

    @property
    def depth(self) -> int:
        return len(self._closers)

    def _token(self, text: str, at: int, last: bool) -> int | None:
        """Reads a mark or a bare word; returns where it ends, or None if that is not known yet."""
        character = text[at]
        if character in " \t\r\n":
            end = _SPACE.match(text, at).end()  # type: ignore[union-attr]
            if self._comma:
                self._comma += text[at:end]
            else:
                self._out.append(text[at:end])
            return end
        if character in "\"'":
            self._say('"')
            self.inside = character
            self._drift(character == "'")
        elif character in _CLOSERS:
            self._say("[" if character == "(" else character)
            self._closers.append(_CLOSERS[character])
            self._drift(character == "(")
            self._key = character == "{"
            self.broken = len(self._closers) > MAX_DEPTH
        elif character in "}])":
            self._drift(bool(self._comma))
            self._comma = ""
            if not self._closers or self._closers.pop() != character:
                self.broken = True
                return at
            self._out.append("]" if character == ")" else character)
            self._settle()
        elif character == ",":
            if self._comma or not self._closers:
                self.broken = True
                return at
            self._comma = ","
            self._key = self._closers[-1] == "}"
        elif character == ":":
            self._out.append(":")
            self._key = False
        else:
            return self._bare(text, at, last)
        return at + 1

    def _bare(self, text: str, at: int, last: bool) -> int | None:
        found = _BARE.match(text, at)
        if found is None or (found.end() == len(text) and not last):
            if found is None:
                self.broken = True
                return at
            return None
        word = found[0]
        if self._key:  # a name without quotes
            self.exact = self.python = False
            self._say(write_json(word))
        elif word in WORDS:
            self._drift(WORDS[word] != word)
            self.python = self.python and WORDS[word] != word
            self._say(WORDS[word])
        elif NUMBER.fullmatch(word):
            self._say(word)
        else:
            self.broken = True
            return at
        self._settle()
        return int(found.end())

    def _string(self, text: str, at: int, last: bool) -> int | None:
        character = text[at]
        if character == self.inside:
            if self._closers:
                follows = _FOLLOWS.match(text, at + 1)
                if follows is None and not last and len(text) - at < _MOST_SPACE:
                    return None
                if follows is not None and follows[1] not in ",:}])":
                    # A quote that nothing follows which could follow a string is part of the string.
                    self._out.append(write_json(character)[1:-1])
                    self.exact = self.python = False
                    return at + 1
            self._out.append('"')
            self.inside = ""
            self._settle()
            return at + 1
        if character == "\\":
            return self._escape(text, at, last)
        if found := _PLAIN.match(text, at):
            self._out.append(found[0])
            return int(found.end())
        self._drift(character < " ")
        self.python = self.python and character >= " "
        self._out.append(write_json(character)[1:-1])
        return at + 1

    def _escape(self, text: str, at: int, last: bool) -> int | None:
        if not last and _OPEN_ESCAPE.fullmatch(text, at):
            return None
        found = _ESCAPE.match(text, at)
        if found is None:  # a backslash at the very end
            self._out.append("\\\\")
            self._drift(True)
            return at + 1
        high, wide, short, character = found.groups()
        if high:
            if not 0xD800 <= (code := int(high, 16)) < 0xE000:
                self._out.append(found[0])
            elif code < 0xDC00 and (low := _LOW.match(text, found.end())) is not None:
                self._out.append(found[0] + low[0])
                return int(low.end())
            else:  # half of a pair is no character
                self._out.append("\\ufffd")
                self.exact = self.python = False
            return int(found.end())
        if wide or short:
            code = int(wide or short, 16)
            self._drift(True)
            known = code < 0x110000 and not 0xD800 <= code < 0xE000
            self._out.append(write_json(chr(code))[1:-1] if known else write_json(found[0])[1:-1])
            return int(found.end())
        if character in '"\\/bfnrt':
            self._out.append(found[0])
        else:
            # Python leaves a backslash that means nothing, as in a path, and drops one before a line break.
            kept = {"'": "'", "\n": "", "0": "\x00", "a": "\x07", "v": "\x0b"}.get(character, found[0])
            self._drift(True)
            self._out.append(write_json(kept)[1:-1])
        return int(found.end())

    def _say(self, written: str) -> None:
        self._out.append(self._comma + written)
        self._comma = ""

    def _settle(self) -> None:
        self._key = False
        self.ended = not self._closers

    def _drift(self, whether: bool) -> None:
        self.exact = self.exact and not whether


def as_json(text: str) -> tuple[str, Literal] | None:
    """A whole text as the JSON text of one value, and how it was spelled; None if it is none."""
    literal = Literal()
    written, count = literal.feed(text, last=True)
    if literal.broken or not literal.ended or text[count:].strip(" \t\r\n"):
        return None
    return (written, literal) if is_json(written) else None


def is_json(text: str) -> bool:
    """Whether a text is JSON."""
    try:
        read_json(text)
    except (ValueError, RecursionError):
        return False
    return True
