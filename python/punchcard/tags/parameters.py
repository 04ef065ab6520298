"""The grammar of a call's arguments in the style of a model family.

One member a property, in the order of the schema, the optional ones present or not. What a property may be decides how
it is spelled. Where a style does not tell the types apart and a property may be a string or something else, as in
``str | None``, a text such as ``null`` can be read both ways, as in the families' own formats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal
from urllib.parse import quote, unquote

from ..errors import PunchcardError
from ..grammar import Grammar, schema_text
from .base import Place
from .expressions import ANY_TEXT, EMPTY, Expr, both, choice, negation, optional, repeat, sequence, text
from .styles import CDATA, CDATA_SPECIAL, Items, Style, json_type, write

#: Of the line breaks that a family writes: whether they may, must or must not be there.
Newlines = Literal["optional", "required", "none"]

_TYPES = frozenset({"string", "number", "boolean", "null", "object", "array"})
_WORDS: dict[str, tuple[bool | None, ...]] = {"boolean": (True, False), "null": (None,)}
_ROOT = "urn:punchcard:parameters"
#: In place of a pointer: the schema that admits every value.
_ANYTHING = "true"
#: Keywords that a style can express of an object and of an array; annotations say nothing about values.
_OF_OBJECTS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "$defs",
    "definitions",
}
_OF_ARRAYS = {"type", "items", "minItems", "maxItems", "$defs", "definitions"}
_ANNOTATIONS = {"$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "strict"}


def parameters(
    style: Style,
    schema: bool | Mapping[str, Any],
    *,
    newlines: Newlines = "none",
    excludes: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    place: Place | None = None,
    literal: Callable[[str], Expr] = text,
) -> Expr:
    """The objects under ``schema`` in the spelling of ``style``.

    ``excludes``: texts that raw strings may not hold, besides the one that ends them. ``options``: of
    `Grammar.from_json_schema`, for what is spelled as JSON. ``literal`` makes an expression of a text of the style's
    own, in which some characters may be a token.

    Raises:
        GrammarError: the schema says something that the style cannot express.
    """
    return _Parameters(style, schema, newlines, list(excludes), dict(options or {}), place or Place(), literal).expr()


class _Parameters:
    """The grammar of one object, and the rules for what is inside it."""

    def __init__(
        self,
        style: Style,
        schema: bool | Mapping[str, Any],
        newlines: Newlines,
        excludes: list[str],
        options: dict[str, Any],
        place: Place,
        literal: Callable[[str], Expr],
    ) -> None:
        self.style, self.root, self.excludes, self.options, self.place = style, schema, excludes, options, place
        self.literal = literal
        self.line_break = {"optional": optional(text("\n")), "required": text("\n"), "none": EMPTY}[newlines]
        self.rules: dict[str, Expr] = {}
        self._kinds = _Kinds(schema).of

    def expr(self) -> Expr:
        (pointer, schema), *others = self._alternatives(self.root, "", "object")
        if others:
            raise self.place.error("The parameters are a choice of objects", "Describe one object")
        first = EMPTY
        if self.style.last_break and self.line_break not in (EMPTY, text("\n")):
            first = optional(text("\n"))
        start = sequence(first, self._object(self.style, schema, pointer))
        return {"grammar": {"start": start, "rules": self.rules}} if self.rules else start

    # Objects.

    def _object(self, style: Style, schema: Any, pointer: str) -> Expr:
        if schema is True:
            schema = {"additionalProperties": True}
        self._check(schema, _OF_OBJECTS, "of the parameters as a whole" if style is self.style else "of an object")
        properties: dict[str, Any] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        others = self._others(schema, pointer)
        declared = [(key, f"{pointer}/properties/{_step(key)}") for key in properties]
        for key in sorted(required - set(properties)):
            if others is None:
                raise self.place.error(
                    f"{key!r} is required, but not declared", "Add it to properties, or allow additionalProperties"
                )
            declared.append((key, others))
        if style.alphabetical:
            declared.sort()
        members = [(self._member(style, key, at), key in required) for key, at in declared]
        rest = None
        if others is not None:
            known = [text(style.spell_key(key)) for key, _ in declared]
            name: Expr = {"regex": {"pattern": style.names}}
            rest = self._undeclared(style, both(name, negation(choice(known))) if known else name, others)
        between = self.literal(style.between) if style.between else EMPTY
        return sequence(
            self.literal(style.opening) if style.opening else EMPTY,
            self._members(members, rest, between),
            self.literal(style.closing) if style.closing else EMPTY,
        )

    def _members(self, members: list[tuple[Expr, bool]], rest: Expr | None, between: Expr) -> Expr:
        """The members, the optional ones (False) or not, with ``between`` them, then any number of ``rest``."""
        if between == EMPTY:
            parts = [member if needed else optional(member) for member, needed in members]
            return sequence(*parts, EMPTY if rest is None else repeat(rest))
        # What may follow when something stands already, from each member on.
        tail = EMPTY if rest is None else repeat(sequence(between, rest))
        first = EMPTY if rest is None else optional(sequence(rest, tail))
        for member, needed in reversed(members):
            alone = sequence(member, self._shared(tail))
            first = alone if needed else choice([alone, first])
            again = sequence(between, member)
            tail = sequence(again if needed else optional(again), self._shared(tail))
        return first

    def _shared(self, body: Expr) -> Expr:
        """``body`` by a name, since it is used more than once."""
        if body == EMPTY:
            return body
        name = f"rest {len(self.rules)}"
        self.rules[name] = body
        return {"rule": name}

    def _others(self, schema: Mapping[str, Any], pointer: str) -> str | None:
        """The pointer to the schema of members that are not declared; None if there may be none."""
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in schema:
                if isinstance(schema[keyword], bool):
                    return _ANYTHING if schema[keyword] else None
                return f"{pointer}/{keyword}"
        if "properties" in schema or self.options.get("strict"):
            return None
        return _ANYTHING

    def _member(self, style: Style, key: str, pointer: str) -> Expr:
        """One member, whose value is described at the pointer."""
        ends = style.after[0].replace("{type}", "").strip()[:1] or style.between.strip()[:1]
        readable = re.fullmatch(r"[^\s/][^\n]{0,255}", key) is not None
        if style.keys == "plain" and style.escape is str and ((ends and ends in key) or not readable):
            raise self.place.error(
                f"The name {key!r} cannot be told from what follows it in this format", "Give it another name"
            )
        bodies = []
        for head, value in self._headed(style, self._schema_at(pointer), pointer, lambda kind: style.head(key, kind)):
            bodies.append(sequence(*_joined([self.literal(part) for part in head], self.line_break), value))
        return sequence(choice(bodies), self._close(style, style.tail(key)))

    def _undeclared(self, style: Style, name: Expr, pointer: str) -> Expr:
        """One member with any of these names."""
        mark = "\0"
        if "{key}" in style.close:
            raise self.place.error(
                "Members that are not declared cannot be written in this format",
                "Declare them, and set additionalProperties to false",
            )
        bodies = []
        for head, value in self._headed(style, self._schema_at(pointer), pointer, lambda kind: style.head(mark, kind)):
            before, _, after = head[0].partition(style.spell_key(mark))
            parts = [sequence(_literal(self.literal, before), name, _literal(self.literal, after))]
            parts += [self.literal(part) for part in head[1:]]
            bodies.append(sequence(*_joined(parts, self.line_break), value))
        return sequence(choice(bodies), self._close(style, style.close))

    def _close(self, style: Style, close: str) -> Expr:
        return sequence(_literal(self.literal, close), self.line_break if style.last_break else EMPTY)

    def _headed(
        self, style: Style, schema: Any, pointer: str, head: Callable[[str], list[str]]
    ) -> Iterator[tuple[list[str], Expr]]:
        """Each way to begin a member, and the values that begin so."""
        spellings: dict[str, tuple[list[str], list[Expr]]] = {}
        for kind, value in self._values(style, schema, pointer):
            parts = head(kind)
            spellings.setdefault("\0".join(parts), (parts, []))[1].append(value)
        if not spellings:
            raise self.place.error(f"{pointer} admits no value", "Remove the property, or mend its schema")
        for parts, values in spellings.values():
            yield parts, choice(values)

    # Values.

    def _values(self, style: Style, schema: Any, pointer: str) -> Iterator[tuple[str, Expr]]:
        """Each JSON type that a value may have, with its spelling."""
        kinds = self._kinds(schema)
        as_json = set(kinds)
        breaks = self.line_break if style.value_breaks else EMPTY
        if "string" in kinds and style.strings != "json":
            as_json.discard("string")
            leaf = self._leaf("schema_string", schema, pointer, None, [style.closer, *self.excludes])
            if style.cdata:
                plain = self._leaf("schema_string", schema, pointer, None, sorted(CDATA_SPECIAL))
                framed = self._leaf("schema_string", schema, pointer, None, [CDATA[1], style.closer, *self.excludes])
                yield "string", choice([plain, sequence(text(CDATA[0]), framed, text(CDATA[1]))])
            elif style.strings == "python":
                yield "string", self._quoted(schema, pointer)
            elif style.delimiter:
                yield "string", sequence(self.literal(style.delimiter), leaf, self.literal(style.delimiter))
            else:
                yield "string", self._raw(style, schema, leaf)
        if style.words != ("true", "false", "null"):
            for kind in sorted(as_json & {"boolean", "null"}):
                as_json.discard(kind)
                spelled = [write(style, v) for v in _WORDS[kind] if self._admits(schema, pointer, v)]
                if words := [text(word) for word in spelled if word]:
                    yield kind, sequence(breaks, choice(words), breaks)
        if style.inner is not None:
            for kind in sorted(as_json & {"array", "object"}):
                as_json.discard(kind)
                yield kind, self._structure(style.inner, schema, pointer, kind)
        # Where the style does not say the type, one leaf serves them all.
        told_apart = len({style.types.get(kind) for kind in as_json}) > 1
        for group in [{kind} for kind in sorted(as_json)] if told_apart else [as_json] if as_json else []:
            leaf = self._leaf("json_schema", schema, pointer, None if group == kinds else sorted(group))
            yield min(group), sequence(breaks, leaf, breaks)

    def _raw(self, style: Style, schema: Any, leaf: Expr) -> Expr:
        """A raw string, and the line breaks around it that are not part of it.

        One line break on each side belongs to the element where it is there. So a string without it may not begin, or
        end, with one. Where any string will do, both readings are the same texts.
        """
        if not style.value_breaks or self.line_break == EMPTY:
            return leaf
        line = text("\n")
        if self.line_break == line:
            return sequence(line, leaf, line)
        if isinstance(schema, Mapping) and set(schema) <= _ANNOTATIONS | {"type"}:
            return leaf
        early, late = negation(sequence(line, ANY_TEXT)), negation(sequence(ANY_TEXT, line))
        return choice(
            [
                both(leaf, early, late),
                sequence(line, both(leaf, late)),
                sequence(both(leaf, early), line),
                sequence(line, leaf, line),
            ]
        )

    def _quoted(self, schema: Any, pointer: str) -> Expr:
        """A string as Python writes it: plain in single quotes, anything else as JSON."""
        special = ["'", "\\", *map(chr, range(0x20)), "\x7f"]
        plain = self._leaf("schema_string", schema, pointer, None, special)
        return choice([sequence(text("'"), plain, text("'")), self._leaf("json_schema", schema, pointer, ["string"])])

    def _structure(self, style: Style, schema: Any, pointer: str, kind: str) -> Expr:
        """Arrays or objects in the style, by a rule of their own, as schemas may be recursive."""
        alternatives = []
        for at, inner in self._alternatives(schema, pointer, kind):
            name = f"{kind} {at}"
            if name not in self.rules:
                self.rules[name] = "nothing"  # it is being made
                self.rules[name] = (self._array if kind == "array" else self._object)(style, inner, at)
            alternatives.append({"rule": name})
        return choice(alternatives)

    def _array(self, style: Style, schema: Any, pointer: str) -> Expr:
        if schema is True:
            schema = {}
        self._check(schema, _OF_ARRAYS, "of an array")
        items = style.items or Items()
        at = f"{pointer}/items" if "items" in schema else _ANYTHING
        if schema.get("items") is False:
            schema = {**schema, "maxItems": 0}
        least, most = int(schema.get("minItems", 0)), schema.get("maxItems")
        most = None if most is None else int(most)
        frame = [_literal(self.literal, part) for part in (items.opening, items.between, items.closing)]
        if most == 0:
            return sequence(frame[0], frame[2])
        values = [value for _, value in self._values(style, self._schema_at(at), at)]
        item = sequence(_literal(self.literal, items.before), choice(values), _literal(self.literal, items.after))
        some = sequence(item, repeat(sequence(frame[1], item), max(least - 1, 0), None if most is None else most - 1))
        return sequence(frame[0], some if least else optional(some), frame[2])

    # Schemas.

    def _alternatives(self, schema: Any, pointer: str, kind: str, seen: frozenset[str] = frozenset()) -> list[Any]:
        """The schemas, with their pointers, whose arrays or objects those under ``schema`` are."""
        if pointer in seen:
            raise self.place.error("The references of the schema go in a circle", "Describe the object itself")
        seen |= {pointer}
        if not isinstance(schema, Mapping):
            if schema is True:
                return [(pointer, True)]
            raise self.place.error("The parameters admit no object", "Give the schema of an object")
        if kind not in self._kinds(schema):
            kinds = schema.get("type", "nothing")
            raise self.place.error(f"Parameters are an object, not {kinds!r}", 'Use the style "json" for other values')
        plain = set(schema) <= _ANNOTATIONS | {"$defs", "definitions", "type", "$ref"}
        if "$ref" in schema and plain:
            at = self._local(schema["$ref"])
            return self._alternatives(pointed(self.root, at), at, kind, seen)
        for keyword in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(keyword)
            if not isinstance(branches, list) or not set(schema) - {keyword} <= _ANNOTATIONS | {"$defs", "type"}:
                continue
            fitting = [i for i, branch in enumerate(branches) if kind in self._kinds(branch)]
            if (
                (keyword == "anyOf" and fitting)
                or len(fitting) == 1 == len(branches)
                or (keyword == "oneOf" and len(fitting) == 1)
            ):
                found = [self._alternatives(branches[i], f"{pointer}/{keyword}/{i}", kind, seen) for i in fitting]
                return [one for part in found for one in part]
        return [(pointer, schema)]

    def _check(self, schema: Mapping[str, Any], known: set[str], what: str) -> None:
        for keyword in schema:
            if keyword not in known | _ANNOTATIONS and not (keyword.startswith("x-") or _useless(keyword, known)):
                raise self.place.error(
                    f"The keyword {keyword!r} {what} cannot be enforced in XML-like styles",
                    'Move it into a property, or use the style "json"',
                )

    def _schema_at(self, pointer: str) -> Any:
        return True if pointer == _ANYTHING else pointed(self.root, pointer)

    def _admits(self, schema: Any, pointer: str, value: Any) -> bool:
        """Whether a value of few bytes is admitted."""
        return _admits(json.dumps(self._leaf("json_schema", schema, pointer, None)), json.dumps(value))

    def _leaf(self, kind: str, schema: Any, pointer: str, only: list[str] | None, without: Sequence[str] = ()) -> Expr:
        """The values at a pointer, of certain JSON types only, as a leaf of the grammar."""
        options = dict(self.options)
        document: Any = schema
        if _refers(schema):
            # References are resolved in the document that they stand in.
            document = {"$ref": f"{_base(self.root)}#{quote(pointer, safe='/~')}"}
            options["resources"] = {**options.get("resources", {}), _base(self.root): schema_text(self.root)}
        if only is not None:
            document = {"allOf": [document], "type": only}
        if isinstance(document, Mapping) and isinstance(self.root, Mapping) and "$schema" in self.root:
            document = {"$schema": self.root["$schema"], **document}
        fields: dict[str, Any] = {"schema": schema_text(document)}
        if options:
            fields["options"] = options
        if kind == "schema_string":
            fields["without"] = [text for text in without if text]
        return {kind: fields}

    def _local(self, reference: str) -> str:
        """The JSON pointer of a reference into the schema itself."""
        if reference != "#" and not reference.startswith("#/"):
            raise self.place.error(
                f"The reference {reference!r} does not point into the schema", "Put what it means under $defs"
            )
        pointer = reference[1:]
        if pointed(self.root, pointer) is None:
            raise self.place.error(f"The reference {reference!r} points to nothing", "Mend it, or add what it means")
        return pointer


def schema_kinds(schema: Any, root: Any) -> frozenset[str]:
    """The JSON types that values under a schema, which stands in the document ``root``, can have, or more of them."""
    return _Kinds(root).of(schema)


#: References within each other. What is deeper may have any type.
_DEEPEST = 100


class _Kinds:
    """Finds the types of schemas in a document, each reference once."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[str, frozenset[str]] = {}

    def of(self, schema: Any, seen: frozenset[str] = frozenset()) -> frozenset[str]:
        if isinstance(schema, bool):
            return _TYPES if schema else frozenset()
        if not isinstance(schema, Mapping) or len(seen) > _DEEPEST:
            return _TYPES
        kinds = _TYPES
        declared = schema.get("type")
        if declared is not None:
            names = declared if isinstance(declared, list) else [declared]
            kinds = frozenset("number" if name == "integer" else name for name in names if isinstance(name, str))
            kinds &= _TYPES
        if isinstance(schema.get("enum"), list):
            kinds &= frozenset(map(json_type, schema["enum"]))
        if "const" in schema:
            kinds &= {json_type(schema["const"])}
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                kinds &= frozenset[str]().union(*(self.of(branch, seen) for branch in schema[keyword]))
        for branch in schema.get("allOf", []) if isinstance(schema.get("allOf"), list) else []:
            kinds &= self.of(branch, seen)
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#") and reference not in seen:
            kinds &= self._referred(reference, seen)
        return kinds

    def _referred(self, reference: str, seen: frozenset[str]) -> frozenset[str]:
        if reference not in self._known:
            # In a circle of references this may be more than it is, as one of those on the way has any type.
            self._known[reference] = self.of(pointed(self._root, reference[1:]), seen | {reference})
        return self._known[reference]


