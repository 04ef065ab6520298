"""Tekken, Mistral's own format: a JSON file of pieces in base 64.

The special tokens come first: ids 0 to ``default_num_special_tokens`` - 1, named in ``special_tokens`` (newer
files) or by a fixed list (older ones). The piece of rank r has the id after them. A file may hold more pieces than
the model uses; ``default_vocab_size`` cuts them off.
"""

from __future__ import annotations

import base64
import os
from typing import Any

from ..errors import TokenizerError
from .pieces import utf8
from .table import MAX_VOCAB_SIZE, PathLike, TokenTable, parse_object, read_bytes

_END = "</s>"
# What files without a list of their own mean.
# fmt: off
_FIRST_NAMES = [
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
]
# fmt: on


def read(path: PathLike) -> TokenTable:
    """A table of the ``tekken.json`` at ``path``."""
    name = os.fspath(path)
    return read_object(parse_object(read_bytes(path), name), name)


def read_object(data: dict[str, Any], name: str) -> TokenTable:
    """A table of a parsed file; ``name`` is what errors call it."""
    try:
        config = data["config"]
        size, reserved = int(config["default_vocab_size"]), int(config["default_num_special_tokens"])
        if not 0 <= reserved <= size <= MAX_VOCAB_SIZE:
            raise ValueError(f"{reserved} special tokens of {size}")
        table = TokenTable([b""] * size)
        for i in range(reserved):
            table.add(i, utf8(f"<SPECIAL_{i}>"), special=True)
        listed = data.get("special_tokens")
        named = enumerate(_FIRST_NAMES) if listed is None else ((int(t["rank"]), str(t["token_str"])) for t in listed)
        for token_id, text in named:
            if token_id < reserved:
                table.add(token_id, utf8(text), special=True)
                if text == _END:
                    table.add_end(token_id)
        for token in data["vocab"]:
            token_id = reserved + int(token["rank"])
            if token_id < size:
                table.add(token_id, base64.b64decode(token["token_bytes"], validate=True))
    except (KeyError, TypeError, ValueError) as error:
        raise TokenizerError(f"{name} is not a Tekken tokenizer: {type(error).__name__}: {error}") from error
    return table
