"""Pictures of grammars: a railroad diagram for each rule, one below the other in one SVG."""

from __future__ import annotations

import html
import io
import json
from collections.abc import Iterator
from typing import Any

from .errors import PunchcardError, extra_hint

# Longer texts are cut: a picture is for an overview, `str(grammar)` for the whole.
_MOST_CHARS = 48
# More alternatives than this are told as a number.
_MOST_ALTERNATIVES = 40
_MARGIN = 20
_TITLE = 24
# Colours that every program that draws SVG knows.
_STYLE = """
svg.railroad-diagram rect { fill: #e0ffe0; }
svg.railroad-diagram rect.group-box { fill: none; }
svg text.rule { text-anchor: start; font: bold 14px monospace; }
"""


def svg(expr: Any) -> str:
    """An expression in its JSON form as SVG text."""
    try:
        import railroad
    except ImportError:
        raise PunchcardError(
            "Pictures of grammars need the package railroad-diagrams", hint=extra_hint("show")
        ) from None

    parts: list[str] = []
    width, height = 0.0, float(_MARGIN)
    for name, body in _rules(expr):
        diagram = railroad.Diagram(railroad.Start(type="simple"), _item(railroad, body), railroad.End(type="simple"))
        text = io.StringIO()
        diagram.writeSvg(text.write)
        inner = text.getvalue()
        parts.append(f'<text class="rule" x="{_MARGIN}" y="{height + 14}">{html.escape(name)}</text>')
        height += _TITLE
        parts.append(f'<g transform="translate(0 {height})">{inner}</g>')
        width = max(width, float(diagram.attrs["width"]))
        height += float(diagram.attrs["height"]) + _MARGIN
    style = railroad.DEFAULT_STYLE + _STYLE
    size = f'width="{width + _MARGIN:.0f}" height="{height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="railroad-diagram" {size}>'
        f"<style>{html.escape(style, quote=False)}</style>{''.join(parts)}</svg>"
    )


def _rules(expr: Any) -> Iterator[tuple[str, Any]]:
    """The whole, and then each rule of each grammar within."""
    if isinstance(expr, dict) and "grammar" in expr:
        grammar = expr["grammar"]
        rules = dict(grammar.get("rules", {}))
        first = grammar["start"].get("rule") if isinstance(grammar["start"], dict) else None
        if isinstance(first, str) and first in rules:
            yield first, rules.pop(first)
        else:
            yield "start", grammar["start"]
        yield from rules.items()
        inner = [grammar["start"], *grammar.get("rules", {}).values()]
    else:
        yield "start", expr
        inner = [expr]
    pending, count = inner, 0
    while pending:
        part = pending.pop(0)
        if isinstance(part, list):
            pending.extend(part)
        elif isinstance(part, dict):
            for kind, body in part.items():
                if kind == "grammar" and isinstance(body, dict) and "start" in body:
                    count += 1
                    yield f"grammar {count}", body["start"]
                    yield from body.get("rules", {}).items()
                    pending.extend([body["start"], *body.get("rules", {}).values()])
                elif kind not in ("json_schema", "schema_string", "regex", "text"):
                    pending.append(body)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 1] + "…"


def _quoted(text: str) -> str:
    return _short(json.dumps(text, ensure_ascii=False))


def _item(railroad: Any, expr: Any) -> Any:
    """The railroad item of an expression."""
    if expr == "nothing":
        return railroad.Comment("no text")
    ((kind, body),) = expr.items()
    if kind == "text":
        return railroad.Terminal(_quoted(body)) if body else railroad.Skip()
    if kind == "chars":
        return railroad.Terminal(_short(_characters(body)))
    if kind == "sequence":
        return railroad.Sequence(*[_item(railroad, part) for part in body]) if body else railroad.Skip()
    if kind == "choice":
        shown = [_item(railroad, part) for part in body[:_MOST_ALTERNATIVES]]
        if len(body) > len(shown):
            shown.append(railroad.Comment(f"and {len(body) - len(shown)} more"))
        return railroad.Choice(0, *shown) if shown else railroad.Comment("no text")
    if kind == "repeat":
        return _repeat(railroad, body)
    if kind == "rule":
        return railroad.NonTerminal(_short(body))
    if kind == "regex":
        return railroad.Terminal(_short(f"/{body['pattern']}/{body.get('flags', '')}"))
    if kind == "named":
        return railroad.Group(_item(railroad, body["body"]), _short(f"{body['kind']} {body['name']}"))
    if kind == "max_tokens":
        return railroad.Group(_item(railroad, body["body"]), f"at most {body['tokens']} tokens")
    if kind == "and":
        return railroad.Stack(*[railroad.Group(_item(railroad, part), "and") for part in body])
    if kind in ("not", "shortest"):
        return railroad.Group(_item(railroad, body), {"not": "anything but", "shortest": "up to the first"}[kind])
    if kind == "text_without":
        without = " or ".join(_quoted(text) for text in body)
        return railroad.NonTerminal(_short(f"text without {without}" if body else "any text"))
    if kind == "json_schema":
        return railroad.NonTerminal(_short(f"JSON {body['schema']}"))
    if kind == "schema_string":
        return railroad.NonTerminal(_short(f"string of {body['schema']}"))
    if kind == "token":
        named = [*body.get("names", []), *map(str, body.get("ids", []))]
        told = ", ".join(named)
        return railroad.NonTerminal(_short(f"any token but {told}" if body.get("except") else f"token {told}"))
    if kind == "grammar":
        start = body["start"]
        return _item(railroad, start)
    raise PunchcardError(f"The expression {kind!r} is not known", hint="Make grammars by the methods of Grammar")


def _repeat(railroad: Any, body: dict[str, Any]) -> Any:
    item, least, most = _item(railroad, body["body"]), body["min"], body.get("max")
    if (least, most) == (0, 1):
        return railroad.Optional(item)
    if most is None and least <= 1:
        return railroad.OneOrMore(item) if least else railroad.ZeroOrMore(item)
    if least == most:
        told = f"{least} times"
    else:
        told = f"{least} or more times" if most is None else f"{least} to {most} times"
    return railroad.OneOrMore(item, railroad.Comment(told))


def _characters(ranges: list[list[int]]) -> str:
    def shown(code: int) -> str:
        return chr(code) if chr(code).isprintable() else f"\\u{{{code:X}}}"

    return "[" + "".join(shown(lo) if lo == hi else f"{shown(lo)}-{shown(hi)}" for lo, hi in ranges) + "]"
