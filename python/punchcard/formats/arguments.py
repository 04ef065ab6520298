"""Reads the arguments of a call, in whatever style they are written, as JSON text that is told of as it comes.

Each reader is a coroutine over a `Source`. It returns the JSON text of an object, or None where there is none: then the
text is malformed, or ended too early.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import regex

from punchcard.exact import read_json, write_json
from punchcard.formats.literals import MAX_DEPTH, Literal
from punchcard.formats.source import Source, Wait, compiled
from punchcard.formats.values import bare_value, read_value
from punchcard.tags.parameters import pointed, schema_kinds
from punchcard.tags.styles import CDATA, Style

Tell: TypeAlias = Callable[[str], None]
Reading: TypeAlias = Generator[Wait, None, str | None]

_VALUE = compiled(r"\s*(?=[{\[\"'\-\w])")
_OPENED = compiled(r"\s*(?=\{)")
_LINE_BREAK = compiled(r"\n")
NEVER = compiled("(?!)")


def decode_json(source: Source, tell: Tell | None, *, any_value: bool = False) -> Reading:
    """A JSON object, or with ``any_value`` any JSON value, also in Python's spelling."""
    if (yield from source.accept(_VALUE if any_value else _OPENED)) is None:
        return None
    literal, pieces = Literal(), []
    while True:
        last = source.closed
        written, count = literal.feed(source.rest, last=last)
        source.read(count)
        written = source.decoded(written)
        pieces.append(written)
        if tell is not None and written:
            tell(written)
        if literal.ended:
            text = "".join(pieces)
            return text if decoded_json(text) is not _NOTHING else None
        if last or literal.broken:
            return None
        yield Wait()


_ANY_KEY = r"(?P<key>[^\s/][^\n]{0,255}?)"
#: Two tags, one behind the other.
_TAGS = regex.compile(r"(<[^<>]*>)\s*(<[^<>]*>)")


class MemberPatterns:
    """What the members of a style look like.

    ``loose`` makes a pattern of a text of the layout. ``end``: what ends the call, and occurs in no value.
    """

    def __init__(self, style: Style, loose: Callable[..., str], end: str) -> None:
        self.style = style
        head, typed, rest = "".join(part.strip() for part in style.after).partition("{type}")
        kind = r"(?P<type>[A-Za-z]*)" + loose(rest, tight=True) if typed else ""
        between = r"\s*".join(loose(part, tight=True) for part in ([head] if typed else style.after))
        # One line break in front of a value may be its frame.
        self.line_break = _LINE_BREAK if style.after[-1].endswith("\n") or style.value_breaks else NEVER
        self._between = between + kind
        self._before = loose(style.before, tight=True)
        self.head = compiled(rf"\s*{self._head(_ANY_KEY)}")
        # A reader that is not sure of the frame takes one of two tags behind a key for both.
        tags = _TAGS.fullmatch("".join(part.strip() for part in style.after))
        key = rf"\s*{_ANY_KEY}\s*"
        self.short_head = compiled(rf"\s*{self._head(key)}")
        if typed and head.startswith('"') and rest.startswith('"'):  # or the type is missing
            untyped = '"' + loose(rest[1:], tight=True)
            self.short_head = compiled(rf"\s*{self._head(key, f'(?:{self._between}|{untyped})')}")
        if tags:
            first, second = (loose(tag, tight=True) for tag in tags.groups())
            other = rf"[^\s<{second[:1]}]|<[^{regex.escape(tags[2][1])}]"  # what the second one does not begin with
            space = r"\n?" if "\n" in "".join(style.after) else ""
            short = rf"(?:{first}\s*{second}|{first}{space}(?=\s*(?:{other}))|{second})"
            self.short_head = compiled(rf"\s*{self._head(key, short)}")
        self.delimiter = compiled(r"\s*" + loose(style.delimiter, tight=True)) if style.delimiter else None
        self.ending_delimiter = compiled(loose(style.delimiter, tight=True)) if style.delimiter else None
        items = style.inner.items if style.inner is not None else None
        self.item = compiled(r"\s*" + loose(items.before, tight=True)) if items and items.before else None
        self.item_end = compiled(loose(items.after, tight=True)) if items and items.after else None
        self._tail = style.close
        self._tails = lru_cache(maxsize=64)(lambda key: compiled(self._breaks + loose(self._tail_of(key), tight=True)))
        self._end = loose(end, tight=True) if end.strip() else ""

    def tail(self, key: str) -> Any:
        """What ends the value of this key."""
        return self._tails(key if "{key}" in self._tail else "")

    def ends(self, tail: Any, keys: Iterable[str]) -> Any:
        """What a value ends at: its tail; where that is missing, a member with one of these keys, or the call's end."""
        known = "|".join(regex.escape(self.style.spell_key(key)) for key in keys)
        heads = [r"\n?" + self._head(f"(?:{known})")] if known and self.style.before else []
        ends = [r"\n?" + self._end] if self._end else []
        return compiled("|".join([f"(?:{tail.pattern})", *heads, *ends]))

    def _tail_of(self, key: str) -> str:
        return self._tail.replace("{key}", key)

    @property
    def _breaks(self) -> str:
        return r"\n?" if self._tail.startswith("\n") or self.style.value_breaks else ""

    def _head(self, key: str, between: str | None = None) -> str:
        return self._before + key + (self._between if between is None else between)


