"""Limits against hostile schemas and texts."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import PunchcardError


@dataclass(frozen=True)
class Limits:
    """What a schema and the texts under it may cost. Real ones stay far below the defaults.

    None of them is a time, so what one machine takes all take. To give up after a while there is `CancelToken`.

    Passing a limit raises `LimitError`, whose field ``limit`` is the name below. A compilation can raise it, and so can
    a mask or a token that is accepted later, as states are built when a text reaches them.

    Example:
        >>> GrammarCompiler(info, limits=Limits(max_search=10_000))
    """

    #: Bytes of JSON text, of the schema and of each resource.
    max_bytes: int = 64 << 20
    #: Arrays and objects within each other, in the schema's JSON and in a text whose members are told as events.
    max_depth: int = 1_000
    #: Combinations of alternatives (``anyOf``, ``oneOf``, ...) that one member or item may be split into.
    max_alternatives: int = 1_024
    #: Questions asked to find out whether a schema can be satisfied.
    max_search: int = 100_000
    #: Contexts in which schemas are compiled again: what ``$dynamicRef`` may lead to, and what ``strict`` closes.
    max_contexts: int = 100_000
    #: States of regular languages (patterns, formats, numbers, names) of one grammar.
    max_automaton_states: int = 1_000_000
    #: Steps of one search in a regular language.
    max_automaton_work: int = 5_000_000
    #: Parse states that all texts of one grammar may build together; 8 million are some 2 GB.
    max_states: int = 8_000_000
    #: Ways in which one text may be read at once.
    max_readings: int = 10_000
    #: Bytes that texts may add to a compiled grammar. At half of them new tables begin, and each live matcher carries
    #: its present state over, so memory stays flat however long a grammar serves. An error only where the state of one
    #: text takes more by itself.
    max_memory: int = 64 << 20
    #: Steps of one operation: of compiling, of a mask, of a completion. A million take from a twentieth of a second to
    #: half of one; every machine takes the same number.
    max_work: int = 20_000_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise PunchcardError(f"{name} is {value!r}; it must be a whole number, at least 0")
            # What cannot be counted is as good as no limit.
            object.__setattr__(self, name, min(value, 2**63 - 1))
