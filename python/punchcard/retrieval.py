"""`ToolIndex`: which of many tools may serve a request.

    index = ToolIndex(tools)                            # a thousand of them
    index.select("what's the weather in Lyon", k=8)     # the eight that fit best

A catalogue too large for a prompt is searched first; prompt and grammar then cover only what was found. By default
tools are ranked by BM25 (Robertson and Zaragoza, 2009) over the words of their names, descriptions and parameters: no
model, a fraction of a millisecond, the same on every machine. It finds what is said in the same words, or the same
stems. Where requests say it in others, give an embedding function, and tools are ranked by the cosine between their
vectors and the request's.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from punchcard.errors import PunchcardError, extra_hint
from punchcard.tools import Tool, as_tools

#: One vector for each of the texts: ``[len(texts), dimension]``, anything that numpy takes as an array.
Embed = Callable[[list[str]], ArrayLike]

_FORMAT = 1
# Of a file that is loaded: the most bytes of its arrays, unpacked. An embedding of 100,000 tools has some 400 MB.
_MAX_BYTES = 1 << 30
# "getHTTPStatus2" is get, HTTP, Status and 2.
_RUN = re.compile(r"[^\W_]+")
_INSIDE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\d)(?=\D)|(?<=\D)(?=\d)")


class ToolIndex:
    """A catalogue of tools that can be searched.

    ``tools``: functions (with or without `tool`) or OpenAI-style definitions. ``embed``: a function that gives vectors
    for texts; `None` ranks by BM25, which wants the extra ``retrieval``.

    Raises `ToolError` for what is no tool, `PunchcardError` if the extra is missing or the vectors have a wrong shape.
    """

    def __init__(
        self, tools: Iterable[Tool | Callable[..., Any] | Mapping[str, Any]], *, embed: Embed | None = None
    ) -> None:
        self.tools: list[Tool] = as_tools(tools)
        if not self.tools:
            raise PunchcardError("An index needs at least one tool")
        self._ranking: _Words | _Vectors = _Words.of(self.tools) if embed is None else _Vectors.of(self.tools, embed)

    def select(self, query: str, k: int = 8) -> list[Tool]:
        """The ``k`` tools (all, if there are fewer) that fit a request best, the best first.

        Tools that fit equally well come in the order of the catalogue.
        """
        if k < 1:
            raise PunchcardError(f"k is {k}; it must be at least 1")
        order = np.argsort(-self.scores(query), kind="stable")
        return [self.tools[position] for position in order[:k]]

    def scores(self, query: str) -> NDArray[np.float32]:
        """How well each tool fits a request, float32 ``[len(tools)]``, in the order of the catalogue.

        With BM25, 0 is a tool that shares no word with the request, and there is no upper bound; with an embedding, it
        is a cosine, from -1 to 1. Compare scores of one request only.
        """
        return self._ranking.scores(query)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to a file, without the tools. The same tools and vectors give the same bytes."""
        ranking = self._ranking
        header = {"format": _FORMAT, "kind": ranking.kind, "tools": _fingerprint(self.tools), **ranking.header()}
        arrays = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8), **ranking.arrays()}
        part = Path(f"{os.fspath(path)}.part")
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as file:
            for name, array in arrays.items():
                content = io.BytesIO()
                np.lib.format.write_array(content, array, allow_pickle=False)
                file.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue())  # dated 1980, whenever it is made
        part.replace(path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        tools: Iterable[Tool | Callable[..., Any] | Mapping[str, Any]],
        *,
        embed: Embed | None = None,
    ) -> ToolIndex:
        """The index that `save` wrote, for the same tools in the same order; ``embed`` as it was then.

        The file is not trusted: nothing in it is executed, and every size is checked.

        Raises `PunchcardError` if it cannot be read, is damaged, or belongs to other tools or another ranking.
        """
        index = cls.__new__(cls)
        index.tools = as_tools(tools)
        header, arrays = _read(path)
        if header.get("tools") != _fingerprint(index.tools):
            raise PunchcardError(
                f"The index {os.fspath(path)} belongs to other tools",
                hint="They, their order or their descriptions have changed: make it anew with ToolIndex(tools)",
            )
        kind = _Words if embed is None else _Vectors
        if header.get("kind") != kind.kind:
            raise PunchcardError(
                f"The index {os.fspath(path)} ranks by {header.get('kind')}, not by {kind.kind}",
                hint="Give embed if and only if it was given when the index was made",
            )
        try:
            if embed is None:
                index._ranking = _Words.restored(header, arrays, len(index.tools))
            else:
                index._ranking = _Vectors.restored(arrays, len(index.tools), embed)
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(path, str(error)) from error
        return index


