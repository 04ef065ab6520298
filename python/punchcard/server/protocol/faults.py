"""What is wrong with a body, in the client's words: one field, by its JSON path, and what to do about it.

Pydantic reports every branch of a union. `explain` keeps the branch that the client meant: the one whose ``type``
fits what was sent.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from punchcard.server.errors import BadRequest

Step: TypeAlias = "int | str"
Path: TypeAlias = "tuple[Step, ...]"

#: The type of the error that a body with an unknown field gets; its context has ``field`` and ``known``.
UNKNOWN_FIELD = "unknown_field"

_MOST_CHARACTERS = 100
_LONGEST_MESSAGE = 500
# Fields whose branches Pydantic names after their ``type``, which may be the name of a field inside as well.
_TAGGED = ("response_format", "format")


@dataclass(frozen=True)
class _Fault:
    """An error of Pydantic's. ``branches``: where it is inside of a union, the path there and the branch's name."""

    path: Path
    branches: tuple[tuple[Path, str], ...]
    kind: str
    message: str
    context: Mapping[str, Any]


def explain(errors: Sequence[Any], body: Any, hints: Mapping[str, str] | None = None) -> BadRequest:
    """The error that tells the most: of the branches that were meant, the first that reaches deepest into the body.

    ``hints``: what to do, by field of the body. A wrong word goes first: where it says what an object is, it is the
    reason why other fields are missing.
    """
    faults = _meant([_fault(error, body) for error in errors])
    fault = max(faults, key=lambda found: (len(found.path), found.kind == "literal_error"))
    same = [found.message for found in faults if found.path == fault.path and found.kind == fault.kind]
    message = fault.message
    if fault.kind == "literal_error" and len(same) > 1:
        words = [word for text in same for word in re.findall(r"'[^']*'", text)]
        message = f"Input should be {_listed(words)}"
    param = spell(fault.path)
    hint = (hints or {}).get(str(fault.path[0])) if fault.path else None
    if fault.kind == UNKNOWN_FIELD:
        hint = _similar(str(fault.path[-1]), fault.context["known"]) or hint
    return BadRequest(f"{param or 'The body'}: {message}", hint=hint, param=param or None, code="invalid_value")


def spell(path: Sequence[Step]) -> str:
    """A path as clients write it: ``messages[0].content``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{shorten(step)}" for step in path).lstrip(".")


def shorten(text: str) -> str:
    """The beginning of a text that a client chose, so that a message stays readable."""
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


def _fault(error: Any, body: Any) -> _Fault:
    path: list[Step] = []
    branches: list[tuple[Path, str]] = []
    here = body
    steps = error["loc"][1:]
    for index, step in enumerate(steps):
        inside = isinstance(here, Mapping) and step in here
        if inside and path and path[-1] in _TAGGED and step == here.get("type") and (tuple(path), step) not in branches:
            inside = False
        if inside or (isinstance(here, list) and isinstance(step, int) and step < len(here)):
            path.append(step)
            here = here[step]
        elif index == len(steps) - 1 and error["type"] == "missing":
            path.append(step)
        else:
            branches.append((tuple(path), str(step)))
    context = error.get("ctx") or {}
    if "field" in context:  # an error of ours, which is found where the object is
        path.append(context["field"])
    return _Fault(tuple(path), tuple(branches), error["type"], _plain(str(error["msg"])), context)


def _plain(message: str) -> str:
    """Pydantic's words without what a client knows nothing of."""
    message = re.sub(r"dictionary or (instance of \w+|object to extract fields from)", "dictionary", message)
    message = message.replace("dictionary", "dictionary (a JSON object)").replace(" after validation", "")
    message = message.replace("Unable to extract tag using discriminator 'type'", "The field type is missing")
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."


def _meant(faults: Sequence[_Fault]) -> list[_Fault]:
    """The faults of the branches that were meant, where there are unions."""
    kept = list(faults)
    for place in dict.fromkeys(branch[0] for fault in faults for branch in fault.branches):
        ranks: dict[str, int] = {}
        for fault in kept:
            for name in (branch[1] for branch in fault.branches if branch[0] == place):
                ranks[name] = max(ranks.get(name, 0), _strangeness(fault, place))
        if not ranks:
            continue
        best = min(ranks.values())
        strange = {(place, name) for name, rank in ranks.items() if rank > best}
        kept = [fault for fault in kept if not strange.intersection(fault.branches)]
    return kept


def _strangeness(fault: _Fault, place: Path) -> int:
    """How far a branch of the union at ``place`` is from what was sent: 2 for another shape, 1 for another ``type``."""
    if fault.path == place and (fault.kind.endswith("_type") or fault.kind == "literal_error"):
        return 2
    named = fault.path == (*place, "type") and fault.kind in ("literal_error", "missing")
    return 1 if named else 0


def _similar(name: str, known: Sequence[str]) -> str | None:
    """What may have been meant by a field that is not known."""
    close = difflib.get_close_matches(name[:_MOST_CHARACTERS], known, n=1, cutoff=0.7)
    return f"Did you mean {close[0]}?" if close else None


def _listed(words: Sequence[str]) -> str:
    words = list(dict.fromkeys(words))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
