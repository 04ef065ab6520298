"""The arguments of a call as XML-like elements, as several model families write them.

One element a property, in the order of the schema, the optional ones present or not. A string stands there raw, up to
the closing text; everything else as JSON. What a property may be decides how it is spelled:

- only strings: raw;
- no string: JSON;
- both, as in ``str | None``: either. A text such as ``null`` can then be read both ways, as in the families' own
  formats (except where the element says which it is, as DeepSeek's and Kimi's do).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, unquote

from ..grammar import schema_text
from .base import Place
from .expressions import ANY_TEXT, EMPTY, Expr, both, choice, negation, optional, repeat, sequence, text

#: Of the line breaks that a family writes: whether they may, must or must not be there.
Newlines = Literal["optional", "required", "none"]

_TYPES = frozenset({"string", "number", "boolean", "null", "object", "array"})
_ROOT = "urn:punchcard:parameters"
#: In place of a pointer: the schema that admits every value.
_ANYTHING = "true"
#: Keywords of the parameters as a whole that elements can express; annotations say nothing about values.
_EXPRESSED = {"type", "properties", "required", "additionalProperties", "unevaluatedProperties", "$defs", "definitions"}
_ANNOTATIONS = {"$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "strict"}


@dataclass(frozen=True)
class Style:
    """How one family writes a parameter: ``before`` KEY ``after``, value, ``close``.

    Attributes:
        before: text in front of the key.
        after: text behind it, given the JSON type of the value; one of them for each way to spell it.
        close: text behind the value.
            Where it is in parts, the family writes a line break between them.
        value_breaks: the family writes a line break on each side of the value.
        last_break: the family writes a line break behind each element.
        escape: how a key is spelled.
    """

    before: str
    after: Callable[[str], Sequence[str]]
    close: str
    value_breaks: bool = False
    last_break: bool = True
    escape: Callable[[str], str] = str


def _deepseek(space: str) -> Style:
    return Style(
        before=f'<｜DSML｜{space}parameter name="',
        after=lambda kind: [f'" string="{"true" if kind == "string" else "false"}">'],
        close=f"</｜DSML｜{space}parameter>",
    )


STYLES: dict[str, Style] = {
    "qwen_xml": Style("<parameter=", lambda kind: [">"], "</parameter>", value_breaks=True),
    "minimax_xml": Style('<parameter name="', lambda kind: ['">'], "</parameter>"),
    "deepseek_xml": _deepseek(""),
    "deepseek_v4_1_xml": _deepseek(" "),
    "glm_xml": Style("<arg_key>", lambda kind: ["</arg_key>", "<arg_value>"], "</arg_value>"),
    "kimi_k3_xml": Style(
        '<|open|>argument key="',
        lambda kind: [f'" type="{kind}"<|sep|>'],
        "<|close|>argument<|sep|>",
        last_break=False,
        escape=lambda key: key.replace("&", "&amp;").replace('"', "&quot;"),
    ),
}


def parameters(
    style: Style,
    schema: bool | dict[str, Any],
    *,
    newlines: Newlines,
    excludes: Sequence[str],
    options: Mapping[str, Any],
    place: Place,
) -> Expr:
    """The elements of an object under ``schema``.

    Raises:
        GrammarError: the schema says something of the object as a whole that elements cannot express.
    """
    return _Parameters(style, schema, newlines, [style.close, *excludes], dict(options), place).expr()


class _Parameters:
    """The elements of one object."""

    def __init__(
        self,
        style: Style,
        schema: bool | dict[str, Any],
        newlines: Newlines,
        without: list[str],
        options: dict[str, Any],
        place: Place,
    ) -> None:
        self.style, self.root, self.without, self.options, self.place = style, schema, without, options, place
        self.line_break = {"optional": optional(text("\n")), "required": text("\n"), "none": EMPTY}[newlines]
        self.pointer, self.schema = self._object()

    def expr(self) -> Expr:
        properties: dict[str, Any] = self.schema.get("properties", {})
        required = set(self.schema.get("required", ()))
        others = self._others()
        parts = [optional(text("\n")) if self.style.last_break and self.line_break != EMPTY else EMPTY]
        if self.line_break == text("\n"):
            parts = []
        for key in properties:
            element = self._element(text(self.style.escape(key)), f"{self.pointer}/properties/{_step(key)}")
            parts.append(element if key in required else optional(element))
        for key in sorted(required - set(properties)):
            if others is None:
                raise self.place.error(
                    f"{key!r} is required, but not declared", "Add it to properties, or allow additionalProperties"
                )
            parts.append(self._element(text(self.style.escape(key)), others))
        if others is not None:
            known = [text(self.style.escape(key)) for key in {**properties, **dict.fromkeys(required)}]
            name: Expr = {"regex": {"pattern": r'[^\s<>"&]+'}}
            parts.append(repeat(self._element(both(name, negation(choice(known))) if known else name, others)))
        return sequence(*parts)

    def _object(self) -> tuple[str, dict[str, Any]]:
        """The schema of the object, behind references, and the JSON pointer to it."""
        pointer, schema, seen = "", self.root, {""}
        while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            pointer = self._local(schema["$ref"])
            if pointer in seen:
                raise self.place.error("The references of the schema go in a circle", "Describe the object itself")
            seen.add(pointer)
            schema = _at(self.root, pointer)
        if schema is True:
            schema = {"additionalProperties": True}
        if not isinstance(schema, dict):
            raise self.place.error("The parameters admit no object", "Give the schema of an object")
        kinds = schema.get("type", "object")
        if kinds != "object" and "object" not in (kinds if isinstance(kinds, list) else ()):
            raise self.place.error(f"Parameters are an object, not {kinds!r}", 'Use the style "json" for other values')
        for keyword in schema:
            if keyword not in _EXPRESSED | _ANNOTATIONS:
                raise self.place.error(
                    f"The keyword {keyword!r} of the parameters as a whole cannot be enforced in XML-like styles",
                    'Move it into a property, or use the style "json"',
                )
        return pointer, schema

    def _others(self) -> str | None:
        """The pointer to the schema of parameters that are not declared; None if there may be none."""
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in self.schema:
                if isinstance(self.schema[keyword], bool):
                    return _ANYTHING if self.schema[keyword] else None
                return f"{self.pointer}/{keyword}"
        if "properties" in self.schema or self.options.get("strict"):
            return None
        return _ANYTHING

    def _element(self, key: Expr, pointer: str) -> Expr:
        """One parameter, whose value is described at the pointer."""
        schema = True if pointer == _ANYTHING else _at(self.root, pointer)
        kinds = self._kinds(schema, set())
        if not kinds:
            raise self.place.error(f"{pointer} admits no value", "Remove the property, or mend its schema")
        spellings: dict[str, list[Expr]] = {}
        for kind, value in self._values(schema, pointer, kinds):
            spellings.setdefault("\0".join(self.style.after(kind)), []).append(value)
        middle = [
            sequence(*_joined([text(part) for part in after.split("\0")], self.line_break), choice(values))
            for after, values in spellings.items()
        ]
        close = sequence(text(self.style.close), self.line_break if self.style.last_break else EMPTY)
        return sequence(text(self.style.before), key, choice(middle), close)

    def _values(self, schema: Any, pointer: str, kinds: frozenset[str]) -> list[tuple[str, Expr]]:
        """Each JSON type that the value may have, with its spelling."""
        values: list[tuple[str, Expr]] = []
        if "string" in kinds:
            values.append(("string", self._raw(schema, self._leaf("schema_string", schema, pointer, None))))
        others = kinds - {"string"}
        # Where the element does not tell types apart, one leaf serves them all.
        told_apart = len({tuple(self.style.after(kind)) for kind in others}) > 1
        for group in [{kind} for kind in sorted(others)] if told_apart else [others] if others else []:
            only = None if group == kinds else sorted(group)
            leaf = self._leaf("json_schema", schema, pointer, only)
            breaks = self.line_break if self.style.value_breaks else EMPTY
            values.append((min(group), sequence(breaks, leaf, breaks)))
        return values

    def _raw(self, schema: Any, leaf: Expr) -> Expr:
        """A raw string, and the line breaks around it that are not part of it.

        One line break on each side belongs to the element where it is there. So a string without it may not begin, or
        end, with one. Where any string will do, both readings are the same texts.
        """
        if not self.style.value_breaks or self.line_break == EMPTY:
            return leaf
        line = text("\n")
        if self.line_break == line:
            return sequence(line, leaf, line)
        if isinstance(schema, dict) and set(schema) <= _ANNOTATIONS | {"type"}:
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

    def _leaf(self, kind: str, schema: Any, pointer: str, only: list[str] | None) -> Expr:
        """The values at a pointer, of certain JSON types only, as a leaf of the grammar."""
        options = dict(self.options)
        document: Any = schema
        if _refers(schema):
            # References are resolved in the document that they stand in.
            document = {"$ref": f"{_base(self.root)}#{quote(pointer, safe='/~')}"}
            options["resources"] = {**options.get("resources", {}), _base(self.root): schema_text(self.root)}
        if only is not None:
            document = {"allOf": [document], "type": only}
        if isinstance(document, dict) and isinstance(self.root, dict) and "$schema" in self.root:
            document = {"$schema": self.root["$schema"], **document}
        fields: dict[str, Any] = {"schema": schema_text(document)}
        if options:
            fields["options"] = options
        if kind == "schema_string":
            fields["without"] = self.without
        return {kind: fields}

    def _kinds(self, schema: Any, seen: set[str]) -> frozenset[str]:
        """The JSON types that values under a schema can have, or more of them."""
        if isinstance(schema, bool):
            return _TYPES if schema else frozenset()
        if not isinstance(schema, dict):
            return _TYPES
        kinds = _TYPES
        declared = schema.get("type")
        if declared is not None:
            names = declared if isinstance(declared, list) else [declared]
            kinds = frozenset("number" if name == "integer" else name for name in names) & _TYPES
        if isinstance(schema.get("enum"), list):
            kinds &= frozenset(map(_kind, schema["enum"]))
        if "const" in schema:
            kinds &= {_kind(schema["const"])}
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                kinds &= frozenset().union(*(self._kinds(branch, seen) for branch in schema[keyword]))
        for branch in schema.get("allOf", []) if isinstance(schema.get("allOf"), list) else []:
            kinds &= self._kinds(branch, seen)
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#") and reference not in seen:
            kinds &= self._kinds(_at(self.root, self._local(reference)), seen | {reference})
        return kinds

    def _local(self, reference: str) -> str:
        """The JSON pointer of a reference into the schema itself."""
        if reference != "#" and not reference.startswith("#/"):
            raise self.place.error(
                f"The reference {reference!r} does not point into the schema", "Put what it means under $defs"
            )
        pointer = reference[1:]
        if _at(self.root, pointer) is None:
            raise self.place.error(f"The reference {reference!r} points to nothing", "Mend it, or add what it means")
        return pointer


def _joined(parts: Sequence[Expr], between: Expr) -> list[Expr]:
    """The parts with ``between`` between them."""
    return [parts[0], *(item for part in parts[1:] for item in (between, part))]


def _step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _at(document: Any, pointer: str) -> Any:
    """What a JSON pointer points to; None if nothing."""
    for step in pointer.split("/")[1:]:
        step = unquote(step).replace("~1", "/").replace("~0", "~")
        try:
            document = document[int(step)] if isinstance(document, list) else document[step]
        except (KeyError, ValueError, IndexError, TypeError):
            return None
    return document


def _base(root: Any) -> str:
    identity = root.get("$id") if isinstance(root, dict) else None
    return identity.rstrip("#") if isinstance(identity, str) else _ROOT


def _refers(schema: Any) -> bool:
    """Whether there is a reference anywhere inside."""
    return '"$ref"' in json.dumps(schema) or '"$dynamicRef"' in json.dumps(schema)


def _kind(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    return "object" if isinstance(value, dict) else "array"