def schema_admits(schema: Any, root: Any, written: str) -> bool | None:
    """Whether a schema, which stands in the document ``root``, admits a JSON text; `None` if it cannot be compiled."""
    options: dict[str, Any] = {}
    if schema is not True and _refers(schema):
        schema = _absolute(schema, _base(root))
        options = {"options": {"resources": {_base(root): schema_text(root)}}}
    if isinstance(schema, Mapping) and isinstance(root, Mapping) and "$schema" in root:
        schema = {"$schema": root["$schema"], **schema}
    try:
        return _matches(json.dumps({"json_schema": {"schema": schema_text(schema), **options}}), written)
    except (PunchcardError, TypeError, ValueError, RecursionError):
        return None


def _absolute(schema: Any, base: str) -> Any:
    """The schema with references that do not depend on where it stands."""
    if isinstance(schema, Mapping):
        return {
            key: base + value
            if key in ("$ref", "$dynamicRef") and isinstance(value, str) and value.startswith("#")
            else _absolute(value, base)
            for key, value in schema.items()
        }
    return [_absolute(item, base) for item in schema] if isinstance(schema, list) else schema


@cache
def _bytes_compiler() -> Any:
    from ..compiler import GrammarCompiler
    from ..tokenizers.info import TokenizerInfo

    return GrammarCompiler(TokenizerInfo.from_vocab([*(bytes([i]) for i in range(256)), b"</s>"], eos_token_ids=[256]))


