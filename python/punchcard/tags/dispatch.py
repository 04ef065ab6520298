"""Free text in which triggers call for tags.

Text is free until the first occurrence of a trigger; then the rest of one of the tags that begin with it follows, and
after that text is free again. A beginning of a trigger is ordinary text, and the search goes on rightly where
beginnings overlap: it is the expression "as short as possible: anything, then a trigger". Inside a tag the tag's end is
searched for in the same way, as one more trigger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from ..errors import LimitError
from .base import NO_END, End, Format, Place
from .combined import TagFormat, any_tag
from .expressions import (
    ANY_TEXT,
    EMPTY,
    Expr,
    TokenName,
    both,
    choice,
    named,
    repeat,
    sequence,
    shortest,
    text,
    text_without,
    token,
)
from .leaves import TokenFormat

if TYPE_CHECKING:
    from . import AnyFormat

#: Most different triggers of one format, the ends of what is around it among them: each is followed on its own.
MOST_TRIGGERS = 1_000
#: Characters of them all.
MOST_TRIGGER_CHARACTERS = 1_000_000


class TriggeredTagsFormat(Format):
    """Free text in which each trigger must go on as one of the tags.

    The matcher reports a trigger that fired as an event of kind ``trigger``, and the tag as one of kind ``tag``.

    Attributes:
        triggers: texts that the free text is searched for.
        tags: what they call for. The ``begin`` of each starts with a trigger; where it starts with several, the
            shortest fires.
        at_least_one: the output begins with a tag, without free text before it.
        stop_after_first: the output ends with the first tag.
        excludes: texts that may not occur in the free text.
    """

    type: Literal["triggered_tags"] = "triggered_tags"
    triggers: list[str]
    tags: list[TagFormat]
    at_least_one: bool = False
    stop_after_first: bool = False
    excludes: list[str] = Field(default_factory=list)

    def _followed_by(self, end: End, place: Place) -> Expr:
        _refuse_empty(self.triggers, place.field("triggers"))
        free = _FreeText.of(self.triggers, self.excludes, end, place)
        rests: dict[str, list[Expr]] = {trigger: [] for trigger in self.triggers}
        for index, tag in enumerate(self.tags):
            at = place.field("tags").item(index)
            trigger, rest = self._split(tag, free, at.field("begin"))
            rests[trigger].append(tag._after(text(rest), at))
        used = {begin for tag in self.tags if isinstance(tag.begin, str) for begin in free.beginnings(tag.begin)}
        for index, trigger in enumerate(self.triggers):
            if trigger not in used:
                raise (place.field("triggers").item(index)).error(
                    f"No tag begins with the trigger {trigger!r}",
                    "Remove it, or list it in excludes",
                )
        first = any_tag(self.tags, place) if self.at_least_one else None
        return free.within(_loop(first, free.fired(rests), free.end(end), end, once=self.stop_after_first))

    @staticmethod
    def _split(tag: TagFormat, free: _FreeText, place: Place) -> tuple[str, str]:
        """The beginning of a tag as the trigger that fires, and the rest."""
        if not isinstance(tag.begin, str):
            raise place.error("A text triggers no tag that begins with a token", "Use token_triggered_tags")
        trigger = next(free.beginnings(tag.begin), None)
        if trigger is None:
            raise place.error(f"{tag.begin!r} begins with none of the triggers", "Add a beginning of it to triggers")
        if not free.fires(trigger):
            raise place.error(
                f"The trigger {trigger!r} never fires: another trigger, or an end, is complete before it",
                "Keep the shorter trigger",
            )
        return trigger, tag.begin[len(trigger) :]


class DispatchFormat(Format):
    """Free text in which each pattern must be followed by the format that belongs to it.

    Attributes:
        rules: pairs of a text that is searched for and the format that follows it.
        loop: after that text is free again, up to the next pattern; without it the output ends there.
        excludes: texts that may not occur in the free text.
    """

    type: Literal["dispatch"] = "dispatch"
    rules: list[tuple[str, AnyFormat]]
    loop: bool = True
    excludes: list[str] = Field(default_factory=list)

    def _followed_by(self, end: End, place: Place) -> Expr:
        patterns = [pattern for pattern, _ in self.rules]
        _refuse_empty(patterns, place.field("rules"))
        free = _FreeText.of(patterns, self.excludes, end, place)
        rests: dict[str, list[Expr]] = {pattern: [] for pattern in patterns}
        for index, (pattern, content) in enumerate(self.rules):
            at = place.field("rules").item(index)
            if not free.fires(pattern):
                raise at.item(0).error(f"{pattern!r} can never fire: it contains another pattern", "Remove one of them")
            rests[pattern].append(content._followed_by(NO_END, at.item(1)))
        return free.within(_loop(None, free.fired(rests), free.end(end), end, once=not self.loop))


class TokenTriggeredTagsFormat(Format):
    """Any tokens, among which each trigger must go on as one of the tags that begin with it.

    Attributes:
        trigger_tokens: tokens by id or name.
        tags: what they call for. The ``begin`` of each is one of these tokens.
        exclude_tokens: tokens that may not be among the free ones.
        at_least_one: the output begins with a tag.
        stop_after_first: the output ends with the first tag.
    """

    type: Literal["token_triggered_tags"] = "token_triggered_tags"
    trigger_tokens: list[TokenName]
    tags: list[TagFormat]
    exclude_tokens: list[TokenName] = Field(default_factory=list)
    at_least_one: bool = False
    stop_after_first: bool = False

    def _followed_by(self, end: End, place: Place) -> Expr:
        rests: dict[TokenName, list[Expr]] = {name: [] for name in self.trigger_tokens}
        for index, tag in enumerate(self.tags):
            at = place.field("tags").item(index)
            if not isinstance(tag.begin, TokenFormat):
                raise at.field("begin").error("A token triggers no tag that begins with text", "Use triggered_tags")
            if tag.begin.token not in rests:
                raise at.field("begin").error(
                    f"{tag.begin.label} is none of the triggers", "Add it to trigger_tokens, spelled in the same way"
                )
            rests[tag.begin.token].append(tag._after(sequence(), at))
        for index, name in enumerate(self.trigger_tokens):
            if not rests[name]:
                at = place.field("trigger_tokens").item(index)
                raise at.error(f"No tag begins with {name!r}", "Remove it, or list it in exclude_tokens")
        free = _free_tokens([*self.trigger_tokens, *self.exclude_tokens, *end.tokens])
        first = any_tag(self.tags, place) if self.at_least_one else None
        return _loop(first, _fired_tokens(free, rests), sequence(free, end.expr), end, once=self.stop_after_first)


class TokenDispatchFormat(Format):
    """Any tokens, among which certain ones must be followed by the format that belongs to them.

    Attributes:
        rules: pairs of a token, by id or name, and the format that follows it.
        loop: after that tokens are free again; without it the output ends there.
        exclude_tokens: tokens that may not be among the free ones.
    """

    type: Literal["token_dispatch"] = "token_dispatch"
    rules: list[tuple[TokenName, AnyFormat]]
    loop: bool = True
    exclude_tokens: list[TokenName] = Field(default_factory=list)

    def _followed_by(self, end: End, place: Place) -> Expr:
        rests: dict[TokenName, list[Expr]] = {}
        for index, (name, content) in enumerate(self.rules):
            at = place.field("rules").item(index).item(1)
            rests.setdefault(name, []).append(content._followed_by(NO_END, at))
        free = _free_tokens([*rests, *self.exclude_tokens, *end.tokens])
        return _loop(None, _fired_tokens(free, rests), sequence(free, end.expr), end, once=not self.loop)


#: Refers to the rule of `_FreeText.within`.
_FIRST: Expr = {"rule": "first mark"}


@dataclass(frozen=True)
class _FreeText:
    """Text up to the first occurrence of a trigger, or of the end of what is around it."""

    triggers: tuple[str, ...]
    ends: tuple[str, ...]
    excludes: tuple[str, ...]

    @classmethod
    def of(cls, triggers: Iterable[str], excludes: Sequence[str], end: End, place: Place) -> _FreeText:
        _refuse_empty(excludes, place.field("excludes"))
        free = cls(tuple(dict.fromkeys(triggers)), end.marks, tuple(excludes))
        if len(free.marks) > MOST_TRIGGERS:
            raise LimitError(
                f"The limit max_triggers={MOST_TRIGGERS} was passed (at {place.path or 'the top'})",
                hint="Take a beginning that many tags have in common as their trigger",
                limit="max_triggers",
                value=MOST_TRIGGERS,
                path=place.path,
            )
        # Each is looked for in each other one.
        if sum(map(len, free.marks)) > MOST_TRIGGER_CHARACTERS:
            raise LimitError(
                f"The limit max_trigger_characters={MOST_TRIGGER_CHARACTERS} was passed (at {place.path or 'the top'})",
                hint="A trigger is the beginning of a tag: a few characters do",
                limit="max_trigger_characters",
                value=MOST_TRIGGER_CHARACTERS,
                path=place.path,
            )
        if end.marks and not any(map(free.fires, end.marks)):
            raise place.error(
                f"The end of the tag around it, {end.marks[0]!r}, contains a trigger, so it is never reached",
                "Take another trigger",
            )
        return free

    def beginnings(self, begin: str) -> Iterator[str]:
        """The triggers that a text begins with, the shortest first."""
        return (begin[:length] for length in self._trigger_lengths if begin[:length] in self._triggers)

    def fires(self, mark: str) -> bool:
        """Whether ``mark`` can be the first to be complete: not if another one ends inside it."""
        inside = mark[:-1]
        return not any(len(other) <= len(inside) and other in inside for other in self.marks)

    @cached_property
    def marks(self) -> frozenset[str]:
        """Whatever free text ends with."""
        return frozenset((*self.triggers, *self.ends))

    @cached_property
    def _triggers(self) -> frozenset[str]:
        return frozenset(self.triggers)

    @cached_property
    def _trigger_lengths(self) -> list[int]:
        return sorted({len(trigger) for trigger in self.triggers})

    @cached_property
    def _firing(self) -> list[str]:
        return [mark for mark in (*self.triggers, *self.ends) if self.fires(mark)]

    @cached_property
    def _first(self) -> Expr:
        """Free text up to the first mark that is complete."""
        return shortest(sequence(ANY_TEXT, choice(map(text, self._firing))))

    def up_to(self, mark: str) -> Expr:
        """Free text, and ``mark`` as the first of all marks to be complete. To be used inside `within`."""
        if self._firing == [mark] and not self.excludes:
            return self._first
        return both(_FIRST, sequence(text_without(self.excludes), text(mark)))

    def within(self, body: Expr) -> Expr:
        """An expression with `up_to` in it, and what that refers to: all marks together, which are listed once."""
        return {"grammar": {"start": body, "rules": {_FIRST["rule"]: self._first}}}

    def fired(self, rests: Mapping[str, Sequence[Expr]]) -> Expr:
        """Free text, a trigger, and one of the rests that it calls for."""
        return choice(
            # Where a trigger begins is not known before it is complete: what is named is that it fired.
            sequence(self.up_to(trigger), named("trigger", trigger, EMPTY), choice(alternatives))
            for trigger, alternatives in rests.items()
            if alternatives
        )

    def end(self, end: End) -> Expr:
        """Free text without a trigger, and the end."""
        if self.ends:
            return choice(self.up_to(mark) for mark in self.ends if self.fires(mark))
        return sequence(text_without([*self.triggers, *self.excludes]), end.expr)


def _loop(first: Expr | None, fired: Expr, last: Expr, end: End, *, once: bool) -> Expr:
    """Tags in free text: ``first`` (if any) without free text before it, the others ``fired``, then ``last``."""
    if once:
        return choice([last, sequence(fired, end.expr)]) if first is None else sequence(first, end.expr)
    rest = sequence(repeat(fired), last)
    return rest if first is None else sequence(first, rest)


def _free_tokens(reserved: Iterable[TokenName]) -> Expr:
    return repeat(token(reserved, but=True))


def _fired_tokens(free: Expr, rests: Mapping[TokenName, Sequence[Expr]]) -> Expr:
    return sequence(
        free,
        choice(
            sequence(named("trigger", str(name), token([name])), choice(alternatives))
            for name, alternatives in rests.items()
        ),
    )


def _refuse_empty(texts: Sequence[str], place: Place) -> None:
    if "" in texts:
        raise place.item(texts.index("")).error("An empty text occurs everywhere", "Remove it")
