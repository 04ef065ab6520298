"""Vocabularies: what a token id stands for, from whatever source a model comes with.

:class:`TokenizerInfo` is the one class to know. ``docs/tokenizers.md`` tells how each source is read.
"""

from __future__ import annotations

from .info import TokenizerInfo

__all__ = ["TokenizerInfo"]
