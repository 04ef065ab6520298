"""Retrieval of tools: what is found, in which order, and what a saved index takes."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from punchcard import PunchcardError, Tool, ToolIndex, load_tools, tool
from punchcard.errors import ToolError
from punchcard.retrieval import _split

HOME = Path(__file__).parent.parent / "examples" / "home.py"
needs_words = pytest.mark.usefixtures("words")


@pytest.fixture
def words() -> None:
    pytest.importorskip("bm25s")
    pytest.importorskip("snowballstemmer")


def definition(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def letters(texts: list[str]) -> list[list[float]]:
    """An embedding: how often each letter stands in a text."""
    return [[float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def names(tools: list[Tool]) -> list[str]:
    return [found.name for found in tools]


@needs_words
@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("dim the lights in the kitchen", "set_lights"),
        ("how is the weather in Oslo", "get_weather"),
        ("heat the bath to 22 degrees", "set_temperature"),
        ("lock the garage", "lock_door"),
        ("remind me to call mum", "set_reminder"),
        ("play songs by an artist", "play_music"),
        ("I want to be reminded tomorrow", "set_reminder"),
        ("shopping: milk and eggs", "add_to_shopping_list"),
        ("count down ten minutes for cooking", "start_timer"),
    ],
)
def test_the_tool_that_serves_comes_first(request_: str, expected: str) -> None:
    index = ToolIndex(load_tools(HOME))
    assert index.select(request_, k=1)[0].name == expected


@needs_words
def test_every_part_of_a_tool_is_searched() -> None:
    nested = {
        "type": "object",
        "properties": {"quux": {"anyOf": [{"type": "array", "items": {"description": "plugh"}}]}},
    }
    tools = [
        definition("alpha_one"),
        definition("betaTwoHTTP", "Does nothing."),
        definition("gamma", "Waters gardens."),
        definition("delta", "", depth={"type": "integer", "description": "how far below"}),
        definition("epsilon", "", inner=nested),
    ]
    index = ToolIndex(tools)
    wanted = {"alpha": 0, "http two": 1, "garden": 2, "watering": 2, "depth": 3, "BELOW": 3, "quux": 4, "plugh": 4}
    for request, position in wanted.items():
        scores = index.scores(request)
        assert scores.dtype == np.float32 and scores.shape == (5,)
        assert [i for i, score in enumerate(scores) if score > 0] == [position], request
        assert index.select(request, k=1) == [index.tools[position]]


@needs_words
def test_rare_words_count_more_and_words_that_say_nothing_do_not() -> None:
    tools = [definition(f"file_{n}", "Reads the file.") for n in range(8)]
    index = ToolIndex([*tools, definition("file_pdf", "Reads the PDF file.")])
    assert names(index.select("file pdf", k=2)) == ["file_pdf", "file_0"]
    assert not index.scores("the of and").any() and not index.scores("").any()
    assert np.array_equal(index.scores("file file file"), index.scores("file"))


@pytest.mark.parametrize("embed", [None, letters])
def test_equal_scores_come_in_the_order_of_the_catalogue(embed: Any, request: pytest.FixtureRequest) -> None:
    if embed is None:
        request.getfixturevalue("words")
    tools = [definition(f"abc_{n % 3}" if n < 3 else f"{'cba'[::-1]}_{n}", "x") for n in range(40)]
    index = ToolIndex(tools, embed=embed)
    assert names(index.select("abc", k=6)) == [f"abc_{n}" for n in range(6)]
    assert names(index.select("0", k=100))[0] == "abc_0"
    assert len(index.select("abc", k=100)) == 40 and len(index.select("abc")) == 8


def test_embeddings_rank_by_the_cosine() -> None:
    index = ToolIndex([definition("aaa"), definition("aab"), definition("bbb")], embed=letters)
    assert index.scores("ab") == pytest.approx([1 / 2**0.5, 3 / 10**0.5, 1 / 2**0.5])
    assert names(index.select("ab", k=3)) == ["aab", "aaa", "bbb"]
    assert index.scores("123").tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("set_lights", "set lights"),
        ("getHTTPStatus", "get http status"),
        ("HTTPServer-v2.parse", "http server v 2 parse"),
        ("top10Results", "top 10 results"),
        ("Über straße_Ärger", "über strasse ärger"),
        ("東京 weather", "東京 weather"),
        ("__ - .", ""),
    ],
)
def test_names_are_split_into_words(text: str, expected: str) -> None:
    assert " ".join(_split(text)) == expected


@needs_words
def test_a_name_without_words_is_its_own() -> None:
    assert names(ToolIndex([definition("_"), definition("x")]).select("x", k=1)) == ["x"]


@pytest.mark.parametrize("embed", [None, letters])
def test_an_index_is_saved_and_loaded(embed: Any, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if embed is None:
        request.getfixturevalue("words")
    tools = load_tools(HOME)
    index = ToolIndex(tools, embed=embed)
    index.save(tmp_path / "a.index")
    loaded = ToolIndex.load(tmp_path / "a.index", tools, embed=embed)
    for asked in ("lights in the kitchen", "zzz", "", "remind me of the weather"):
        assert np.array_equal(loaded.scores(asked), index.scores(asked))
    loaded.save(tmp_path / "b.index")
    assert (tmp_path / "a.index").read_bytes() == (tmp_path / "b.index").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["a.index", "b.index"]


@needs_words
def test_the_same_tools_give_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    code = (
        "import sys; from punchcard import ToolIndex, load_tools; ToolIndex(load_tools(sys.argv[1])).save(sys.argv[2])"
    )
    digests = set()
    for seed in ("1", "2"):
        path = tmp_path / seed
        subprocess.run(
            [sys.executable, "-c", code, str(HOME), str(path)],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            timeout=60,
        )
        digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1


@needs_words
@pytest.mark.parametrize(
    "change",
    [
        lambda tools: tools[::-1],
        lambda tools: tools[:-1],
        lambda tools: [*tools, definition("new")],
        lambda tools: [definition("a", "Other words."), *tools[1:]],
        lambda tools: [definition("a", "One.", more={}), *tools[1:]],
    ],
)
def test_an_index_of_other_tools_is_refused(tmp_path: Path, change: Callable[[list[Any]], list[Any]]) -> None:
    tools = [definition("a", "One."), definition("b", "Two.")]
    ToolIndex(tools).save(tmp_path / "index")
    with pytest.raises(PunchcardError, match=r"belongs to other tools\. .* make it anew"):
        ToolIndex.load(tmp_path / "index", change(tools))
    with pytest.raises(PunchcardError, match="ranks by words, not by vectors"):
        ToolIndex.load(tmp_path / "index", tools, embed=letters)


# Files from strangers.


def members(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with zipfile.ZipFile(path) as file:
        return {name: np.load(io.BytesIO(file.read(name)), allow_pickle=False) for name in file.namelist()}


def write(path: Path, arrays: dict[str, Any], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=True)
            file.writestr(name, array if isinstance(array, bytes) else content.getvalue())


def with_header(arrays: dict[str, Any], **changes: Any) -> dict[str, Any]:
    header = {**json.loads(arrays["header.npy"].tobytes()), **changes}
    return {**arrays, "header.npy": np.frombuffer(json.dumps(header).encode(), np.uint8)}


class Bomb:
    """A pickle that would be noticed."""

    def __reduce__(self) -> Any:
        return (os.mkdir, ("executed",))


def huge_array() -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)})  # type: ignore[no-untyped-call]
    return content.getvalue() + b"1234"


@needs_words
@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda a: {**a, "data.npy": np.array([Bomb()])}, "not as large as it says"),
        (lambda a: {**a, "header.npy": np.array([Bomb()])}, "not as large as it says"),
        (lambda a: {**a, "data.npy": huge_array()}, "not as large as it says"),
        (lambda a: {**a, "data.npy": b"no array"}, "magic"),
        (lambda a: {k: v for k, v in a.items() if k != "starts.npy"}, "starts"),
        (lambda a: {k: v for k, v in a.items() if k != "header.npy"}, "header"),
        (lambda a: {**a, "indices.npy": a["indices.npy"] + 2}, "out of range"),
        (lambda a: {**a, "indices.npy": a["indices.npy"] - 1}, "out of range"),
        (lambda a: {**a, "indices.npy": a["indices.npy"].astype(np.int64)}, "indices is int64"),
        (lambda a: {**a, "data.npy": a["data.npy"] * np.float32("nan")}, "out of range"),
        (lambda a: {**a, "data.npy": a["data.npy"][:-1]}, "indices is int32"),
        (lambda a: {**a, "starts.npy": a["starts.npy"][::-1].copy()}, "do not add up"),
        (lambda a: {**a, "starts.npy": a["starts.npy"] * 2}, "do not add up"),
        (lambda a: with_header(a, words=["a"] * 3), "starts is"),
        (lambda a: with_header(a, words=[1] * 99), "no texts"),
        (lambda a: with_header(a, words=None), "no texts"),
        (lambda a: with_header(a, format=2), "another format"),
        (lambda a: {**a, "header.npy": np.frombuffer(b"[" * 100_000, np.uint8)}, ""),
        (lambda a: {**a, "header.npy": np.frombuffer(b"\xff{", np.uint8)}, "codec"),
    ],
)
def test_a_damaged_index_is_an_error_and_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    tools = [definition("a", "One thing."), definition("b", "Two things.")]
    path = tmp_path / "index"
    ToolIndex(tools).save(path)
    write(path, damage(members(path)))
    with pytest.raises(PunchcardError, match="is damaged: ") as raised:
        ToolIndex.load(path, tools)
    assert complaint in str(raised.value)
    assert not Path("executed").exists()


@needs_words
def test_a_file_that_is_no_index(tmp_path: Path) -> None:
    tools = [definition("a"), definition("b")]
    path = tmp_path / "index"
    with pytest.raises(PunchcardError, match=r"cannot be read: .*No such file"):
        ToolIndex.load(path, tools)
    ToolIndex(tools).save(path)
    content = path.read_bytes()
    for end in range(0, len(content), 7):
        path.write_bytes(content[:end])
        with pytest.raises(PunchcardError, match="is damaged"):
            ToolIndex.load(path, tools)
    for place in range(0, len(content), 5):  # a byte that differs is noticed, or makes no difference
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        with contextlib.suppress(PunchcardError):
            assert ToolIndex.load(path, tools).scores("a").shape == (2,)
    compressed = tmp_path / "compressed"
    path.write_bytes(content)
    write(compressed, {**members(path), "more.npy": np.zeros(10**6)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(PunchcardError, match="too large"):
        ToolIndex.load(compressed, tools)


# What users get wrong.


@pytest.mark.parametrize(
    ("embed", "complaint"),
    [
        (lambda texts: [1.0, 2.0], r"shape \[2\] for 2 texts. It must be \[texts, dimension\]"),
        (lambda texts: [[1.0]], r"shape \[1, 1\] for 2 texts"),
        (lambda texts: [[], []], r"shape \[2, 0\]"),
        (lambda texts: [[1.0], [float("nan")]], "not finite"),
        (lambda texts: ["a", "b"], "does not give an array of numbers"),
        (lambda texts: None, "does not give an array of numbers|shape"),
    ],
)
def test_an_embedding_of_a_wrong_shape(embed: Any, complaint: str) -> None:
    with pytest.raises(PunchcardError, match=complaint):
        ToolIndex([definition("a"), definition("b")], embed=embed)


def test_an_embedding_that_changes(tmp_path: Path) -> None:
    tools = [definition("a"), definition("b")]
    ToolIndex(tools, embed=letters).save(tmp_path / "index")
    index = ToolIndex.load(tmp_path / "index", tools, embed=lambda texts: [[1.0, 2.0]] * len(texts))
    with pytest.raises(PunchcardError, match="gives 2 numbers for a request; the tools have 26"):
        index.select("a")
    with pytest.raises(PunchcardError, match=r"ranks by vectors, not by words\. Give embed"):
        ToolIndex.load(tmp_path / "index", tools)


def test_mistakes() -> None:
    with pytest.raises(PunchcardError, match="at least one tool"):
        ToolIndex([], embed=letters)
    with pytest.raises(ToolError, match="Two tools are named a"):
        ToolIndex([definition("a"), definition("a")], embed=letters)
    with pytest.raises(PunchcardError, match="k is 0"):
        ToolIndex([definition("a")], embed=letters).select("a", k=0)


def test_without_the_extra_an_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    import punchcard.retrieval

    punchcard.retrieval._stop_words.cache_clear()
    with pytest.raises(PunchcardError, match=r"bm25s is not installed. .*pip install 'punchcard\[retrieval\]'"):
        ToolIndex([definition("a")])
    assert ToolIndex([definition("a")], embed=letters).select("a")[0].name == "a"


@needs_words
def test_functions_stay_what_they_are() -> None:
    @tool
    def find_flights(origin: str, destination: str) -> str:
        """Find flights between two airports."""
        return f"{origin}-{destination}"

    def cook(dish: str) -> str:
        """Cook a dish."""
        return dish

    found = ToolIndex([cook, find_flights]).select("a flight from Oslo", k=1)[0]
    assert found is find_flights and found("OSL", "CDG") == "OSL-CDG"


@needs_words
def test_a_thousand_tools() -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
    try:
        import tool_retrieval
    finally:
        sys.path.pop(0)
    tools, requests = tool_retrieval.catalogue(1000)
    index = ToolIndex(tools)
    found = [index.select(asked, k=10) for asked in requests["same"]]
    first = sum(selected[0].name == made["name"] for selected, made in zip(found, tools, strict=True))
    among = sum(made["name"] in names(selected) for selected, made in zip(found, tools, strict=True))
    assert first > 950 and among == 1000


@needs_words
def test_the_examples_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (HOME.parent.parent / "docs" / "retrieval.md").read_text("utf-8")
    scope: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "retrieval.md", "exec"), scope)
