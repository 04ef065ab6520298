"""Where documents come from: files with one document a row, or anything that can be iterated over.

A record is a text, or a mapping with the text in one of its columns. A record that holds no text is still a document:
it gets its row in the output, with the error in it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from punchcard.batch.answers import Failure
from punchcard.errors import PunchcardError, extra_hint

#: The columns that a row of the output has of its own.
RESERVED = ("index", "output", "error")


@dataclass(frozen=True)
class Document:
    """A document: its place in the source, from 0; its text, or why it has none; the columns kept for the output."""

    index: int
    text: str | Failure
    kept: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """Documents that can be read again and again. ``name``: how messages call them."""

    name: str
    records: Callable[[], Iterator[Any]]
    text_column: str
    keep: Sequence[str]

    def read(self) -> Iterator[Document]:
        for index, record in enumerate(self.records()):
            yield self._document(index, record)

    def survey(self) -> tuple[int, str]:
        """How many documents there are, and a SHA-256 of all that is read of them.

        Raises `PunchcardError` if no document has a text, or a column that is to be kept.
        """
        digest, count, texts, missing = hashlib.sha256(), 0, False, set(self.keep)
        for document in self.read():
            failed = isinstance(document.text, Failure)
            fields = [document.text.to_dict() if isinstance(document.text, Failure) else document.text, document.kept]
            digest.update(json.dumps(fields, sort_keys=True).encode() + b"\n")
            count += 1
            texts = texts or not failed
            missing.difference_update(document.kept)
        if count and (missing or not texts):
            raise self._lacks(min(missing, default=self.text_column))
        return count, digest.hexdigest()

    def _lacks(self, column: str) -> PunchcardError:
        first = next(self.records())
        if isinstance(first, Failure):
            return PunchcardError(f"No document of {self.name} can be read. {first.message}")
        columns = ", ".join(map(repr, first)) if isinstance(first, Mapping) else "no columns"
        return PunchcardError(
            f"No document of {self.name} has a {column!r}",
            hint=f"The first has {columns}. The column with the text is chosen by text_column",
        )

    def _document(self, index: int, record: Any) -> Document:
        if isinstance(record, Failure):
            return Document(index, record)
        if isinstance(record, str):
            return Document(index, record)
        if not isinstance(record, Mapping):
            return Document(index, _failure(f"The document is {_kind(record)}, neither a text nor an object"))
        kept = {name: _plain(record[name]) for name in self.keep or ("id",) if name in record}
        text = record.get(self.text_column)
        if isinstance(text, str):
            return Document(index, text, kept)
        if text is None:
            return Document(index, _failure(f"The document has no {self.text_column!r}"), kept)
        return Document(index, _failure(f"{self.text_column!r} is {_kind(text)}, not a text"), kept)


def open_source(
    source: str | os.PathLike[str] | Iterable[Any], text_column: str = "text", keep: Sequence[str] = ()
) -> Source:
    """The documents of a ``.jsonl``, ``.csv``, ``.txt`` (one a line) or ``.parquet`` file, or of an iterable of texts
    and mappings, which is read into memory. Blank lines of a ``.jsonl`` or ``.txt`` file are no documents.

    ``keep``: columns that are copied to the output; if none is named, ``id`` where a document has it.

    Raises `PunchcardError` for a file that cannot be read as what its name says.
    """
    for name in keep:
        if name in RESERVED:
            raise PunchcardError(f"The column {name!r} cannot be kept: the output has one of its own by that name")
    if not isinstance(source, (str, os.PathLike)):
        documents = list(source)
        return Source("the source", lambda: iter(documents), text_column, keep)
    path = Path(source)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise PunchcardError(f"{path} is of no known kind", hint=f"Give a file of {', '.join(sorted(_READERS))}")
    if not path.is_file():
        raise PunchcardError(f"There is no file {path}")
    columns = [text_column, *(keep or ("id",))]
    return Source(str(path), lambda: reader(path, columns), text_column, keep)


def _read_jsonl(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    for number, line in _lines(path):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            yield _failure(f"Line {number} is not JSON: {error}")


def _read_txt(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    for number, line in _lines(path):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            yield _failure(f"Line {number} is not UTF-8: {error}")


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, without their ends, with their numbers from 1."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.isspace() and line:
                yield number, line.rstrip(b"\r\n")


def _read_csv(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    # The module's own limit, 128 kB a field, is below many a document. It can only be set for the whole process.
    csv.field_size_limit(max(csv.field_size_limit(), min(sys.maxsize, 2**31 - 1)))
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        try:
            yield from rows
        except (csv.Error, UnicodeDecodeError) as error:
            raise PunchcardError(f"{path} cannot be read near line {rows.line_num}: {error}") from error


def _read_parquet(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise PunchcardError(f"{path} wants pyarrow to be read", hint=extra_hint("parquet")) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            present = file.schema_arrow.names
            # Where the text is absent, all columns: a message shall name them.
            wanted = [name for name in columns if name in present] if columns[0] in present else None
            for batch in file.iter_batches(batch_size=256, columns=wanted):
                yield from batch.to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise PunchcardError(f"{path} cannot be read: {error}") from error


_READERS: dict[str, Callable[[Path, Sequence[str]], Iterator[Any]]] = {
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".parquet": _read_parquet,
    ".txt": _read_txt,
}


def _plain(value: Any) -> Any:
    return to_jsonable_python(value, inf_nan_mode="null", fallback=str)


def _failure(message: str) -> Failure:
    return Failure("InvalidDocument", message)


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return "null" if value is None else kinds.get(type(value), f"of the type {type(value).__name__}")
