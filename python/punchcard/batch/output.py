"""Where rows go: into memory, or into a file from which a run can go on.

Beside ``OUT.jsonl`` lies ``OUT.jsonl.run``: what the run reads, which schema it follows and which model answers, as
digests and names. A run that goes on with the same file must agree in all of them. Whoever writes the rows holds a lock
on it, so two runs cannot write into one file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from punchcard.errors import PunchcardError

Row = dict[str, Any]


class Output(Protocol):
    """``finished``: for each row that is there, by its index, whether it has an output rather than an error."""

    finished: dict[int, bool]

    def write(self, row: Row) -> None: ...
    def rows(self) -> Iterator[Row]: ...
    def close(self) -> None: ...


class MemoryOutput:
    """Keeps the rows."""

    def __init__(self) -> None:
        self.finished: dict[int, bool] = {}
        self._rows: dict[int, Row] = {}

    def write(self, row: Row) -> None:
        self._rows[row["index"]] = row
        self.finished[row["index"]] = "error" not in row

    def rows(self) -> Iterator[Row]:
        """The rows in the order of the source."""
        return (self._rows[index] for index in sorted(self._rows))

    def close(self) -> None:
        pass


class FileOutput:
    """Appends rows to a file, each as a line of JSON that is handed to the system at once.

    ``identity`` names what the rows depend on, such as ``{"source": digest}``. ``overwrite``: begin anew, whatever is
    there. ``retry_failed``: forget the rows with errors.

    Raises `PunchcardError` if the file holds rows of something else, is no output of a batch, cannot be written, or is
    being written by another run.
    """

    def __init__(
        self, path: Path, identity: Mapping[str, Any], *, overwrite: bool = False, retry_failed: bool = False
    ) -> None:
        self.path = path
        self.finished: dict[int, bool] = {}
        self._run_path = path.with_name(path.name + ".run")
        try:
            self._run = self._run_path.open("a+b")
            try:
                _lock(self._run, path)
                self._open(identity, overwrite, retry_failed)
            except BaseException:
                self._run.close()
                raise
        except OSError as error:
            raise PunchcardError(f"{path} cannot be written: {error}") from error

    def write(self, row: Row) -> None:
        """Raises `PunchcardError` if the row cannot be written, as where the disk is full."""
        rest = memoryview(_line(row))
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise PunchcardError(
                f"{self.path} cannot be written: {error}", hint="The same again goes on from here"
            ) from error
        self.finished[row["index"]] = "error" not in row

    def rows(self) -> Iterator[Row]:
        """The rows in the order of the source; they need not fit into memory."""
        return sorted_rows(self.path)

    def close(self) -> None:
        with self._run, self._file:
            os.fsync(self._file.fileno())

    def _open(self, identity: Mapping[str, Any], overwrite: bool, retry_failed: bool) -> None:
        if not overwrite and self.path.exists() and self.path.stat().st_size:
            self._check(identity)
            self._recover(retry_failed)
            self._file = self.path.open("ab", buffering=0)
        else:
            self._file = self.path.open("wb", buffering=0)
        self._run.truncate(0)
        self._run.write(json.dumps(identity, indent=1).encode() + b"\n")
        self._run.flush()

    def _check(self, identity: Mapping[str, Any]) -> None:
        self._run.seek(0)
        try:
            before = json.loads(self._run.read())
        except ValueError:
            before = None
        if not isinstance(before, dict):
            raise PunchcardError(
                f"{self.path} is there, and is not known to come from a batch: {self._run_path.name} is missing",
                hint="Name another file, or overwrite it (--overwrite)",
            )
        changed = [name for name in {**before, **identity} if before.get(name) != identity.get(name)]
        if changed:
            raise PunchcardError(
                f"The rows of {self.path} come from another run: what differs is the {', the '.join(changed)}",
                hint="Name another file, or overwrite it (--overwrite)",
                changed=changed,
            )

    def _recover(self, retry_failed: bool) -> None:
        """Takes note of the rows that are there, and cuts off a last line that was not finished."""
        end, dropped = 0, False
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                row = _row(line)
                if row is None:
                    if file.read(1):
                        raise PunchcardError(
                            f"Line {number} of {self.path} is no row of a batch",
                            hint="Mend it, or overwrite the file (--overwrite)",
                        )
                    break
                end += len(line)
                if retry_failed and "error" in row:
                    dropped = True
                else:
                    self.finished[row["index"]] = "error" not in row
        os.truncate(self.path, end)
        if dropped:
            self._drop_errors()

    def _drop_errors(self) -> None:
        kept = self.path.with_name(self.path.name + ".part")
        with self.path.open("rb") as rows, kept.open("wb") as file:
            file.writelines(line for line in rows if "error" not in json.loads(line))
            file.flush()
            os.fsync(file.fileno())
        kept.replace(self.path)


def sorted_rows(path: Path) -> Iterator[Row]:
    """The rows of a file by their index. Only their places are kept in memory."""
    places: list[tuple[int, int]] = []
    with path.open("rb") as file:
        place = 0
        for line in file:
            if (row := _row(line)) is not None:
                places.append((row["index"], place))
            place += len(line)
        for _, place in sorted(places):
            file.seek(place)
            yield json.loads(file.readline())


def _row(line: bytes) -> Row | None:
    """A row, or `None` if the line is not a whole one."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if line.endswith(b"\n") and isinstance(row, dict) and type(row.get("index")) is int else None


def _line(row: Row) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can spell
        return json.dumps(row).encode() + b"\n"


def _lock(file: IO[bytes], path: Path) -> None:
    """Locks a file until it is closed."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise PunchcardError(f"Another run is writing {path}", hint="Wait for it, or name another file") from None
