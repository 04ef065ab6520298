"""Which family is a model of? By its chat template, the tokens of its vocabulary, and its name."""

from __future__ import annotations

import re
from collections.abc import Container
from difflib import get_close_matches

from punchcard.errors import PunchcardError
from punchcard.formats.base import ToolFormat
from punchcard.formats.families import FORMATS

#: Where nothing tells the family: the most common format.
_DEFAULT = "qwen_json"


def detect_format(chat_template: str | None, model_name: str = "", tokens: Container[str] = ()) -> ToolFormat:
    """The format of a model: the one with the most evidence.

    ``chat_template``: counts most, as it says what the model was trained to read; ``tokens``: the names of its special
    and added tokens; ``model_name``: counts least, since anybody may name a file.
    """
    words = re.sub(r"[\s_/()]+", "-", model_name.lower())
    scores = {name: _evidence(entry, chat_template or "", words, tokens) for name, entry in FORMATS.items()}
    best = max(scores, key=lambda name: scores[name])
    return FORMATS[best if any(scores[best]) else _DEFAULT]


def get_format(name: str) -> ToolFormat:
    """A format by its name. Raises `PunchcardError` for an unknown one."""
    try:
        return FORMATS[name]
    except KeyError:
        close = get_close_matches(name, FORMATS, 3)
        known = f"Did you mean {' or '.join(close)}?" if close else f"Known are {', '.join(FORMATS)}"
        raise PunchcardError(f"There is no tool format {name!r}", hint=known) from None


def _evidence(entry: ToolFormat, template: str, name: str, tokens: Container[str]) -> tuple[int, int, int]:
    """Characters of the template, of tokens and of the name that tell of the family."""
    marks = entry.detection
    in_template = max(
        (sum(map(len, texts)) for texts in marks.template if all(text in template for text in texts)), default=0
    )
    in_tokens = sum(len(token) for token in marks.tokens if token in tokens)
    in_name = max((len(part) for part in marks.names if _holds(name, part)), default=0)
    return in_template, in_tokens, in_name


#: Parts of names that are as short stand at the beginning of a word, or they would be found by chance.
_SHORT = 5


def _holds(name: str, part: str) -> bool:
    """Whether a model's name has this part. A dot in a version may be spelled as a dash, if no size stands there."""
    if len(part) > _SHORT:
        spelled = re.escape(part.replace(".", "-"))
        return part in name or ("." in part and re.search(rf"{spelled}(?![0-9b]|[.][0-9])", name) is not None)
    ends = "(?![a-z])" if part[-1].isalpha() else ""
    return re.search(rf"(?<![a-z0-9]){re.escape(part)}{ends}", name) is not None