def read_members(
    source: Source, tell: Tell, patterns: MemberPatterns, schema: Any, ends: Sequence[Any], *, loose: bool
) -> Reading:
    """Members one after the other: ``before`` KEY ``after`` VALUE ``close``.

    ``loose``: tags may be missing. Where all is written under a grammar, what looks so is part of a text.
    """
    told: list[str] = []
    speak = _speaker(told, tell)
    speak("{")
    keys = _declared(schema) if loose else None
    head_pattern = patterns.short_head if loose else patterns.head
    while (head := (yield from source.accept(head_pattern))) is not None:
        key = source.decoded(head["key"])
        key = key.replace("&quot;", '"').replace("&amp;", "&") if patterns.style.escape is not str else key
        speak(("" if len(told) == 1 else ", ") + _json(key) + ": ")
        said_type = head.groupdict().get("type")
        member = _Member(_member(schema, key), schema, head["key"], said_type, keys)
        if (yield from _member_value(source, speak, patterns, member, 0)) is None:
            return None
    if not (yield from _is_at(source, ends)) and (not source.closed or source.cut_off):
        return None
    speak("}")
    return "".join(told)


class _Member(NamedTuple):
    """A member whose value comes: its schema and the document that this stands in, its key and type as they are
    written, and the keys whose members may come where its end is missing (`None`: it is not)."""

    schema: Any
    root: Any
    key: str
    said_type: str | None = None
    keys: Sequence[str] | None = None

    def is_string(self, style: Style) -> bool | None:
        """Whether the value is a string; None where it may be one."""
        if self.said_type is not None and style.types:
            return self.said_type == style.types["string"]
        kinds = schema_kinds(self.schema, self.root)
        return True if kinds == {"string"} else None if "string" in kinds else False


def _member_value(source: Source, speak: Tell, patterns: MemberPatterns, member: _Member, depth: int) -> Reading:
    """One value up to its ``close``, as JSON text, which is spoken."""
    style = patterns.style
    tail = patterns.tail(member.key)
    end = tail if member.keys is None else patterns.ends(tail, member.keys)
    yield from source.accept(patterns.line_break)
    if style.inner is style and depth < MAX_DEPTH:
        nested = yield from _nested(source, patterns, member.schema, member.root, depth)
        if nested is not None:
            if (yield from source.accept(_spaced(tail))) is None:
                return None
            speak(nested)
            return nested
    is_string = member.is_string(style)
    if is_string and not style.cdata:
        return (yield from _string_up_to(source, speak, end, tail))
    quotes = "\"'" if "python" in (style.strings, style.inner.strings if style.inner else "") else '"'
    written = yield from _up_to(source, end, quotes if is_string is False else "", tail)
    if written is None:
        return None
    stripped = written.strip()
    if style.cdata and is_string is not False and stripped.startswith(CDATA[0]) and stripped.endswith(CDATA[1]):
        written, is_string = stripped[len(CDATA[0]) : -len(CDATA[1])], True
    speak(value := read_value(style, written, member.schema, member.root, is_string=is_string))
    return value


def _string_up_to(source: Source, speak: Tell, end: Any, tail: Any) -> Reading:
    """A string up to what matches ``end``, told of as it comes. ``tail``: what is read of that."""
    speak('"')
    while True:
        found, settled = source.search(end)
        speak(_json(source.decoded(source.read(settled)))[1:-1])
        if found is not None:
            yield from source.accept(tail)
            speak('"')
            return ""
        if source.closed:
            return None
        yield Wait()


