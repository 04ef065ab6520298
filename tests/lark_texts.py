"""Random texts of a grammar that the ``lark`` package has compiled, drawn from its rules and terminals alone."""

from __future__ import annotations

import random
import sys
from typing import Any

import lark
from lark.grammar import NonTerminal, Terminal

if sys.version_info >= (3, 11):
    from re import _constants as constants
    from re import _parser as parser
else:
    import sre_constants as constants
    import sre_parse as parser

# Characters that stand for all others where a regular expression excludes some.
ALPHABET = "abcxyzABZ_0129 +-*/\"'\\.,;:(){}[]<>=|&#é😀"


class TextGenerator:
    """Draws texts by expanding rules; past a budget of expansions, only those that lead to an end soonest."""

    def __init__(self, grammar: lark.Lark) -> None:
        self.alternatives: dict[NonTerminal, list[list[Any]]] = {}
        for rule in grammar.rules:
            self.alternatives.setdefault(rule.origin, []).append(rule.expansion)
        self.patterns = {
            terminal.name: parser.parse(terminal.pattern.to_regexp()).data for terminal in grammar.terminals
        }
        self.start = NonTerminal(grammar.options.start[0])
        self.heights = self._heights()

    def _heights(self) -> dict[NonTerminal, int]:
        """How deep the flattest derivation of each rule is."""
        heights: dict[NonTerminal, int] = {}
        changed = True
        while changed:
            changed = False
            for rule, alternatives in self.alternatives.items():
                best = min((self._height(symbols, heights) for symbols in alternatives), default=10**9)
                if best < heights.get(rule, 10**9):
                    heights[rule] = best
                    changed = True
        return heights

    @staticmethod
    def _height(symbols: list[Any], heights: dict[NonTerminal, int]) -> int:
        return 1 + max((0 if isinstance(s, Terminal) else heights.get(s, 10**9) for s in symbols), default=0)

    def draw(self, random: random.Random, budget: int) -> str:
        """A text; `budget` is how many rules are expanded freely."""
        pieces = []
        waiting: list[Any] = [self.start]
        while waiting:
            symbol = waiting.pop()
            if isinstance(symbol, Terminal):
                pieces.append(draw_pattern(self.patterns[symbol.name], random))
                continue
            choices = self.alternatives[symbol]
            budget -= 1
            if budget < 0:
                least = min(self._height(symbols, self.heights) for symbols in choices)
                choices = [symbols for symbols in choices if self._height(symbols, self.heights) == least]
            waiting += reversed(random.choice(choices))
        return random.choice(["", " "]).join(pieces)


def draw_pattern(parts: Any, random: random.Random) -> str:
    """A text of a parsed regular expression without look-around."""
    return "".join(draw_part(code, argument, random) for code, argument in parts)


def draw_part(code: Any, argument: Any, random: random.Random) -> str:
    if code is constants.LITERAL:
        return chr(argument)
    if code is constants.NOT_LITERAL:
        return random.choice([c for c in ALPHABET if ord(c) != argument])
    if code is constants.ANY:
        return random.choice(ALPHABET)
    if code is constants.IN:
        return draw_class(argument, random)
    if code is constants.BRANCH:
        return draw_pattern(random.choice(argument[1]), random)
    if code is constants.SUBPATTERN:
        text = draw_pattern(argument[3], random)
        return random.choice([text, text.lower()]) if argument[1] & 2 else text
    if code in (constants.MAX_REPEAT, constants.MIN_REPEAT):
        least, most, body = argument
        return "".join(draw_pattern(body, random) for _ in range(random.randint(least, min(most, least + 2))))
    raise NotImplementedError(code)


def draw_class(items: Any, random: random.Random) -> str:
    members = {chr(value) for code, value in items if code is constants.LITERAL}
    ranges = [value for code, value in items if code is constants.RANGE]
    if items[0][0] is constants.NEGATE:
        outside = [c for c in ALPHABET if c not in members and not any(a <= ord(c) <= b for a, b in ranges)]
        return random.choice(outside)
    return random.choice(sorted(members) + [chr(random.randint(a, b)) for a, b in ranges])
