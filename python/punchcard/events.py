"""What a matcher tells of a text while it is written."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Event(NamedTuple):
    """A named part of the grammar, or a member of a JSON object, begins or ends.

    Attributes:
        kind: ``"rule"``, ``"tag"``, ``"trigger"``, ... as the grammar names it; ``"property"`` for a member of a JSON
            object.
        name: of the rule, tag or trigger; for a property the JSON pointer to it from the value that it is in.
        what: ``"begin"`` or ``"end"``.
        position: the byte of the text at which it begins, or behind its last byte. Special tokens that the grammar asks
            for are no text and do not count.
    """

    kind: str
    name: str
    what: Literal["begin", "end"]
    position: int