def _nested(source: Source, patterns: MemberPatterns, schema: Any, root: Any, depth: int) -> Reading:
    """An object or an array as elements inside an element; None where there is neither."""
    kinds = schema_kinds(schema, root)
    if "array" in kinds and patterns.item is not None:
        items = []
        assert patterns.item_end is not None
        item_schema = _items(schema, root)
        while (yield from source.accept(patterns.item)) is not None:
            item: list[str] = []
            inner = yield from _nested(source, patterns, item_schema, root, depth + 1)
            if inner is None:
                found = yield from _up_to(source, patterns.item_end)
                if found is None:
                    return None
                item.append(read_value(patterns.style, found, item_schema, root, is_string=None))
            else:
                item.append(inner)
                if (yield from source.accept(_spaced(patterns.item_end))) is None:
                    return None
            items += item
        if items or kinds == {"array"}:
            return f"[{', '.join(items)}]"
    if "object" not in kinds:
        return None
    members = []
    while (head := (yield from source.accept(patterns.head))) is not None:
        told: list[str] = []
        key = source.decoded(head["key"])
        member = _Member(_member(_resolved(schema, root), key), root, head["key"])
        if (yield from _member_value(source, told.append, patterns, member, depth + 1)) is None:
            return None
        members.append(f"{_json(key)}: {''.join(told)}")
    return "{" + ", ".join(members) + "}" if members or kinds == {"object"} else None


def read_pythonic(source: Source, tell: Tell, ends: Sequence[Any], schema: Any) -> Reading:
    """Keyword arguments of a Python call, up to its closing bracket."""
    told: list[str] = []
    speak = _speaker(told, tell)
    speak("{")
    while (head := (yield from source.accept(_KEYWORD))) is not None:
        key = head["key"] or head["quoted"]
        speak(("" if len(told) == 1 else ", ") + _json(key) + ": ")
        written = yield from _python_value(source)
        if written is None:
            return None
        speak(_unmarked(source.decoded(written), _member(schema, key), schema))
        yield from source.accept(_COMMA)
    if not (yield from _is_at(source, ends)):
        return None
    speak("}")
    return "".join(told)


# More than Python takes for a name: schemas have keys like "user-id".
_NAME = r"(?!\s)[^=,()\[\]{}\"'\n\ud800-\udfff]{1,256}?"
_QUOTED_NAME = r"(?P<quote>[\"'])(?P<quoted>[^\"'\\\n\ud800-\udfff]{1,256})(?P=quote)"
_KEYWORD = compiled(rf"\s*(?:(?P<key>{_NAME})\s*(?:=|:(?=\s*[\"']))|{_QUOTED_NAME}\s*[=:])\s*")
#: What stands behind a comma that ends a value.
_NEXT_KEYWORD = compiled(rf"\s*(?:[)\]}}]|{_NAME}\s*=)")
_COMMA = compiled(r"\s*,")
_FOLLOWS = compiled(r"\s*(\S)")
#: What a value begins with that says where it ends.
_FRAMES = ("'", '"', "(", "[", "{", "")
_PYTHON_STRUCTURE = compiled(r"[\"'{}\[\](),\\]")


def _python_value(source: Source) -> Reading:
    """The source of a Python value, up to a comma or a bracket that does not belong to it."""
    pieces: list[str] = []
    quote, escaped, depth = "", False, 0
    while True:
        rest = source.rest
        at = 0
        while (found := _PYTHON_STRUCTURE.search(rest, at)) is not None or (escaped and at < len(rest)):
            if escaped:
                escaped = False
                at += 1
                continue
            assert found is not None
            character, at = found[0], found.end()
            if quote and character == quote:
                # A quote that nothing follows which could follow a string is part of the string.
                follows = _FOLLOWS.match(rest, at)
                if follows is None and not source.closed:
                    pieces.append(source.read(at - 1))
                    break
                quote = "" if follows is None or follows[1] in ",)]}:" else quote
            elif quote:
                escaped = character == "\\"
            elif character in "\"'":
                quote = character
            elif character in "{[(":
                depth += 1
            elif character in "}])" and depth:
                depth -= 1
            elif character in "}])," and depth == 0:
                if character == "," and ("".join(pieces) + rest[: at - 1]).lstrip()[:1] not in _FRAMES:
                    # A value without quotes may have commas.
                    follows = _NEXT_KEYWORD.match(rest, at, partial=not source.closed)
                    if follows is None:
                        continue
                    if follows.partial:
                        pieces.append(source.read(at - 1))
                        break
                pieces.append(source.read(at - 1))
                return "".join(pieces)
        else:
            pieces.append(source.read(len(rest)))
        if source.closed or depth > MAX_DEPTH:
            return None
        yield Wait()