def _admits(leaf: str, written: str) -> bool:
    """Whether a leaf of JSON admits a text."""
    try:
        return _matches(leaf, written)
    except PunchcardError:
        return False  # it has no value at all; whoever compiles it will say so


def _matches(leaf: str, written: str) -> bool:
    from .._core import GrammarMatcher

    matcher = GrammarMatcher(_bytes_compiler().compile(Grammar._read(leaf)))
    return matcher.accept_string(written) and matcher.is_accepting()


def _useless(keyword: str, known: set[str]) -> bool:
    """Whether a keyword says nothing about this type: those of arrays about objects, and the other way round."""
    other = _OF_ARRAYS | {"prefixItems", "uniqueItems", "contains"} if "properties" in known else _OF_OBJECTS
    strings_and_numbers = {"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "multipleOf"}
    return keyword in (other | strings_and_numbers) - known


def _joined(parts: Sequence[Expr], between: Expr) -> list[Expr]:
    """The parts with ``between`` between them."""
    return [parts[0], *(item for part in parts[1:] for item in (between, part))]


def _literal(literal: Callable[[str], Expr], value: str) -> Expr:
    return literal(value) if value else EMPTY


def _step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def pointed(document: Any, pointer: str) -> Any:
    """What a JSON pointer points to; None if nothing."""
    for step in pointer.split("/")[1:]:
        step = unquote(step).replace("~1", "/").replace("~0", "~")
        try:
            document = document[int(step)] if isinstance(document, list) else document[step]
        except (KeyError, ValueError, IndexError, TypeError):
            return None
    return document


def _base(root: Any) -> str:
    identity = root.get("$id") if isinstance(root, Mapping) else None
    return identity.rstrip("#") if isinstance(identity, str) else _ROOT


def _refers(schema: Any) -> bool:
    """Whether there is a reference anywhere inside."""
    written = json.dumps(schema)
    return '"$ref"' in written or '"$dynamicRef"' in written
