"""How model families spell the arguments of a call where it is not JSON.

A `Style` says how an object is written: what goes around its members, around a key and a value, how strings and the
three words are spelled, and whether arrays and objects inside are written in the same way or as JSON. `write` spells a
value by it; `punchcard.tags.parameters` makes the grammar of what a schema admits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..exact import write_json

#: Python's spelling of true, false and null.
PYTHON_WORDS = ("True", "False", "None")


#: What a string stands within that holds one of `CDATA_SPECIAL`, in styles with ``cdata``.
CDATA = ("<![CDATA[", "]]>")
CDATA_SPECIAL = frozenset("<&\n")


@dataclass(frozen=True)
class Items:
    """How a style writes arrays: ``opening``, the items with ``between`` them, each within ``before`` and ``after``,
    ``closing``."""

    opening: str = "["
    before: str = ""
    after: str = ""
    between: str = ", "
    closing: str = "]"


@dataclass(frozen=True, eq=False)
class Style:
    """How one family writes an object: ``opening``, the members with ``between`` them, ``closing``. A member is
    ``before`` KEY ``after``, the value, ``close``.

    Attributes:
        before: text in front of a key.
        after: text behind it, in parts between which the family may write a line break; ``{type}`` in it stands for
            what ``types`` says of the value's JSON type.
        close: text behind a value; ``{key}`` in it stands for the key.
        types: what the family calls each JSON type, where it says the type.
        strings: ``"raw"``: as they are, within ``delimiter``; ``"json"``: as JSON; ``"python"``: in single quotes,
            or as JSON where they hold a quote, a backslash or a control character.
        words: the spelling of true, false and null.
        items: how arrays are written, and ``nested``: how objects in them and in members are. `None`: all of it as
            JSON. A `Style` of its own, or ``"same"``.
        keys: ``"plain"``: as they are; ``"python"``: in single quotes, or as JSON.
        names: a regular expression for keys that the schema does not declare.
        alphabetical: the family was trained on keys in alphabetical order, so that order is written too.
        escape: how a key is spelled.
        cdata: strings with ``<``, ``&`` or a line break stand within ``<![CDATA[`` and ``]]>``.
        value_breaks: the family writes a line break on each side of a value (see `Newlines`).
        last_break: the family writes a line break behind each member.
    """

    before: str = ""
    after: tuple[str, ...] = ("",)
    close: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    opening: str = ""
    between: str = ""
    closing: str = ""
    strings: Literal["raw", "json", "python"] = "raw"
    delimiter: str = ""
    words: tuple[str, str, str] = ("true", "false", "null")
    items: Items | None = None
    nested: Style | Literal["same"] | None = None
    keys: Literal["plain", "python"] = "plain"
    names: str = r'[^\s<>"&]+'
    alphabetical: bool = False
    escape: Callable[[str], str] = str
    cdata: bool = False
    value_breaks: bool = False
    last_break: bool = False

    @property
    def inner(self) -> Style | None:
        """How arrays and objects inside are written; `None`: as JSON."""
        return self if self.nested == "same" else self.nested

    @property
    def closer(self) -> str:
        """What a raw string may not hold: the text that ends it, without the line breaks around it."""
        return self.delimiter or self.close.partition("{key}")[0].strip()

    def head(self, key: str, kind: str) -> list[str]:
        """What goes before a value of a JSON type, in the parts of ``after``."""
        first, *rest = (part.replace("{type}", self.types.get(kind, "")) for part in self.after)
        return [self.before + self.spell_key(key) + first, *rest]

    def tail(self, key: str) -> str:
        """What goes behind a value."""
        return self.close.replace("{key}", self.spell_key(key))

    def spell_key(self, key: str) -> str:
        return _python_string(key) if self.keys == "python" else self.escape(key)


def write_object(style: Style, value: Mapping[str, Any]) -> str:
    """An object in the spelling of ``style``. A null is left out where the style has no word for it."""
    keys = sorted(value) if style.alphabetical else list(value)
    members = [
        "".join(style.head(key, json_type(value[key]))) + write(style, value[key]) + style.tail(key)
        for key in keys
        if value[key] is not None or style.words[2]
    ]
    return style.opening + style.between.join(members) + style.closing


def write(style: Style, value: Any) -> str:
    """A value in the spelling of ``style``: what stands between ``after`` and ``close``."""
    if isinstance(value, str):
        if style.cdata and not CDATA_SPECIAL.isdisjoint(value):
            return CDATA[0] + value + CDATA[1]
        if style.strings == "raw":
            return style.delimiter + value + style.delimiter
        return _json(value) if style.strings == "json" else _python_string(value)
    if value is None or isinstance(value, bool):
        return style.words[2 if value is None else 0 if value else 1]
    if isinstance(value, (int, float)) or style.inner is None:
        return _json(value)
    if isinstance(value, Mapping):
        return write_object(style.inner, value)
    items = style.inner.items or Items()
    return items.opening + items.between.join(_item(style, items, v) for v in value) + items.closing


def json_type(value: Any) -> str:
    """The JSON type of a value: ``"integer"`` is a ``"number"``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    return "object" if isinstance(value, Mapping) else "array"


def _item(style: Style, items: Items, value: Any) -> str:
    return items.before + write(style.inner or style, value) + items.after


_json = write_json


def _python_string(value: str) -> str:
    plain = "'" not in value and "\\" not in value and value.isprintable()
    return f"'{value}'" if plain else _json(value)


def _deepseek(space: str) -> Style:
    return Style(
        before=f'<｜DSML｜{space}parameter name="',
        after=('" string="{type}">',),
        close=f"</｜DSML｜{space}parameter>",
        types=STRING_OR_NOT,
        last_break=True,
    )


#: What DeepSeek's elements say of a value: whether it is a string.
STRING_OR_NOT = {
    "string": "true",
    **dict.fromkeys(("number", "boolean", "null", "object", "array"), "false"),
}

#: The styles that structural tags know by name.
STYLES: dict[str, Style] = {
    "qwen_xml": Style("<parameter=", (">",), "</parameter>", value_breaks=True, last_break=True),
    "minimax_xml": Style('<parameter name="', ('">',), "</parameter>", last_break=True),
    "deepseek_xml": _deepseek(""),
    "deepseek_v4_1_xml": _deepseek(" "),
    "glm_xml": Style("<arg_key>", ("</arg_key>", "<arg_value>"), "</arg_value>", last_break=True),
    "kimi_k3_xml": Style(
        '<|open|>argument key="',
        ('" type="{type}"<|sep|>',),
        "<|close|>argument<|sep|>",
        types={kind: kind for kind in STRING_OR_NOT},
        escape=lambda key: key.replace("&", "&amp;").replace('"', "&quot;"),
    ),
}