def read_relaxed(source: Source, tell: Tell, patterns: MemberPatterns, schema: Any) -> Reading:
    """An object without quotes: ``{key:value,...}``, with strings between marks."""
    told: list[str] = []
    speak = _speaker(told, tell)
    written = yield from _relaxed_object(source, patterns, speak, schema, schema, 0)
    return None if written is None else "".join(told)


_OPEN, _CLOSE = compiled(r"\s*\{"), compiled(r"\s*\}")
_OPEN_LIST, _CLOSE_LIST = compiled(r"\s*\["), compiled(r"\s*\]")
_RELAXED_KEY = compiled(r"\s*(?P<key>[^\s:,{}\[\]\ud800-\udfff]{1,256}?)\s*:\s*")
# Strings and keys in quotes, as in JSON and Python, which the family does not write.
QUOTED = r"""\s*(?P<value>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')"""
_QUOTED = compiled(QUOTED + r"(?=\s*[,}\]])", regex.DOTALL)
_QUOTED_KEY = compiled(QUOTED + r"\s*:\s*", regex.DOTALL)
_COLON = compiled(r"\s*:\s*")
_BARE_ITEM = compiled(r"(?P<value>[^,{}\[\]\ud800-\udfff]+)(?=[,}\]])")
_NO_KEY = r"(?!\s*(?:[^\s:,{}\[\]\ud800-\udfff]{1,256}\s*:|[\"'\ud800-\udfff<}]))"
#: A value without quotes in an object may have commas.
_BARE = compiled(rf"(?P<value>[^,{{}}\[\]\ud800-\udfff]*(?:,{_NO_KEY}[^,{{}}\[\]\ud800-\udfff]*)*+)(?=[,}}\]])")


def _relaxed_object(
    source: Source, patterns: MemberPatterns, speak: Tell, schema: Any, root: Any, depth: int
) -> Reading:
    if (yield from source.accept(_OPEN)) is None or depth > MAX_DEPTH:
        return None
    speak("{")
    first = True
    assert patterns.delimiter is not None and patterns.ending_delimiter is not None
    while (yield from source.accept(_CLOSE)) is None:
        if (yield from source.accept(patterns.delimiter)) is not None:
            key = yield from _up_to(source, patterns.ending_delimiter)
            if key is None or (yield from source.accept(_COLON)) is None:
                return None
        elif (quoted := (yield from source.accept(_QUOTED_KEY))) is not None:
            key = strict_json(bare_value(source.decoded(quoted["value"])))
        elif (head := (yield from source.accept(_RELAXED_KEY))) is not None:
            key = head["key"]
        else:
            return None
        speak(("" if first else ", ") + _json(key) + ": ")
        first = False
        member = _member(_resolved(schema, root), key)
        if (yield from _relaxed_value(source, patterns, speak, member, root, depth)) is None:
            return None
        yield from source.accept(_COMMA)
    speak("}")
    return ""


def _relaxed_value(
    source: Source, patterns: MemberPatterns, speak: Tell, schema: Any, root: Any, depth: int, *, bare: Any = _BARE
) -> Reading:
    assert patterns.delimiter is not None and patterns.ending_delimiter is not None
    if (yield from source.accept(patterns.delimiter)) is not None:
        return (yield from _string_up_to(source, speak, patterns.ending_delimiter, patterns.ending_delimiter))
    if (quoted := (yield from source.accept(_QUOTED))) is not None:
        speak(bare_value(source.decoded(quoted["value"])))
        return ""
    if (yield from source.match(_OPEN)) is not None:
        return (yield from _relaxed_object(source, patterns, speak, schema, root, depth + 1))
    if (yield from source.accept(_OPEN_LIST)) is not None:
        speak("[")
        first = True
        items = _items(schema, root)
        while (yield from source.accept(_CLOSE_LIST)) is None:
            if depth > MAX_DEPTH:
                return None
            speak("" if first else ", ")
            first = False
            value = yield from _relaxed_value(source, patterns, speak, items, root, depth + 1, bare=_BARE_ITEM)
            if value is None:
                return None
            yield from source.accept(_COMMA)
        speak("]")
        return ""
    if (found := (yield from source.accept(bare))) is None:
        return None
    speak(_unmarked(found["value"], schema, root))
    return ""