class _Words:
    """BM25 over words. ``bm25s`` works out ahead what each word adds to the score of each tool that has it."""

    kind = "words"

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> _Words:
        documents = [_document(tool) for tool in tools]
        ids = {word: id for id, word in enumerate(sorted({word for words in documents for word in words}))}
        engine = _bm25().BM25()
        # By our own ids: those of the library follow a set, whose order differs from run to run.
        corpus = ([[ids[word] for word in words] for words in documents], ids)
        engine.index(corpus, create_empty_token=False, show_progress=False)
        return cls(engine)

    @classmethod
    def restored(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], count: int) -> _Words:
        words = header["words"]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError("its words are no texts")
        data, indices, starts = (arrays[name] for name in ("data", "indices", "starts"))
        _expect(data, np.float32, (len(data),), "data")
        _expect(indices, np.int32, (len(data),), "indices")
        _expect(starts, np.int64, (len(words) + 1,), "starts")
        if starts[0] != 0 or starts[-1] != len(data) or np.any(np.diff(starts) < 0):
            raise ValueError("its places do not add up")
        if np.any((indices < 0) | (indices >= count)) or not np.all(np.isfinite(data)):
            raise ValueError("it has numbers out of range")
        engine = _bm25().BM25()
        engine.scores = {"data": data, "indices": indices, "indptr": starts, "num_docs": count}
        engine.vocab_dict = {word: id for id, word in enumerate(words)}
        engine.nonoccurrence_array = None
        return cls(engine)

    def header(self) -> dict[str, Any]:
        return {"words": list(self._engine.vocab_dict)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        scores = self._engine.scores
        return {
            "data": scores["data"].astype(np.float32),
            "indices": scores["indices"].astype(np.int32),
            "starts": scores["indptr"].astype(np.int64),
        }

    def scores(self, query: str) -> NDArray[np.float32]:
        # A word that is said twice is not asked for twice.
        ids = self._engine.get_tokens_ids(list(dict.fromkeys(_words(query))))
        found: NDArray[np.float32] = self._engine.get_scores_from_ids(ids)
        return found


class _Vectors:
    """Cosines between vectors of unit length, float32 ``[len(tools), dimension]``."""

    kind = "vectors"

    def __init__(self, vectors: NDArray[np.float32], embed: Embed) -> None:
        self._vectors = vectors
        self._embed = embed

    @classmethod
    def of(cls, tools: Sequence[Tool], embed: Embed) -> _Vectors:
        return cls(_embedded(embed, [_description(tool) for tool in tools]), embed)

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], count: int, embed: Embed) -> _Vectors:
        vectors = arrays["vectors"]
        _expect(vectors, np.float32, (count, vectors.shape[-1] if vectors.ndim else 0), "vectors")
        if not np.all(np.isfinite(vectors)):
            raise ValueError("it has numbers out of range")
        return cls(vectors, embed)

    def header(self) -> dict[str, Any]:
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"vectors": self._vectors}

    def scores(self, query: str) -> NDArray[np.float32]:
        (vector,) = _embedded(self._embed, [query])
        if len(vector) != self._vectors.shape[1]:
            raise PunchcardError(
                f"embed gives {len(vector)} numbers for a request; the tools have {self._vectors.shape[1]}",
                hint="Search an index with the embedding that it was made with",
            )
        found: NDArray[np.float32] = self._vectors @ vector
        return found


