"""A slow and simple recogniser of grammar expressions, to compare the engine with."""

from __future__ import annotations

import re
from typing import Any

Expr = Any


class Reference:
    """Where texts of an expression that begin at one place of ``text`` can end."""

    def __init__(self, grammar: dict[str, Any], text: str) -> None:
        self.rules: dict[str, Expr] = grammar["rules"]
        self.text = text
        self.known: dict[tuple[str, int], set[int]] = {}
        self.changed = True

    def matches(self, start: Expr) -> bool:
        # Recursive rules are a least fixpoint: until nothing new is found, each sees what was found before.
        ends: set[int] = set()
        while self.changed:
            self.changed = False
            self.visited: set[tuple[str, int]] = set()
            ends = self.ends(start, 0)
        return len(self.text) in ends

    def ends(self, expr: Expr, at: int) -> set[int]:
        if expr == "nothing":
            return set()
        ((kind, body),) = expr.items()
        return getattr(self, "_" + kind)(body, at)

    def _text(self, body: str, at: int) -> set[int]:
        return {at + len(body)} if self.text.startswith(body, at) else set()

    def _chars(self, body: list[list[int]], at: int) -> set[int]:
        found = at < len(self.text) and any(lo <= ord(self.text[at]) <= hi for lo, hi in body)
        return {at + 1} if found else set()

    def _sequence(self, body: list[Expr], at: int) -> set[int]:
        places = {at}
        for item in body:
            places = set().union(*(self.ends(item, place) for place in places))
        return places

    def _choice(self, body: list[Expr], at: int) -> set[int]:
        return set().union(*(self.ends(item, at) for item in body))

    def _repeat(self, body: dict[str, Any], at: int) -> set[int]:
        least, most = body["min"], body.get("max")
        # More rounds than characters and least rounds add nothing: some would be empty.
        rounds = len(self.text) + least + 1 if most is None else min(most, len(self.text) + least + 1)
        places, out = {at}, ({at} if least == 0 else set())
        for count in range(1, rounds + 1):
            places = set().union(*(self.ends(body["body"], place) for place in places))
            if count >= least:
                out |= places
        return out

    def _rule(self, name: str, at: int) -> set[int]:
        key = (name, at)
        known = self.known.setdefault(key, set())
        if key not in self.visited:
            self.visited.add(key)
            found = self.ends(self.rules[name], at)
            if not found <= known:
                known |= found
                self.changed = True
        return set(known)

    def _regex(self, body: dict[str, Any], at: int) -> set[int]:
        return self._of_text(at, lambda text: re.fullmatch(body["pattern"], text) is not None)

    def _text_without(self, body: list[str], at: int) -> set[int]:
        return self._of_text(at, lambda text: not any(word in text for word in body))

    def _and(self, body: list[Expr], at: int) -> set[int]:
        return set.intersection(*(self.ends(item, at) for item in body))

    def _not(self, body: Expr, at: int) -> set[int]:
        return set(range(at, len(self.text) + 1)) - self.ends(body, at)

    def _shortest(self, body: Expr, at: int) -> set[int]:
        return set(sorted(self.ends(body, at))[:1])

    def _longest(self, body: Expr, at: int) -> set[int]:
        # As long as it can be in this text. The engine also forbids what could go on with another text of ``body``.
        ends = self.ends(body, at)
        return {max(ends), *(ends & {at})} if ends else ends

    def _max_tokens(self, body: dict[str, Any], at: int) -> set[int]:
        # Where each character is a token of its own.
        return {end for end in self.ends(body["body"], at) if end - at <= body["tokens"]}

    def _of_text(self, at: int, holds: Any) -> set[int]:
        return {end for end in range(at, len(self.text) + 1) if holds(self.text[at:end])}
