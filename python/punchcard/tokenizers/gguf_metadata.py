"""The metadata of a GGUF file: the key-value pairs in front of its tensors.

A GGUF file begins with ``GGUF``, a version, the number of tensors and of pairs; a pair is a key, a type and a
value. Only this header is touched (the file is mapped, not read), so a model of many gigabytes opens in no time.
Nothing in the file is believed: each length is held against the bytes that are left, so that a damaged or hostile
file ends in a :class:`~punchcard.errors.ModelError`, not in an allocation of what it claims to hold.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ModelError

_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_MAX_DEPTH = 4  # of arrays in arrays; no known file has any


def read_metadata(path: str | os.PathLike[str], wanted: Callable[[str], bool] = lambda key: True) -> dict[str, Any]:
    """The pairs of the file at ``path`` whose key is ``wanted``; the others are skipped over.

    Numbers and booleans come as Python's, strings as ``str`` (bytes that are no UTF-8 as lone surrogates), arrays
    as lists.

    Raises :class:`~punchcard.errors.ModelError` where the file is missing, no GGUF, or cut short.
    """
    name = os.fspath(path)
    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(data, name).metadata(wanted)
    except OSError as error:
        raise ModelError(f"cannot read {name}: {error.strerror or error}", path=name) from error
    except ValueError as error:  # An empty file cannot be mapped.
        raise ModelError(f"{name} is empty", path=name) from error


class _Reader:
    def __init__(self, data: mmap.mmap, name: str) -> None:
        self.data = data
        self.name = name
        self.position = 0
        self.order = "<"
        self.length_format = "Q"

    def metadata(self, wanted: Callable[[str], bool]) -> dict[str, Any]:
        if self.take(4) != _MAGIC:
            raise ModelError(f"{self.name} is no GGUF file", hint="Its first bytes should be GGUF", path=self.name)
        version = self.number("I")
        if not version & 0xFFFF:  # A big-endian machine wrote it.
            self.order = ">"
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in (1, 2, 3):
            raise ModelError(f"{self.name} is a GGUF file of the unknown version {version}", path=self.name)
        if version == 1:
            self.length_format = "I"
        self.length()  # of the list of tensors, which follows the pairs
        found: dict[str, Any] = {}
        for _ in range(self.length()):
            key = self.string()
            kind = self.number("I")
            value = self.value(kind, keep := wanted(key))
            if keep:
                found[key] = value
        return found

    def value(self, kind: int, keep: bool, depth: int = 0) -> Any:
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            return self.number(self.format(kind))
        if depth == _MAX_DEPTH:
            raise ModelError(f"{self.name} is damaged: arrays nested too deep", path=self.name)
        kind, count = self.number("I"), self.length()
        if kind == _STRING:
            return self.strings(count, keep)
        if kind == _ARRAY:
            self.need(count * 12)
            return [self.value(kind, keep, depth + 1) for _ in range(count)]
        packed = self.take(count * struct.calcsize("=" + self.format(kind)))
        return list(struct.unpack(f"{self.order}{count}{self.format(kind)}", packed)) if keep else None

    def strings(self, count: int, keep: bool) -> list[str]:
        # The vocabulary and its merges are most of a header, some 500,000 strings: worth a loop without calls.
        unpack = struct.Struct(self.order + self.length_format).unpack_from
        width, data, position, end = struct.calcsize(self.length_format), self.data, self.position, len(self.data)
        self.need(count * width)
        out: list[str] = []
        for _ in range(count):
            if position + width > end:
                raise self.cut_short()
            start = position + width
            position = start + unpack(data, position)[0]
            if position > end:
                raise self.cut_short()
            if keep:
                out.append(data[start:position].decode("utf-8", "surrogateescape"))
        self.position = position
        return out

    def string(self) -> str:
        return self.take(self.length()).decode("utf-8", "surrogateescape")

    def length(self) -> int:
        return int(self.number(self.length_format))

    def number(self, code: str) -> Any:
        return struct.unpack(self.order + code, self.take(struct.calcsize("=" + code)))[0]

    def format(self, kind: int) -> str:
        if kind not in _FORMATS:
            raise ModelError(f"{self.name} is damaged: unknown value type {kind}", path=self.name)
        return _FORMATS[kind]

    def take(self, size: int) -> bytes:
        self.need(size)
        start, self.position = self.position, self.position + size
        return self.data[start : self.position]

    def need(self, size: int) -> None:
        if size > len(self.data) - self.position:
            raise self.cut_short()

    def cut_short(self) -> ModelError:
        return ModelError(
            f"{self.name} is cut short: its metadata goes on past the end of the file",
            hint="Fetch the file again",
            path=self.name,
        )