def _unmarked(written: str, schema: Any, root: Any) -> str:
    """The JSON text of a value that nothing marks as a text, under ``schema``, a part of ``root``."""
    written = written.strip()
    kinds = schema_kinds(schema, root)
    value = bare_value(written, kinds)
    # A text that reads like a number lacks its quotes.
    return _json(written) if kinds == {"string"} and value[0] not in '"[{n' else value


def _spaced(pattern: Any) -> Any:
    """The pattern with any white space in front."""
    return compiled(rf"\s*(?:{pattern.pattern})")


def _is_at(source: Source, patterns: Sequence[Any]) -> Generator[Wait, None, bool]:
    """Whether what comes next is any of these."""
    for pattern in patterns:
        if (yield from source.match(pattern)) is not None:
            return True
    return False


def _up_to(source: Source, end: Any, quotes: str = "", tail: Any = None) -> Reading:
    """The text before what ``end`` matches, which is read too, or only what of it ``tail`` matches. In an array or
    object, what stands within one of ``quotes`` is no end."""
    pieces: list[str] = []
    strings = _Strings(quotes)
    while True:
        found, settled = source.search(end)
        pieces.append(source.decoded(source.read(settled)))
        strings.read(pieces[-1])
        if found is not None and strings.inside:
            pieces.append(source.decoded(source.read(1)))
            strings.read(pieces[-1])
            continue
        if found is not None:
            yield from source.accept(tail or end)
            return "".join(pieces)
        if source.closed:
            return None
        yield Wait()


class _Strings:
    """Tells whether an array or object that comes in pieces has come to the inside of a string."""

    def __init__(self, quotes: str) -> None:
        self.inside = ""  # the quote that began the string
        self._quotes = quotes
        self._begun = False
        self._escaped = 0  # characters that are, at the beginning of the next piece

    def read(self, piece: str) -> None:
        if not self._begun:
            piece = piece.lstrip()
            self._begun = bool(piece)
            self._quotes = self._quotes if piece[:1] in ("", "{", "[") else ""
        if not self._quotes:
            return
        at = self._escaped
        while (found := _QUOTE_OR_SLASH.search(piece, at)) is not None:
            at = found.end()
            if found[0] == "\\":
                at += 1
            elif found[0] == self.inside:
                self.inside = ""
            elif not self.inside and found[0] in self._quotes:
                self.inside = found[0]
        self._escaped = max(at - len(piece), 0)


_QUOTE_OR_SLASH = compiled(r"[\"'\\]")


def _speaker(told: list[str], tell: Tell) -> Tell:
    def speak(piece: str) -> None:
        if piece:
            told.append(piece)
            tell(piece)

    return speak


def _declared(schema: Any) -> list[str]:
    """The names that an object's schema declares."""
    schema = _resolved(schema, schema)
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return list(properties) if isinstance(properties, Mapping) else []


def _member(schema: Any, key: str) -> Any:
    """The schema of a member of an object."""
    schema = _resolved(schema, schema)
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and key in properties:
        return properties[key]
    others = schema.get("additionalProperties", True)
    return others if isinstance(others, Mapping) else True


def _items(schema: Any, root: Any) -> Any:
    schema = _resolved(schema, root)
    return schema.get("items", True) if isinstance(schema, Mapping) else True


def _resolved(schema: Any, root: Any) -> Any:
    """A schema behind its references and choices, as far as they matter for types."""
    for _ in range(MAX_DEPTH):
        if not isinstance(schema, Mapping):
            return schema
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            found = pointed(root, reference[1:])
            schema = True if found is None else found
            continue
        for keyword in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(keyword)
            if isinstance(branches, list) and "properties" not in schema and "items" not in schema:
                fitting = [b for b in branches if schema_kinds(b, root) & {"object", "array"}]
                if fitting:
                    schema = fitting[0]
                    break
        else:
            return schema
    return True


_NOTHING = object()


def decoded_json(text: str | None) -> Any:
    """The value of a JSON text; `_NOTHING` where it is none."""
    try:
        return _NOTHING if text is None else read_json(text)
    except (ValueError, RecursionError):
        return _NOTHING


def strict_json(text: str | None) -> Any:
    """The value of a JSON text; None where it is none, or null."""
    value = decoded_json(text)
    return None if value is _NOTHING else value


_json = write_json
