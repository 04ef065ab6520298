"""Every error that Punchcard raises on purpose.

All derive from :class:`PunchcardError`. Each says what is wrong, where (as fields, so that a program can use them), and
what to do about it (``hint``). ``str(error)`` is one readable paragraph.
"""

from __future__ import annotations

from typing import Any


def extra_hint(extra: str) -> str:
    """What to do where the libraries of an extra are missing."""
    return f"In a clone, pip install -e '.[{extra}]'; where the package is published, pip install 'punchcard[{extra}]'"


class PunchcardError(Exception):
    """Base of all errors. ``hint`` is the remedy, or ``None``; ``fields`` holds what else is known of the spot."""

    def __init__(self, message: str, *, hint: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.fields = fields
        for name, value in fields.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


class SchemaError(PunchcardError):
    """A JSON Schema cannot be compiled. Fields: ``pointer`` (JSON pointer into the schema), ``keyword``."""

    pointer: str = ""
    keyword: str = ""


class InvalidSchemaError(SchemaError):
    """The schema is not JSON, or a keyword has a value that the specification does not allow."""


class UnsupportedSchemaError(SchemaError):
    """The schema is valid, but has a keyword that Punchcard cannot enforce."""


class UnsatisfiableSchemaError(SchemaError):
    """No JSON value satisfies the schema."""


class GrammarError(PunchcardError):
    """A pattern or a grammar is malformed. Fields: ``line``, ``column`` (from 1), ``excerpt``, where known."""


class LimitError(PunchcardError):
    """A limit that guards against hostile input was passed. Fields: ``limit`` (its name), ``value``."""


class CancelledError(PunchcardError):
    """The `CancelToken` of a compilation, or of a matcher, was cancelled."""


class InternalError(PunchcardError):
    """Punchcard failed inside: a bug in it, not in the input. Please report it. Field: ``operation`` (what was done).

    A matcher that was in use may be damaged: every further call on it raises this error again. Everything else goes on,
    the compiled grammar too.
    """


class TokenizerError(PunchcardError):
    """A vocabulary cannot be read, or a token id is out of range."""


class MatcherError(PunchcardError):
    """A matcher was used in a way that its state does not allow."""


class BudgetError(MatcherError):
    """A token budget is too small for any complete answer. Field: ``minimum`` (tokens), where known."""


class BudgetWarning(UserWarning):
    """An answer was cut short to be complete within its tokens: it is valid, but may not be what the model meant."""


class InputTypeError(PunchcardError, TypeError):
    """An argument is of a type that it cannot have."""


class ModelError(PunchcardError):
    """A model cannot be found, read or run."""


class DownloadError(ModelError):
    """A model could not be fetched (offline, or the checksum differs)."""


class ContextLengthError(ModelError):
    """The prompt does not fit the model's context. Fields: ``tokens``, ``context_length``."""


class ToolError(PunchcardError):
    """A tool cannot be described, loaded or called. Field: ``tool`` (its name)."""
