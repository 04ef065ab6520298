"""Formats made of others: one after the other, alternatives, repetitions, and tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import NonNegativeInt

from .base import NO_END, End, Format, Place
from .expressions import EMPTY, Expr, choice, named, optional, repeat, sequence, text
from .leaves import TokenFormat

if TYPE_CHECKING:
    from . import AnyFormat


class SequenceFormat(Format):
    """Its elements, one after the other."""

    type: Literal["sequence"] = "sequence"
    elements: list[AnyFormat]

    def _followed_by(self, end: End, place: Place) -> Expr:
        places = [place.field("elements").item(index) for index in range(len(self.elements))]
        ends = [NO_END] * (len(self.elements) - 1) + [end]
        if not self.elements:
            return end.expr
        return sequence(*(e._followed_by(what, at) for e, what, at in zip(self.elements, ends, places, strict=True)))


class OrFormat(Format):
    """One of its elements."""

    type: Literal["or"] = "or"
    elements: list[AnyFormat]

    def _followed_by(self, end: End, place: Place) -> Expr:
        if not self.elements:
            raise place.field("elements").error("There is no alternative", "Give at least one element")
        return choice(
            element._followed_by(end, place.field("elements").item(index))
            for index, element in enumerate(self.elements)
        )


class OptionalFormat(Format):
    """Its content, or nothing."""

    type: Literal["optional"] = "optional"
    content: AnyFormat

    def _followed_by(self, end: End, place: Place) -> Expr:
        if end is NO_END:
            return optional(self.content._followed_by(end, place.field("content")))
        return choice([self.content._followed_by(end, place.field("content")), end.expr])


class StarFormat(Format):
    """Its content, any number of times."""

    type: Literal["star"] = "star"
    content: AnyFormat

    def _expr(self, place: Place) -> Expr:
        return repeat(self.content._followed_by(NO_END, place.field("content")))


class PlusFormat(Format):
    """Its content, at least once."""

    type: Literal["plus"] = "plus"
    content: AnyFormat

    def _expr(self, place: Place) -> Expr:
        return repeat(self.content._followed_by(NO_END, place.field("content")), 1)


class RepeatFormat(Format):
    """Its content, ``min`` to ``max`` times; with ``max`` -1, any number of times from ``min`` on."""

    type: Literal["repeat"] = "repeat"
    min: NonNegativeInt
    max: int
    content: AnyFormat

    def _expr(self, place: Place) -> Expr:
        if self.max != -1 and self.max < self.min:
            raise place.field("max").error(
                f"max is {self.max}, less than min, {self.min}", "Raise it; -1 is for any number"
            )
        body = self.content._followed_by(NO_END, place.field("content"))
        return repeat(body, self.min, None if self.max == -1 else self.max)


class TagFormat(Format):
    """``begin``, ``content``, ``end``. The matcher reports it as an event of kind ``tag``, named after its beginning.

    Attributes:
        begin: a text, or a token.
        content: any format. Free text at its end runs until the first occurrence of ``end``.
        end: a text, one of several texts, or a token; an empty text for none.
    """

    type: Literal["tag"] = "tag"
    begin: str | TokenFormat
    content: AnyFormat
    end: str | list[str] | TokenFormat

    @property
    def label(self) -> str:
        """What the tag is called in events."""
        return self.begin if isinstance(self.begin, str) else self.begin.label

    def _expr(self, place: Place) -> Expr:
        begin = text(self.begin) if isinstance(self.begin, str) else self.begin._expr(place)
        return self._after(begin, place)

    def _after(self, begin: Expr, place: Place) -> Expr:
        """The tag with this in place of its beginning."""
        content = self.content._followed_by(self._end(place.field("end")), place.field("content"))
        return named("tag", self.label, sequence(begin, content))

    def _end(self, place: Place) -> End:
        if isinstance(self.end, TokenFormat):
            return End(token=self.end.token)
        texts = [self.end] if isinstance(self.end, str) else self.end
        if not texts:
            raise place.error("There is no end", "Give at least one text; an empty text stands for none")
        return End(tuple(texts))


class TagsWithSeparatorFormat(Format):
    """Tags with a separator between them, and nothing else.

    Attributes:
        tags: the tags, each as often as the model likes.
        separator: the text between two of them.
        at_least_one: there is a tag.
        stop_after_first: there are no two.
    """

    type: Literal["tags_with_separator"] = "tags_with_separator"
    tags: list[TagFormat]
    separator: str
    at_least_one: bool = False
    stop_after_first: bool = False

    def _expr(self, place: Place) -> Expr:
        one = any_tag(self.tags, place)
        more = EMPTY if self.stop_after_first else repeat(sequence(text(self.separator), one))
        some = sequence(one, more)
        return some if self.at_least_one else optional(some)


def any_tag(tags: Sequence[TagFormat], place: Place) -> Expr:
    """One of these tags."""
    if not tags:
        raise place.field("tags").error("There are no tags", "Give at least one")
    return choice(tag._expr(place.field("tags").item(index)) for index, tag in enumerate(tags))
