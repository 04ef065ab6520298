"""Reads the arguments of a call, in whatever style they are written, as JSON text that is told of as it comes.

Each reader is a coroutine over a `Source`. It returns the JSON text of an object, or None where there is none: then the
text is malformed, or ended too early.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

from punchcard.formats.source import Source, Wait, compiled
from punchcard.tags.parameters import schema_kinds
from punchcard.tags.styles import CDATA, Style, json_type

Tell: TypeAlias = Callable[[str], None]
Reading: TypeAlias = Generator[Wait, None, str | None]

#: Values within each other; deeper ones are no arguments that anybody asked for.
MAX_DEPTH = 200

_STRUCTURE = compiled(r'["{}\[\]]')
_SCALAR = compiled(r"\s*(?P<value>[-+.\w]+)(?=[\s,}\]])")
_VALUE = compiled(r'\s*(?=[{\["\-\w])')
_OPENED = compiled(r"\s*(?=\{)")
_LINE_BREAK = compiled(r"\n")
NEVER = compiled("(?!)")
_WORDS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}


def decode_json(source: Source, tell: Tell | None, *, any_value: bool = False) -> Reading:
    """A JSON object, or with ``any_value`` any JSON value."""
    if (yield from source.accept(_VALUE if any_value else _OPENED)) is None:
        return None
    if any_value and source.rest[0] not in '{["':
        found = yield from source.accept(_SCALAR)
        return None if found is None else _json(_WORDS[found["value"]]) if found["value"] in _WORDS else found["value"]
    scanner, pieces = _Scanner(), []
    while True:
        piece = source.rest
        end = scanner.scan(piece)
        piece = source.decoded(source.read(len(piece) if end is None else end))
        pieces.append(piece)
        if tell is not None:
            tell(piece)
        if end is not None:
            text = "".join(pieces)
            return text if strict_json(text) is not None else None
        if source.closed or scanner.depth > MAX_DEPTH:
            return None
        yield Wait()


class _Scanner:
    """Finds the end of a JSON object, array or string that comes in pieces."""

    def __init__(self) -> None:
        self.depth = 0
        self._in_string = False
        self._escaped = False

    def scan(self, piece: str) -> int | None:
        """Where the value ends in this piece; None where it goes on."""
        at = 0
        while at < len(piece):
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                    at += 1
                    continue
                quote, slash = piece.find('"', at), piece.find("\\", at)
                if quote < 0 and slash < 0:
                    return None
                if quote < 0 or 0 <= slash < quote:
                    self._escaped = True
                    at = slash + 1
                    continue
                self._in_string = False
                at = quote + 1
                if self.depth == 0:
                    return at
                continue
            found = _STRUCTURE.search(piece, at)
            if found is None:
                return None
            at = int(found.end())
            if found[0] == '"':
                self._in_string = True
            else:
                self.depth += 1 if found[0] in "{[" else -1
                if self.depth <= 0:
                    return at
        return None


class MemberPatterns:
    """What the members of a style look like. ``loose`` makes a pattern of a text of the layout."""

    def __init__(self, style: Style, loose: Callable[..., str]) -> None:
        self.style = style
        self._loose = loose
        head, typed, rest = "".join(part.strip() for part in style.after).partition("{type}")
        kind = r"(?P<type>[A-Za-z]*)" + loose(rest, tight=True) if typed else ""
        between = r"\s*".join(loose(part, tight=True) for part in ([head] if typed else style.after))
        # One line break in front of a value may be its frame.
        self.line_break = _LINE_BREAK if style.after[-1].endswith("\n") or style.value_breaks else NEVER
        key = r"(?P<key>[^\s/][^\n]{0,255}?)"
        self.head = compiled(rf"\s*{loose(style.before, tight=True)}{key}{between}{kind}")
        self.delimiter = compiled(r"\s*" + loose(style.delimiter, tight=True)) if style.delimiter else None
        self.ending_delimiter = compiled(loose(style.delimiter, tight=True)) if style.delimiter else None
        items = style.inner.items if style.inner is not None else None
        self.item = compiled(r"\s*" + loose(items.before, tight=True)) if items and items.before else None
        self.item_end = compiled(loose(items.after, tight=True)) if items and items.after else None
        self._tail = style.close

    def tail(self, key: str) -> Any:
        """What ends the value of this key."""
        close = self._tail.replace("{key}", key)
        breaks = r"\n?" if close.startswith("\n") or self.style.value_breaks else ""
        return compiled(breaks + self._loose(close, tight=True))


def read_members(source: Source, tell: Tell, patterns: MemberPatterns, schema: Any, ends: Sequence[Any]) -> Reading:
    """Members one after the other: ``before`` KEY ``after`` VALUE ``close``."""
    told: list[str] = []
    speak = _speaker(told, tell)
    speak("{")
    while (head := (yield from source.accept(patterns.head))) is not None:
        key = source.decoded(head["key"])
        key = key.replace("&quot;", '"').replace("&amp;", "&") if patterns.style.escape is not str else key
        speak(("" if len(told) == 1 else ", ") + _json(key) + ": ")
        member = _member(schema, key)
        said_type = head.groupdict().get("type")
        value = yield from _member_value(source, speak, patterns, member, schema, head["key"], said_type, 0)
        if value is None:
            return None
    if not (yield from _is_at(source, ends)) and not source.closed:
        return None
    speak("}")
    return "".join(told)


def _member_value(
    source: Source,
    speak: Tell,
    patterns: MemberPatterns,
    schema: Any,
    root: Any,
    key: str,
    said_type: str | None,
    depth: int,
) -> Reading:
    """One value up to its ``close``, as JSON text, which is spoken."""
    style = patterns.style
    tail = patterns.tail(key)
    yield from source.accept(patterns.line_break)
    if style.inner is style and depth < MAX_DEPTH:
        nested = yield from _nested(source, patterns, schema, root, depth)
        if nested is not None:
            if (yield from source.accept(_spaced(tail))) is None:
                return None
            speak(nested)
            return nested
    kinds = schema_kinds(schema, root)
    if said_type is not None and style.types:
        is_string: bool | None = said_type == style.types["string"]
    else:
        is_string = True if kinds == {"string"} else None if "string" in kinds else False
    if is_string:
        speak('"')
        pieces = []
        plain = not style.cdata
        while True:
            found, settled = source.search(tail)
            piece = source.decoded(source.read(settled))
            pieces.append(piece)
            if plain:
                speak(_json(piece)[1:-1])
            if found is not None:
                source.read_past(found)
                break
            if source.closed:
                return None
            yield Wait()
        if not plain:
            whole = "".join(pieces)
            stripped = whole.strip()
            if stripped.startswith(CDATA[0]) and stripped.endswith(CDATA[1]):
                whole = stripped[len(CDATA[0]) : -len(CDATA[1])]
            speak(_json(whole)[1:-1])
        speak('"')
        return ""
    quotes = "\"'" if "python" in (style.strings, style.inner.strings if style.inner else "") else '"'
    written = yield from _up_to(source, tail, quotes if is_string is False else "")
    if written is None:
        return None
    value = _json(convert(written, kinds, is_string=is_string))
    speak(value)
    return value


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
                item.append(_json(convert(found, schema_kinds(item_schema, root), is_string=None)))
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
        member = _member(_resolved(schema, root), key)
        value = yield from _member_value(source, told.append, patterns, member, root, head["key"], None, depth + 1)
        if value is None:
            return None
        members.append(f"{_json(key)}: {''.join(told)}")
    return "{" + ", ".join(members) + "}" if members or kinds == {"object"} else None


def read_pythonic(source: Source, tell: Tell, ends: Sequence[Any]) -> Reading:
    """Keyword arguments of a Python call, up to its closing bracket."""
    told: list[str] = []
    speak = _speaker(told, tell)
    speak("{")
    while (head := (yield from source.accept(_KEYWORD))) is not None:
        speak(("" if len(told) == 1 else ", ") + _json(head["key"]) + ": ")
        written = yield from _python_value(source)
        if written is None:
            return None
        speak(_json(_python(source.decoded(written).strip())))
        yield from source.accept(_COMMA)
    if not (yield from _is_at(source, ends)):
        return None
    speak("}")
    return "".join(told)


# More than Python takes for a name: schemas have keys like "user-id".
_KEYWORD = compiled(r"\s*(?P<key>(?!\s)[^=,()\[\]{}\"'\n\ud800-\udfff]{1,256}?)\s*=\s*")
_COMMA = compiled(r"\s*,")
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
            if quote:
                escaped = character == "\\"
                quote = "" if character == quote else quote
            elif character in "\"'":
                quote = character
            elif character in "{[(":
                depth += 1
            elif character in "}])" and depth:
                depth -= 1
            elif character in "}])," and depth == 0:
                pieces.append(source.read(at - 1))
                return "".join(pieces)
        pieces.append(source.read(len(rest)))
        if source.closed or depth > MAX_DEPTH:
            return None
        yield Wait()


def _python(written: str) -> Any:
    """A Python or JSON literal; what is none is a string."""
    if (value := strict_json(written)) is not None:
        return value
    try:
        return _evaluated(ast.parse(written, mode="eval").body)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return written


def _evaluated(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name) if name in _WORDS:
            return _WORDS[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_evaluated(item) for item in items]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {str(_evaluated(k)): _evaluated(v) for k, v in zip(keys, values, strict=True) if k is not None}
    raise ValueError("no literal")


def read_relaxed(source: Source, tell: Tell, patterns: MemberPatterns) -> Reading:
    """An object without quotes: ``{key:value,...}``, with strings between marks."""
    told: list[str] = []
    speak = _speaker(told, tell)
    written = yield from _relaxed_object(source, patterns, speak, 0)
    return None if written is None else "".join(told)


_OPEN, _CLOSE = compiled(r"\s*\{"), compiled(r"\s*\}")
_OPEN_LIST, _CLOSE_LIST = compiled(r"\s*\["), compiled(r"\s*\]")
_RELAXED_KEY = compiled(r"\s*(?P<key>[^\s:,{}\[\]\ud800-\udfff]{1,256}?)\s*:\s*")
_COLON = compiled(r"\s*:\s*")
_BARE = compiled(r"(?P<value>[^,{}\[\]\ud800-\udfff]*)(?=[,}\]])")


def _relaxed_object(source: Source, patterns: MemberPatterns, speak: Tell, depth: int) -> Reading:
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
        elif (head := (yield from source.accept(_RELAXED_KEY))) is not None:
            key = head["key"]
        else:
            return None
        speak(("" if first else ", ") + _json(key) + ": ")
        first = False
        if (yield from _relaxed_value(source, patterns, speak, depth)) is None:
            return None
        yield from source.accept(_COMMA)
    speak("}")
    return ""


def _relaxed_value(source: Source, patterns: MemberPatterns, speak: Tell, depth: int) -> Reading:
    assert patterns.delimiter is not None and patterns.ending_delimiter is not None
    if (yield from source.accept(patterns.delimiter)) is not None:
        speak('"')
        while True:
            found, settled = source.search(patterns.ending_delimiter)
            speak(_json(source.decoded(source.read(settled)))[1:-1])
            if found is not None:
                source.read_past(found)
                speak('"')
                return ""
            if source.closed:
                return None
            yield Wait()
    if (yield from source.match(_OPEN)) is not None:
        return (yield from _relaxed_object(source, patterns, speak, depth + 1))
    if (yield from source.accept(_OPEN_LIST)) is not None:
        speak("[")
        first = True
        while (yield from source.accept(_CLOSE_LIST)) is None:
            if depth > MAX_DEPTH:
                return None
            speak("" if first else ", ")
            first = False
            if (yield from _relaxed_value(source, patterns, speak, depth + 1)) is None:
                return None
            yield from source.accept(_COMMA)
        speak("]")
        return ""
    if (found := (yield from source.accept(_BARE))) is None:
        return None
    speak(_json(_python(found["value"].strip())))
    return ""


def convert(written: str, kinds: frozenset[str], *, is_string: bool | None) -> Any:
    """The value that stands in an element, of one of these JSON types; ``is_string``: as the element says, if it does.

    Where nothing tells a text from another value, it is the other value if it reads as one that is admitted.
    """
    if is_string:
        return written
    value = _python(written.strip())
    if is_string is None and "string" in kinds and (isinstance(value, str) or json_type(value) not in kinds):
        return written  # a text stands there as it is
    return value


def _spaced(pattern: Any) -> Any:
    """The pattern with any white space in front."""
    return compiled(rf"\s*(?:{pattern.pattern})")


def _is_at(source: Source, patterns: Sequence[Any]) -> Generator[Wait, None, bool]:
    """Whether what comes next is any of these."""
    for pattern in patterns:
        if (yield from source.match(pattern)) is not None:
            return True
    return False


def _up_to(source: Source, end: Any, quotes: str = "") -> Reading:
    """The text before what ``end`` matches, which is read too. In an array or object, what stands within one of
    ``quotes`` is no end."""
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
            source.read_past(found)
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
            schema = _pointed(root, reference[1:])
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


def _pointed(root: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        root = root.get(step, True) if isinstance(root, Mapping) else True
    return root


def strict_json(text: str | None) -> Any:
    """The value of a JSON text; None where it is none, or null. Control characters in strings are let pass."""
    if text is None:
        return None
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_number)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
