"""What a request is refused with: statuses, and bodies as clients of OpenAI's API read them."""

from __future__ import annotations

import json
from typing import Any

from punchcard.errors import (
    BudgetError,
    ContextLengthError,
    GrammarError,
    InternalError,
    InvalidSchemaError,
    LimitError,
    ModelError,
    PunchcardError,
    SchemaError,
    ToolError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)


class ApiError(PunchcardError):
    """A request cannot be served.

    ``status``: of HTTP; ``code``: for programs; ``param``: the field of the request that is to blame; ``retry_after``:
    seconds after which it may be tried again.
    """

    status: int = 400
    type: str = "invalid_request_error"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.param = param
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """The body of the answer."""
        # A message may quote what cannot be encoded.
        message = str(self).encode("utf-8", "replace").decode()
        error = {"message": message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": error}


class BadRequest(ApiError):
    """The request itself is wrong."""


class Unauthorized(ApiError):
    """The API key is missing or wrong."""

    status = 401
    type = "authentication_error"


class NotFound(ApiError):
    """There is no such model, or path."""

    status = 404


class MethodNotAllowed(ApiError):
    """The path is there, but not for this method."""

    status = 405


class TooLate(ApiError):
    """The request did not come in time."""

    status = 408
    type = "timeout_error"


class TooLarge(ApiError):
    """The request has more bytes than the server reads."""

    status = 413


class Busy(ApiError):
    """As many requests wait as may."""

    status = 429
    type = "rate_limit_error"


class Failed(ApiError):
    """The server is at fault."""

    status = 500
    type = "server_error"


class Unavailable(ApiError):
    """The server cannot serve now."""

    status = 503
    type = "server_error"


class Overdue(ApiError):
    """The request took longer than it may."""

    status = 504
    type = "timeout_error"


_CODES: tuple[tuple[type[PunchcardError], str], ...] = (
    (UnsatisfiableSchemaError, "unsatisfiable_schema"),
    (UnsupportedSchemaError, "unsupported_schema"),
    (InvalidSchemaError, "invalid_schema"),
    (SchemaError, "invalid_schema"),
    (GrammarError, "invalid_grammar"),
    (LimitError, "limit_exceeded"),
    (BudgetError, "max_tokens_too_small"),
    (ContextLengthError, "context_length_exceeded"),
    (ToolError, "invalid_tool"),
)


def refusal(error: Exception) -> ApiError:
    """What a client is told of an error: what is wrong with the request, where and what to do; of what is wrong with
    the server, nothing but that it is."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, UnicodeEncodeError):
        return BadRequest("The request holds half of a surrogate pair, which is no character", code="invalid_text")
    for kind, code in _CODES:
        if isinstance(error, kind):
            return BadRequest(_located(error), hint=error.hint, code=code)
    if isinstance(error, MemoryError):
        return Unavailable("The server has no memory left for this request", hint="Try again later", retry_after=5)
    if isinstance(error, PunchcardError) and not isinstance(error, (ModelError, InternalError)):
        return BadRequest(error.message, hint=error.hint)
    return Failed("The server failed to answer; its log says why", code="internal_error")


def _located(error: PunchcardError) -> str:
    """The message with what else is known of the spot."""
    places = {name: error.fields.get(name) for name in ("tool", "pointer", "path", "line", "column")}
    unsaid = [
        f"{name} {json.dumps(value)}"
        for name, value in places.items()
        if value not in (None, "") and str(value) not in error.message
    ]
    return f"{error.message} ({', '.join(unsaid)})" if unsaid else error.message
