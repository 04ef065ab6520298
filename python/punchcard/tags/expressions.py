"""Grammar expressions as Python data, in the JSON form that the engine reads (`punchcard-grammar`, ``expr.rs``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

#: One expression: a dict with a single key, or ``"nothing"``.
Expr: TypeAlias = Any

#: A token by id, or a special token by name.
TokenName: TypeAlias = int | str

EMPTY: Expr = {"sequence": []}
ANY_TEXT: Expr = {"text_without": []}
_CHARACTER: Expr = {"chars": [[0, 0xD7FF], [0xE000, 0x10FFFF]]}


def text(value: str) -> Expr:
    """This text."""
    return {"text": value} if value else EMPTY


def sequence(*parts: Expr) -> Expr:
    """One after the other."""
    flat: list[Expr] = []
    for part in parts:
        nested = part.get("sequence") if isinstance(part, dict) else None
        flat += [part] if nested is None else nested
    return flat[0] if len(flat) == 1 else {"sequence": flat}


def choice(alternatives: Iterable[Expr]) -> Expr:
    """Any of them; of equal ones only the first is kept."""
    # Told apart by their JSON text: there may be thousands.
    kept = list({json.dumps(alternative): alternative for alternative in alternatives}.values())
    if not kept:
        return "nothing"
    return kept[0] if len(kept) == 1 else {"choice": kept}


def both(*operands: Expr) -> Expr:
    """The texts that are in all of them."""
    return operands[0] if len(operands) == 1 else {"and": list(operands)}


def negation(operand: Expr) -> Expr:
    """The texts that are not in it."""
    return {"not": operand}


def repeat(body: Expr, least: int = 0, most: int | None = None) -> Expr:
    """``body`` so many times; without ``most``, any number of times."""
    bounds: dict[str, Any] = {"body": body, "min": least}
    if most is not None:
        bounds["max"] = most
    return {"repeat": bounds}


def optional(body: Expr) -> Expr:
    """``body`` or nothing."""
    return repeat(body, 0, 1)


def text_without(excludes: Sequence[str], *, max_chars: int | None = None) -> Expr:
    """Any text in which none of these occurs, of at most so many characters."""
    anything = {"text_without": list(excludes)}
    if max_chars is None:
        return anything
    short = repeat(_CHARACTER, 0, max_chars)
    return both(short, anything) if excludes else short


def shortest(body: Expr) -> Expr:
    """``body``, which ends as soon as it can."""
    return {"shortest": body}


def max_tokens(body: Expr, tokens: int | None) -> Expr:
    """``body``, in at most so many tokens; `None`: in any number."""
    return body if tokens is None else {"max_tokens": {"body": body, "tokens": tokens}}


def token(names: Iterable[TokenName], *, but: bool = False) -> Expr:
    """One token of these; with ``but``, one of all others."""
    names = list(names)
    ids = sorted({name for name in names if not isinstance(name, str)})
    words = sorted({name for name in names if isinstance(name, str)})
    fields: dict[str, Any] = {}
    if ids:
        fields["ids"] = ids
    if words:
        fields["names"] = words
    if but:
        fields["except"] = True
    return {"token": fields}


def named(kind: str, name: str, body: Expr) -> Expr:
    """``body``, of which the matcher reports where it begins and ends."""
    return {"named": {"kind": kind, "name": name, "body": body}}
