"""Reads answers, whole or piece by piece: thoughts, text and calls.

The parser is a coroutine over the text so far. It asks for more where what it has could go on in more than one way, and
looks at nothing twice that it has settled, so an answer that comes token by token costs no more than a whole one, and
is read the same however it is cut. It takes more than a grammar would let through: white space around marks, other
orders and names of members, lists and single objects alike, Python's words, missing ends. It loses no text: what looks
like a call and is none is text, and then it was not told of as a call.

A call is told of when it is complete. Where a grammar makes sure that what begins as a call is one, it is told of while
it is written. A call that the answer's tokens ran out in is told of as far as it came.

Marks that are one token of the vocabulary are known by being this token (see `punchcard.formats.patterns`).
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from typing import Any, Literal, TypeAlias

import regex

from punchcard.chat import Call, Delta, PartialCall, Reply
from punchcard.formats.arguments import (
    QUOTED,
    Tell,
    decode_json,
    read_members,
    read_pythonic,
    read_relaxed,
    strict_json,
)
from punchcard.formats.base import INDEX0, INDEX1, NAME, Json, ToolFormat
from punchcard.formats.grammar import Begun
from punchcard.formats.literals import as_json
from punchcard.formats.patterns import GROUPS, NEVER, any_of, patterns_of
from punchcard.formats.source import Source, Wait, compiled
from punchcard.formats.values import bare_value
from punchcard.tools import Tool

Reading: TypeAlias = Generator[Wait, None, Any]
_Kind: TypeAlias = Literal["text", "reasoning"]


class OutputParser:
    """Reads one answer of a model of this family.

    ``tools``: those of the request, for the types of their arguments; ``tokens``: the markers that come as tokens, by
    `feed` with ``special=True``. Without any, marks are found in text. ``begun``, ``prefilled``: see `Answers`.
    ``calls``: there may be calls; otherwise what looks like one is text. ``constrained``: the answer is under the
    grammar of the format, so that nothing is missing in a call that begins.

    """

    def __init__(
        self,
        tool_format: ToolFormat,
        tools: Iterable[Tool] = (),
        *,
        tokens: Collection[str] = (),
        begun: Begun = "nothing",
        prefilled: bool = False,
        calls: bool = True,
        constrained: bool = False,
    ) -> None:
        self._constrained = constrained
        self._cut_off = False  # in a call
        self._reply = Reply()
        self._said: dict[_Kind, list[str]] = {"text": [], "reasoning": []}
        self._may_call = calls
        self._format = tool_format
        self._tools = {tool.name: tool for tool in tools}
        marks = tuple(marker for marker in tool_format.markers if marker in tokens)
        self._patterns = patterns_of(tool_format, marks, tuple(self._tools))
        self._source = Source({ord(code): mark for mark, code in self._patterns.codes.items()})
        self._deltas: list[Delta] = []
        self._space: list[str] = []  # read, and perhaps no more than a frame
        self._open: PartialCall | None = None
        self._pieces: list[str] = []  # of its arguments
        self._unsure: list[Delta] = []  # of a call that may turn out to be none
        self._name: str | None = None  # of a call whose arguments have not begun
        self._retries = _MOST_RETRIES
        self._reading: Reading | None = self._answer(begun)
        if prefilled:
            self._source.append(tool_format.prefill)
        self._resume()

    def feed(self, text: str, *, special: bool = False) -> list[Delta]:
        """Goes on with a piece of the answer; ``special``: it is the name of a special token. Returns what is new."""
        mark = self._patterns.codes.get(text) if special else None
        self._source.append(mark or _characters(text))
        self._resume()
        return self._taken()

    def finish(self, ended: Literal["stop", "length"] = "stop") -> list[Delta]:
        """Ends the answer: at its end, or cut off. Returns what is left."""
        if ended == "length":
            self._cut_off = self._source.recording
            if not self._cut_off:
                self._drop_mark()
        self._source.close(cut_off=ended == "length")
        self._resume()
        self.reply.finish = "length" if ended == "length" else "calls" if self._reply.calls else "stop"
        return self._taken()

    @property
    def reply(self) -> Reply:
        """What was read so far; complete when `finish` was called."""
        self._reply.text = "".join(self._said["text"])
        self._reply.reasoning = "".join(self._said["reasoning"])
        return self._reply

    def _drop_mark(self) -> None:
        """Forgets the beginning of a mark that the answer was cut off in: it is no text."""
        held = self._source.rest
        if self._may_call and (self._reply.calls or len(self._source.decoded(held.strip())) > 1):
            self._source.read(len(held))

    def _resume(self) -> None:
        if self._reading is not None:
            try:
                next(self._reading)
            except StopIteration:
                self._reading = None

    def _taken(self) -> list[Delta]:
        taken, self._deltas = self._deltas, []
        return taken

    # What an answer consists of.

    def _answer(self, begun: Begun) -> Reading:
        source, patterns = self._source, self._patterns
        if begun == "reasoning":
            yield from self._part("reasoning", any_of(*patterns.reasoning_ends))
        elif begun == "text":
            yield from self._part("text", patterns.text_ends[0])
        parts = patterns.first_parts
        while not (source.closed and source.at_end):
            found = yield from source.match(parts)
            parts = patterns.first_parts if found and found.lastgroup.startswith("think") else patterns.parts
            if found is None:
                yield from self._part("text", None)
            elif found.lastgroup in ("calls", "drifted"):
                if not (self._can_call and (yield from self._calls(drifted=found.lastgroup == "drifted"))):
                    self._say("text", source.read(1))
                    yield from self._part("text", None)
            else:
                self._frame(source, found)
                if found.lastgroup.startswith("think"):
                    yield from self._part("reasoning", patterns.reasoning_ends[int(found.lastgroup[5:])])
                elif found.lastgroup.startswith("text"):
                    yield from self._part("text", patterns.text_ends[int(found.lastgroup[4:])])
        if not self._reply.calls and not self._said["reasoning"]:
            self._tell("text", "".join(self._space))  # white space belongs to a text that has nothing around it

    @property
    def _can_call(self) -> bool:
        """Whether a call may begin here."""
        return self._may_call and not (self._format.trigger == "start" and self._reply.text)

    def _frame(self, source: Source, found: Any) -> None:
        """Reads past a mark. The white space around it is no text."""
        source.read_past(found)
        self._space = []

    def _part(self, kind: _Kind, end: Any) -> Reading:
        """Text or thoughts, up to and with what ends them, or up to another part of the answer."""
        source, patterns = self._source, self._patterns
        if end is None:
            pattern = patterns.later_parts
        elif kind == "text" or self._format.calls_end_reasoning:
            pattern = any_of(end, patterns.calls)
        else:
            pattern = end
        while True:
            found, settled = source.search(pattern)
            self._say(kind, source.read(settled))
            if found is not None:
                if end is not None and (ended := (yield from source.match(end))) is not None:
                    self._frame(source, ended)
                return
            if source.closed:
                return
            yield Wait()

    def _say(self, kind: _Kind, said: str) -> None:
        """Tells of text, but for white space at its end, which may be the frame of what comes. At the beginning of an
        answer's text it is one, if thoughts or calls were there before."""
        said = self._source.decoded(said)
        self._space.append(said)
        if not said.strip():
            return
        whole = "".join(self._space)
        kept = whole.rstrip()
        self._space = [whole[len(kept) :]]
        if not self._said[kind] and (kind == "reasoning" or self._said["reasoning"] or self._reply.calls):
            kept = kept.lstrip()
        self._tell(kind, kept)

    def _tell(self, kind: _Kind, text: str) -> None:
        if not text:
            return
        self._said[kind].append(text)
        self._deltas.append(Delta(kind, text))

    # Calls.

    def _calls(self, *, drifted: bool) -> Reading:
        """Calls, from their first mark on. False where what begins here is none; then nothing was read."""
        source, patterns = self._source, self._patterns
        opening, following, end = patterns.first_call, patterns.next_call, patterns.section_end
        if drifted:
            opening, following, end = patterns.drifted_call, patterns.next_drifted_call, NEVER
        some = False
        while (found := (yield from source.match(opening))) is not None:
            source.record()
            source.read_past(found)
            if not (yield from self._call(found)):
                if self._kept_as_text():
                    if self._retries == 0:
                        self._say("text", source.recall())
                        return True
                    self._retries -= 1
                    source.restore()
                    break
                source.recall()
                return True
            some, opening = True, following
            if (yield from source.accept(end)) is not None:
                break
        else:
            if some and (self._format.is_object or self._format.section_begin.endswith("[")):
                for ending in patterns.drift_ends if drifted else (_CLOSE_LIST,):
                    yield from source.accept(ending)
        return some

    def _call(self, opened: Any) -> Reading:
        """One call, behind what opens it. False where it is none, or not all of it came."""
        groups = opened.groupdict()
        index = len(self._reply.calls)
        if self._format.is_object:
            call = yield from self._object_call(index)
        else:
            name = self._known(groups["name"])
            identity = self._identity(groups, name)
            self._begin(index, name, identity)
            call = self._made(name, (yield from self._arguments(name, index)), identity)
        if call is None:
            return False
        self._open, self._name = None, None
        self._deltas += self._unsure
        self._unsure = []
        self._source.recall()
        self._space = []
        self._reply.calls.append(call)
        if self._cut_off:
            self._source.read(len(self._source.rest))  # of what ends it
        while (yield from self._source.accept(self._patterns.call_ends)) is not None:
            pass
        return True

    def _kept_as_text(self) -> bool:
        """What becomes of a call that was not complete: it is text, unless the answer was cut off in it, or it was told
        of as a call already."""
        name, self._name = self._name, None
        if self._cut_off and self._open is None and name is not None:
            self._begin(len(self._reply.calls), name, None)
        begun, self._open = self._open, None
        unsure, self._unsure = self._unsure, []
        if self._cut_off:
            self._source.read(len(self._source.rest))
        elif not (self._constrained and begun is not None):
            return True
        if begun is not None:
            begun.arguments = "".join(self._pieces)
        self._reply.partial = begun
        self._deltas += unsure
        return False

    def _arguments(self, name: str, index: int) -> Reading:
        """The arguments as JSON text, told of while they are read. None where they are none."""
        style, source, patterns = self._format.arguments, self._source, self._patterns
        tell = self._teller(index)
        if isinstance(style, Json):
            return (yield from decode_json(source, tell))
        schema = self._tools[name].parameters if name in self._tools else True
        assert patterns.members is not None
        if style.opening:
            return (yield from read_relaxed(source, tell, patterns.members, schema))
        if not style.before:
            return (yield from read_pythonic(source, tell, patterns.call_end, schema))
        loose = not self._constrained
        return (yield from read_members(source, tell, patterns.members, schema, patterns.call_end, loose=loose))

    def _object_call(self, index: int) -> Reading:
        """A call that is a JSON object: its members in any order, and others beside them."""
        source = self._source
        keys = self._format.call_keys
        assert keys is not None
        name = identity = early = said = None
        depth = 0
        if (yield from source.accept(_OPEN)) is None:
            return None
        while (found := (yield from source.accept(_KEY))) is not None:
            key = found["bare"] or _unquoted(found["value"])
            if keys == ("", "") and depth == 0:
                name = self._known(key)
                self._begin(index, name, None)
                said = yield from decode_json(source, self._teller(index))
                if said is None:
                    return None
            elif key == "function" and (yield from source.accept(_OPEN)) is not None:
                depth += 1
                continue
            elif key in _ARGUMENTS and name is not None and said is None:
                self._begin(index, name, identity)
                if (said := (yield from self._object_arguments(self._teller(index)))) is None:
                    return None
            else:
                value = yield from decode_json(source, None, any_value=True)
                if value is None:
                    return None
                if key in _NAMES and name is None:
                    said_name = _text(value)
                    name = self._name = None if said_name is None else self._known(said_name)
                elif key in _IDS:
                    identity = _text(value)
                elif key in _ARGUMENTS:
                    early = value
            yield from source.accept(_COMMA)
        for _ in range(depth + 1):
            if (yield from source.accept(_CLOSE)) is None and said is None:
                return None
        if name is not None and said is None and early is not None:
            made = as_json(early if early.startswith("{") else _text(early) or "")
            said = made and made[0]
            if said is not None:
                self._begin(index, name, identity)
                self._teller(index)(said)
        return None if name is None else self._made(name, said, identity)

    def _known(self, name: str) -> str:
        """The tool that a call means whose name stands with white space, a namespace or the number of a call."""
        if name in self._tools:
            return name
        bare = name.strip()
        local = _NAMESPACE.sub("", bare, 1)
        numbered = any(index in self._format.between for index in (INDEX0, INDEX1))
        meant = [bare, local, *(_NUMBER.sub("", one) for one in (bare, local) if numbered)]
        return next((one for one in meant if one in self._tools), name)

    def _object_arguments(self, tell: Tell) -> Reading:
        """The arguments in a call that is an object: an object, or the text of one in a string."""
        if (yield from self._source.match(_QUOTE)) is None:
            return (yield from decode_json(self._source, tell))
        value = yield from decode_json(self._source, None, any_value=True)
        made = as_json(_text(value) or "")
        if made is None:
            return None
        tell(made[0])
        return made[0]

    def _begin(self, index: int, name: str, identity: str | None) -> None:
        self._open = PartialCall(name)
        self._pieces = []
        self._told_of_call.append(Delta("call", name, index, identity))

    @property
    def _told_of_call(self) -> list[Delta]:
        """Where deltas of a call go that is not complete."""
        return self._deltas if self._constrained else self._unsure

    def _teller(self, index: int) -> Tell:
        def tell(piece: str) -> None:
            self._pieces.append(piece)
            self._told_of_call.append(Delta("arguments", piece, index))

        return tell

    @staticmethod
    def _made(name: str, said: str | None, identity: str | None) -> Call | None:
        arguments = strict_json(said)
        return Call(name, arguments, identity) if isinstance(arguments, dict) else None

    def _identity(self, groups: Mapping[str, str | None], name: str) -> str | None:
        """The id that the model wrote, in families that write one."""
        identity = self._format.call_id.replace(NAME, name)
        for placeholder, group in GROUPS.items():
            if placeholder in identity:
                if groups.get(group) is None:
                    return None
                identity = identity.replace(placeholder, str(groups[group]))
        return identity or None


def _characters(text: str) -> str:
    """The text without halves of surrogate pairs, which stand for marks."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


#: Calls that turn out to be none and are looked through for others once more. Each costs what it is long.
_MOST_RETRIES = 8
_NAMES = frozenset(("name", "tool_name"))
_ARGUMENTS = frozenset(("arguments", "parameters", "args"))
_IDS = frozenset(("id", "tool_call_id", "call_id"))
_NAMESPACE = compiled(r"(?:functions?[._:]?|[._:])")
_NUMBER = compiled(r"[._:\-]?[0-9]{1,4}$")
_OPEN, _CLOSE = compiled(r"\s*\{"), compiled(r"\s*\}")
_KEY = compiled(rf"(?:{QUOTED}|\s*(?P<bare>[A-Za-z_]\w{{0,63}}))\s*:\s*", regex.DOTALL)
_CLOSE_LIST = compiled(r"\s*\]")
_COMMA = compiled(r"\s*,")
_QUOTE = compiled(r'\s*"')


def _unquoted(quoted: str) -> str:
    return str(strict_json(bare_value(quoted)))


def _text(written: str | None) -> str | None:
    """The text that a JSON string or number stands for."""
    value = strict_json(written)
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None
