"""From messages to the tokens of a prompt.

The template's own special tokens are read as such. The same characters inside a message are not: what a user or a tool
says must not pass for the end of a turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from punchcard.chat import Message, Vocabulary
from punchcard.formats import ToolFormat
from punchcard.formats.prompt import render_prompt, with_read_arguments
from punchcard.tools import Tool

# A Unicode noncharacter, which no text holds: put into the names of special tokens, and gone again after rendering.
_BREAK = "\ufdd0"


def encode_prompt(
    model: Vocabulary,
    tool_format: ToolFormat,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    focus: Tool | None = None,
) -> list[int]:
    """The token ids of the prompt for the model's next turn; see `render_prompt`.

    Raises `ModelError` if it cannot be rendered.
    """
    return tokenize_prompt(model, safe_prompt(model, tool_format, messages, tools, focus=focus))


def safe_prompt(
    model: Vocabulary, tool_format: ToolFormat, messages: Sequence[Message], tools: Sequence[Tool], **options: Any
) -> str:
    """The text of a prompt, in which what messages hold of special tokens is broken up; ``options``: see
    `render_prompt`. Only `tokenize_prompt` can read it; `readable` mends it."""
    info = model.tokenizer_info
    specials = {info.tokens[token].decode("utf-8", "replace") for token in info.special_token_ids}
    specials |= {mark for mark in (*tool_format.markers, *tool_format.stop, *_tags(tool_format)) if mark}
    ends = [info.tokens[token].decode("utf-8", "replace") for token in model.eos_token_ids[:1]]
    # Arguments are read before: a special token may be spelled with escapes in their text.
    defused = [_defused(with_read_arguments(message), specials) for message in messages]
    return render_prompt(tool_format, model.chat_template, defused, tools, eos_token="".join(ends), **options)


def tokenize_prompt(model: Vocabulary, text: str) -> list[int]:
    """The tokens of what `safe_prompt` made."""
    tokens: list[int] = []
    for part in text.split(_BREAK):
        tokens += model.tokenize(part, parse_special=True)
    if model.bos_token_id is not None and _adds_bos(model) and tokens[:1] != [model.bos_token_id]:
        tokens.insert(0, model.bos_token_id)
    return tokens


def readable(text: str) -> str:
    """What `safe_prompt` made, as the model reads it."""
    return text.replace(_BREAK, "")


def _tags(tool_format: ToolFormat) -> list[str]:
    """What in a message could pass for a call or its end, were it not broken."""
    return [mark for mark in (tool_format.opener, tool_format.end.strip()) if mark.startswith("<")]


def _adds_bos(model: Vocabulary) -> bool:
    # Templates write the token that begins a text where the model wants one; ChatML, in place of one, does not.
    return model.chat_template is not None and "bos_token" in model.chat_template


def _defused(value: Any, specials: set[str], key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _defused(item, specials, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_defused(item, specials) for item in value]
    if not isinstance(value, str) or key == "role":
        return value
    pattern = "|".join(re.escape(name) for name in sorted(specials, key=len, reverse=True) if len(name) > 1)
    return re.sub(pattern, lambda match: match[0][0] + _BREAK + match[0][1:], value.replace(_BREAK, ""))