def _embedded(embed: Embed, texts: list[str]) -> NDArray[np.float32]:
    """Vectors of unit length, or of length 0 where ``embed`` gives such."""
    try:
        vectors = np.asarray(embed(texts), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PunchcardError(f"embed does not give an array of numbers: {error}") from error
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
        raise PunchcardError(
            f"embed gives an array of the shape {list(vectors.shape)} for {len(texts)} texts",
            hint="It must be [texts, dimension]",
        )
    if not np.all(np.isfinite(vectors)):
        raise PunchcardError("embed gives numbers that are not finite")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)


def _document(tool: Tool) -> list[str]:
    """The words of a tool; a name that holds none is its own word."""
    name = _words(tool.name) or [tool.name.lower()]
    return [*name, *_words(tool.description), *(word for text in _texts(tool) for word in _words(text))]


def _description(tool: Tool) -> str:
    """A tool as a text, for an embedding."""
    return ". ".join(text for text in (" ".join(_split(tool.name)), tool.description, *_texts(tool)) if text)


def _texts(tool: Tool) -> list[str]:
    """The names and the descriptions of a tool's parameters, those inside of others too, in order."""
    texts: list[str] = []
    levels: list[Any] = [tool.parameters]
    while levels:  # no recursion: a definition from a stranger may be as deep as it likes
        schema = levels.pop()
        if isinstance(schema, Mapping):
            if isinstance(description := schema.get("description"), str) and schema is not tool.parameters:
                texts.append(description)
            properties = schema.get("properties")
            if isinstance(properties, Mapping):
                texts += [str(name) for name in properties]
                levels += reversed(list(properties.values()))
            levels += [schema[name] for name in ("items", "anyOf", "oneOf", "allOf", "$defs") if name in schema]
        elif isinstance(schema, list):
            levels += reversed(schema)
    return texts


def _words(text: str) -> list[str]:
    """The stems of a text's words, without those that say nothing."""
    ignored = _stop_words()
    return [_stem(word) for word in _split(text) if word not in ignored]


def _split(text: str) -> list[str]:
    return [word.casefold() for run in _RUN.findall(text) for word in _INSIDE.split(run)]


@functools.lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@functools.cache
def _stemmer() -> Any:
    try:
        import snowballstemmer
    except ImportError:
        raise _missing("snowballstemmer") from None
    return snowballstemmer.stemmer("english")


@functools.cache
def _stop_words() -> frozenset[str]:
    return frozenset(_bm25().stopwords.STOPWORDS_EN)


def _bm25() -> Any:
    try:
        import bm25s
    except ImportError:
        raise _missing("bm25s") from None
    return bm25s


def _missing(library: str) -> PunchcardError:
    return PunchcardError(
        f"{library} is not installed", hint=extra_hint("retrieval") + "; or give an embedding function"
    )


def _fingerprint(tools: Sequence[Tool]) -> str:
    """A SHA-256 of all that an index reads of its tools."""
    definitions = [tool.definition() for tool in tools]
    return hashlib.sha256(json.dumps(definitions, sort_keys=True, default=str).encode()).hexdigest()


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a file."""
    try:
        with zipfile.ZipFile(path) as file:
            members = file.infolist()
            stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
            if not stored or sum(member.file_size for member in members) > _MAX_BYTES:
                raise ValueError("it is not as large as it says, or too large")
            arrays = {member.filename.removesuffix(".npy"): _array(file.read(member)) for member in members}
        header = json.loads(arrays.pop("header").tobytes())
    except OSError as error:
        raise PunchcardError(f"The index {os.fspath(path)} cannot be read: {error}") from error
    except (zipfile.BadZipFile, KeyError, ValueError, RecursionError, NotImplementedError, EOFError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise _damaged(path, "it has another format")
    return header, arrays


def _array(content: bytes) -> NDArray[Any]:
    # A header may promise more than there is; numpy would make room for it first.
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError("it has another format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError("an array is not as large as it says")
    stream.seek(0)
    array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _expect(array: NDArray[Any], dtype: type[np.generic], shape: tuple[int, ...], name: str) -> None:
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(f"{name} is {array.dtype}{list(array.shape)}, not {np.dtype(dtype)}{list(shape)}")


def _damaged(path: str | os.PathLike[str], why: str) -> PunchcardError:
    return PunchcardError(f"The index {os.fspath(path)} is damaged: {why}", hint="Make it anew with ToolIndex(tools)")
