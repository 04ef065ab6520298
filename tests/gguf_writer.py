"""A writer of GGUF headers for tests, as the format's description has them; only metadata, no tensors."""

from __future__ import annotations

import struct
from typing import Any

UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 4, 5, 6, 7, 8, 9, 10
_CODES = {UINT32: "I", INT32: "i", FLOAT32: "f", BOOL: "?", UINT64: "Q"}


def header(pairs: dict[str, tuple[int, Any]], *, version: int = 3, order: str = "<", count: int | None = None) -> bytes:
    """A file of ``pairs``: type and value by key; the value of an array is its element type and its elements."""
    size = "I" if version == 1 else "Q"

    def string(text: str | bytes) -> bytes:
        data = text.encode() if isinstance(text, str) else text
        return struct.pack(order + size, len(data)) + data

    def value(kind: int, content: Any) -> bytes:
        if kind == STRING:
            return string(content)
        if kind == ARRAY:
            inner, items = content
            head = struct.pack(f"{order}I{size}", inner, len(items))
            return head + b"".join(value(inner, item) for item in items)
        return struct.pack(order + _CODES[kind], content)

    out = b"GGUF" + struct.pack(f"{order}I{size}{size}", version, 0, len(pairs) if count is None else count)
    return out + b"".join(string(k) + struct.pack(order + "I", kind) + value(kind, v) for k, (kind, v) in pairs.items())


def vocabulary(model: str, tokens: list[Any], types: list[int] | None, **ids: int) -> dict[str, tuple[int, Any]]:
    """The pairs of a tokenizer; ``ids`` are keys such as ``eos_token_id``."""
    pairs: dict[str, tuple[int, Any]] = {
        "general.architecture": (STRING, "llama"),
        "tokenizer.ggml.model": (STRING, model),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, tokens)),
    }
    if types is not None:
        pairs["tokenizer.ggml.token_type"] = (ARRAY, (INT32, types))
    return pairs | {f"tokenizer.ggml.{key}": (UINT32, i) for key, i in ids.items()}
