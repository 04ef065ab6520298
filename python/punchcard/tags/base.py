"""What all formats of structural tags have in common: where they stand, what ends them, and how they refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import GrammarError, LimitError, PunchcardError, SchemaError
from .expressions import Expr, TokenName, choice, sequence, text, token

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

#: Formats within each other; deeper ones are refused.
MAX_DEPTH = 100


@dataclass(frozen=True)
class Place:
    """Where in a structural tag something stands, such as ``format.elements[1].tags[0].begin``."""

    path: str = ""
    depth: int = 0

    def field(self, name: str) -> Place:
        place = replace(self, path=f"{self.path}.{name}" if self.path else name, depth=self.depth + 1)
        if place.depth > MAX_DEPTH:
            raise place.error(f"Formats are nested more than {MAX_DEPTH} deep", "Use a grammar with rules instead")
        return place

    def item(self, index: int) -> Place:
        return replace(self, path=f"{self.path}[{index}]")

    def error(self, problem: str, hint: str) -> GrammarError:
        """The error to raise about what stands here."""
        return GrammarError(f"{problem} (at {self.path or 'the top'})", hint=hint, path=self.path)

    def of(self, error: PunchcardError) -> PunchcardError:
        """An error of something inside, with this place added to what it says."""
        kind = type(error) if isinstance(error, (SchemaError, LimitError)) else GrammarError
        fields = {**error.fields, "path": self.path}
        return kind(f"{error.message} (at {self.path or 'the top'})", hint=error.hint, **fields)

    @contextmanager
    def around(self) -> Iterator[None]:
        """Adds this place to the errors of what is read inside."""
        try:
            yield
        except PunchcardError as error:
            raise self.of(error) from None


@dataclass(frozen=True)
class End:
    """What follows a format: nothing, one of these texts, or a token.

    Free text in front of a text runs until its *first* occurrence. An end that may be empty, or is a token, cannot be
    searched for in text; then free text is followed by it as anything else is.
    """

    texts: tuple[str, ...] = ()
    token: TokenName | None = None

    @property
    def expr(self) -> Expr:
        if self.token is not None:
            return token([self.token])
        return choice(map(text, self.texts)) if self.texts else sequence()

    @property
    def marks(self) -> tuple[str, ...]:
        """The texts whose first occurrence ends free text."""
        return () if "" in self.texts else self.texts

    @property
    def tokens(self) -> tuple[TokenName, ...]:
        """The tokens that end a run of tokens."""
        return () if self.token is None else (self.token,)


NO_END = End()


class _Refusing(ModelMetaclass):
    """Makes what Pydantic refuses in a model that is built in Python a `GrammarError`, as in one that is read."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        try:
            return super().__call__(*args, **fields)
        except ValidationError as error:
            raise refusal(error, fields) from None


class Format(BaseModel, metaclass=_Refusing):
    """A set of texts: one node of a structural tag."""

    model_config = ConfigDict(extra="forbid")

    def to_expr(self) -> Expr:
        """The grammar expression of the format, as JSON data.

        Raises:
            GrammarError: the format is malformed or cannot be enforced; ``path`` says where.
        """
        return self._followed_by(NO_END, Place())

    def _followed_by(self, end: End, place: Place) -> Expr:
        """The format, and what follows it. Those that hold free text at their end search it for ``end``."""
        return sequence(self._expr(place), end.expr)

    def _expr(self, place: Place) -> Expr:
        raise NotImplementedError


def refusal(error: ValidationError, value: Any, root: str = "") -> GrammarError:
    """The first complaint of Pydantic, as an error that names the path inside ``value``."""
    details = error.errors(include_url=False)[0]
    place, inside = Place(root), value
    if details["type"] in ("recursion_depth_exceeded", "recursion_loop"):
        return place.error("Formats are nested too deeply", "Use a grammar with rules instead")
    for step in details["loc"]:
        # Pydantic's path also names the members of unions that it tried; they are no steps into the value.
        if isinstance(step, int) and isinstance(inside, Sequence) and not isinstance(inside, str):
            place, inside = place.item(step), inside[step] if step < len(inside) else None
        elif isinstance(inside, dict) and step in inside:
            place, inside = replace(place, path=f"{place.path}.{step}" if place.path else str(step)), inside[step]
    if details["type"] == "missing":
        return place.error(f"{details['loc'][-1]!r} is missing", "Add it")
    if details["type"] == "extra_forbidden":
        return place.error("There is no such field", "Remove it, or mend its spelling")
    if details["type"] == "union_tag_not_found":
        return place.error("'type' is missing", 'Say which format it is, as {"type": "any_text"}')
    if details["type"] == "union_tag_invalid":
        return place.error(
            f"There is no format {details['ctx']['tag']!r}", f"Known are {details['ctx']['expected_tags']}"
        )
    return place.error(details["msg"].removeprefix("Value error, "), f"It is {str(details['input'])[:60]!r}")
