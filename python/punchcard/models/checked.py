"""What an engine or a server somewhere else wrote, held against what was asked of it.

Nobody there has to enforce a grammar, so each text is followed through one here while it comes, byte by byte. What the
grammar refuses is a `NotEnforcedError` at once, which says where in the JSON it is.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from punchcard._core import GrammarMatcher
from punchcard.errors import ModelError
from punchcard.grammar import Grammar
from punchcard.schemas import JsonSchema
from punchcard.tokenizers.info import TokenizerInfo

if TYPE_CHECKING:
    from punchcard.compiler import GrammarCompiler

#: How much of a text an error shows.
_SHOWN = 60


class NotEnforcedError(ModelError):
    """An answer from elsewhere that breaks what was asked for, so the far end does not enforce it.

    Fields: ``tool`` (its name, or `None` for the answer's text), ``pointer`` (JSON pointer to the value at which the
    text goes wrong; `None` where the text is no JSON), ``text`` (what was written up to there and a little more).
    """

    tool: str | None = None
    pointer: str | None = None
    text: str = ""


class CheckedText:
    """A text that comes piece by piece and must follow ``grammar``. ``what``: how errors call it.

    Raises `SchemaError` or `GrammarError` if the grammar cannot be compiled.
    """

    def __init__(self, grammar: Grammar, what: str, *, tool: str | None = None) -> None:
        self._matcher = GrammarMatcher(_compiler().compile(grammar))
        self._is_json = grammar._json_schema() is not None
        self._what = what
        self._tool = tool
        self.text = ""

    def add(self, piece: str) -> None:
        """Takes the next piece. Raises `NotEnforcedError` if the text cannot go on with it."""
        if self._matcher.accept_string(piece):
            self.text += piece
            return
        for at, character in enumerate(piece):
            if not self._matcher.accept_string(character):
                written, rest = self.text + piece[:at], piece[at : at + _SHOWN]
                raise self._error(f"goes wrong at {rest!r}", written, written + rest)
        raise AssertionError("a text was refused whose characters are not")

    def finish(self) -> None:
        """Raises `NotEnforcedError` if the text may not end here."""
        if not self._matcher.is_accepting():
            raise self._error("ends too soon", self.text, self.text)

    def _error(self, problem: str, written: str, shown: str) -> NotEnforcedError:
        pointer = pointer_at(written) if self._is_json else None
        where = "" if pointer is None else f" at {pointer or 'its root'}"
        return NotEnforcedError(
            f"{self._what} {problem}{where}, after {written[-_SHOWN:]!r}",
            hint="The far end does not enforce what it was asked for: see its documentation on structured outputs, or "
            "run the model under Punchcard",
            tool=self._tool,
            pointer=pointer,
            text=shown,
        )


#: The options of a JSON Schema that say how its values are written.
_MANNERS = (
    "profile",
    "property_order",
    "whitespace",
    "outer_whitespace",
    "number_spelling",
    "number_digits",
    "string_escapes",
)


def any_spelling(grammar: Grammar) -> Grammar:
    """The grammar, with any order of members, white space and spelling of numbers and strings if it is of JSON: values
    are checked, not manners."""
    found = grammar._json_schema()
    if found is None:
        return grammar
    schema, options = found[0], json.loads(found[1])
    for manner in _MANNERS:
        options.pop(manner, None)
    manners = {"profile": "spec", "outer_whitespace": True}
    return Grammar({"json_schema": {"schema": schema, "options": {**options, **manners}}})


def arguments_grammar(parameters: JsonSchema) -> Grammar:
    """Of a tool's arguments, in any spelling."""
    return Grammar.from_json_schema(parameters, profile="spec", outer_whitespace=True)


@functools.cache
def _compiler() -> GrammarCompiler:
    """A compiler for bytes: each is a token."""
    from punchcard.compiler import GrammarCompiler

    return GrammarCompiler(TokenizerInfo.from_vocab([*(bytes([i]) for i in range(256)), b""], eos_token_ids=[256]))


def pointer_at(text: str) -> str:
    """The JSON pointer to the value that is under way at the end of ``text``, a beginning of JSON: one that has begun,
    or the object or array that would go on."""
    path: list[Any] = []  # for each open object its last name (None before the first), for each open array an index
    whole = False  # the last value of the innermost one has been closed by a quote or a bracket
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == '"':
            string, position = _string(text, position)
            if path and not isinstance(path[-1], int) and text[position:].lstrip(" \t\r\n").startswith(":"):
                path[-1] = string
            else:
                whole = position <= len(text)
        elif character in "{[":
            path.append(None if character == "{" else 0)
            whole = False
        elif character in "}]" and path:
            path.pop()
            whole = True
        elif character == "," and path:
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
            whole = False
    names = (str(name) for name in (path[:-1] if whole else path) if name is not None)
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def _string(text: str, begin: int) -> tuple[str, int]:
    """The value of the JSON string whose first character is at ``begin``, and where it ends, which may be the text's
    end."""
    end = begin
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    try:
        return json.loads(f'"{text[begin:end]}"'), end + 1
    except ValueError:
        return text[begin:end], end + 1
