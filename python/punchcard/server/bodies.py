"""Bodies as JSON values and as requests. Everything is bounded before it is done: bytes, values, errors."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from pydantic import ValidationError

from punchcard.server.errors import BadRequest
from punchcard.server.lanes import Lane
from punchcard.server.options import ServerOptions
from punchcard.server.protocol.common import Body
from punchcard.server.protocol.faults import explain, spell

Kind = TypeVar("Kind", bound=Body)

# Beyond these a body is read apart from small ones.
_SMALL_BYTES = 256 << 10
_SMALL_VALUES = 4_000
_THREADS = 2
# The escape of a half of a surrogate pair; most have their other half beside them.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_WAITING = 64


class Reader:
    """Reads bodies in threads: small ones in a lane of their own, so that they never wait for a large one."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._small = Lane("read", _THREADS, waiting=4 * _WAITING)
        self._large = Lane("read-large", 1, waiting=_WAITING, pauses=True)

    def lane(self, body: bytes) -> Lane:
        """Where the body is read, and where what follows from it is worked out."""
        small = len(body) <= _SMALL_BYTES and _most_values(body) <= _SMALL_VALUES
        return self._small if small else self._large

    async def read(self, body: bytes, kind: type[Kind]) -> Kind:
        """The body as a request. Raises `BadRequest` if it is none."""
        return await self.lane(body).run(lambda: parse(body, kind, self._options.max_request_values))

    def close(self) -> None:
        self._small.close()
        self._large.close()


def parse(body: bytes, kind: type[Kind], most_values: int) -> Kind:
    """The body as a request. Raises `BadRequest` for the first thing that is wrong with it."""
    if _most_values(body) > most_values and (found := _count_values(body)) > most_values:
        raise BadRequest(
            f"The body holds {found} JSON values; this server reads at most {most_values}",
            hint="Send less at a time",
            code="limit_exceeded",
        )
    value = _load(body)
    if _HALF.search(body):
        _refuse_halves(value)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        found_errors = error.errors(include_url=False, include_input=False)
        # Where nothing is a location, the body itself is wrong.
        located = [{**found, "loc": ("body", *found["loc"])} for found in found_errors]
        raise explain(located, value, kind.HINTS) from None


def _load(body: bytes) -> Any:
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        raise BadRequest(
            f"The body is not JSON: line {error.lineno}, column {error.colno}: {error.msg}", code="invalid_json"
        ) from None
    except UnicodeDecodeError:
        raise BadRequest("The body is not JSON: it is not UTF-8", code="invalid_json") from None
    except RecursionError:
        raise BadRequest(
            "The body is nested too deeply to be read as JSON", hint="Nest less", code="invalid_json"
        ) from None
    except ValueError:  # integers of thousands of digits
        raise BadRequest("The body is not JSON: a number has too many digits", code="invalid_json") from None


def _refuse_halves(value: Any) -> None:
    """Raises `BadRequest` for half of a surrogate pair, which is no character and could not be sent back."""
    if _is_broken(value):
        param = spell(_path_of_half(value)) or None
        raise BadRequest(
            f"{param or 'The body'}: this holds half of a surrogate pair, which is no character",
            hint="Send both halves, or the character itself",
            param=param,
            code="invalid_text",
        )


def _path_of_half(value: Any) -> list[int | str]:
    """The path to the value, or to the object with the name, that holds one."""
    path: list[int | str] = []
    while isinstance(value, (dict, list)):
        if isinstance(value, dict) and any(map(_is_broken, value)):
            return path
        members = value.items() if isinstance(value, dict) else enumerate(value)
        step, value = next((step, member) for step, member in members if _is_broken(member))
        path.append(step)
    return path


def _is_broken(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _most_values(body: bytes) -> int:
    """At least as many values as the body has; text may look like them."""
    return 1 + body.count(b",") + body.count(b"[") + body.count(b"{")


def _count_values(body: bytes) -> int:
    """The values of a body, strings left out of the count of what separates values."""
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return _most_values(b"".join(bare.split(b'"')[::2]))
