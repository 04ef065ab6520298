"""Tool formats: how each model family reads tools, writes calls and takes results.

`base` says what an entry is, `families` holds the entries. From an entry follow the prompt (`prompt`), the text of
calls (`writing`), the grammar of an answer (`grammar`) and its parser (`parser`); `detection` finds the entry.
"""

from __future__ import annotations

from punchcard.chat import Call, Message
from punchcard.formats.base import ToolFormat
from punchcard.formats.detection import detect_format, get_format
from punchcard.formats.families import FORMATS

__all__ = ["FORMATS", "Call", "Message", "ToolFormat", "detect_format", "get_format"]
