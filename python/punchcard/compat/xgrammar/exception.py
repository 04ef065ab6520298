"""XGrammar's errors. Each is a `PunchcardError` too."""

from __future__ import annotations

from ...errors import GrammarError, PunchcardError


class NotCoveredError(PunchcardError, RuntimeError):
    """A part of XGrammar that this layer does not cover was used. ``hint`` says what to use instead."""


class InvalidStructuralTagError(GrammarError, RuntimeError):
    """The structural tag is invalid. Field: ``path``."""


class InvalidJSONError(PunchcardError, RuntimeError):
    """The text is not JSON."""


class DeserializeFormatError(PunchcardError, RuntimeError):
    """The text is JSON, but was not written by ``serialize_json``, or belongs to another tokenizer."""


class DeserializeVersionError(PunchcardError, RuntimeError):
    """The text was written by another version of ``serialize_json``."""
