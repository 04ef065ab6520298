"""Extraction from many documents: sources, rows, resuming, and whoever answers."""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from batch_fakes import Server, Writer, die_at_once, open_nothing
from click.testing import CliRunner
from fake_model import FakeModel, speaker
from pydantic import BaseModel, field_validator

import punchcard
from punchcard import Extractor, batch
from punchcard.answering import StepChat
from punchcard.batch.answers import Answer, Failure, Task
from punchcard.batch.documents import open_source
from punchcard.batch.output import FileOutput
from punchcard.batch.workers import answer_in_processes
from punchcard.cli import main
from punchcard.errors import InvalidSchemaError, ModelError, PunchcardError, UnsatisfiableSchemaError
from punchcard.generation import Interrupted

LENGTH = {
    "type": "object",
    "properties": {"length": {"type": "integer"}},
    "required": ["length"],
    "additionalProperties": False,
}


class Reading(BaseModel):
    value: int

    @field_validator("value")
    @classmethod
    def _is_not_thirteen(cls, value: int) -> int:
        if value == 13:
            raise ValueError("unlucky")
        return value


def model(answer: str = '{"value":12}') -> FakeModel:
    return FakeModel(speaker(answer), context_length=20_000)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were put to a model. It says how long they are; ``bad`` is an error, ``stop`` is Ctrl-C once."""
    texts: list[str] = []

    def write(self: Extractor, text: str) -> str:
        texts.append(text)
        if text == "bad":
            raise PunchcardError("bad text", hint="improve it", text='{"le')
        if text == "stop" and texts.count("stop") == 1:
            raise KeyboardInterrupt
        return json.dumps({"length": len(text)})

    monkeypatch.setattr(Extractor, "write", write)
    return texts


def rows_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# An extractor.


def test_an_extractor_answers_one_text_after_the_other() -> None:
    fake = model()
    extractor = Extractor(Reading, fake)
    assert extractor.extract("twelve") == Reading(value=12)
    first = len(fake.forwards)
    computed = sum(fake.forwards)
    assert extractor.extract("twelfth") == Reading(value=12)
    # The system turn with the schema, most of the prompt, is not computed again.
    assert sum(fake.forwards[first:]) < computed / 3
    assert extractor.write("twelve") == '{"value":12}'


def test_each_text_is_sampled_from_the_seed_anew() -> None:
    fake = FakeModel(lambda tokens: np.random.default_rng(tokens[-3:]).normal(size=260).astype(np.float32))
    schema = {"type": "integer", "minimum": 0, "maximum": 10**9}
    extractor = Extractor(schema, fake, temperature=2.0, seed=3)
    alone = extractor.extract("b")
    assert [extractor.extract("a"), extractor.extract("b")][1] == alone
    assert len({Extractor(schema, fake, temperature=2.0, seed=seed).extract("b") for seed in range(9)}) > 3


@pytest.mark.parametrize(
    ("answer", "valid"),
    [
        ('{"length":5}', True),
        (' {\n"length" : 5e0 } ', True),
        ('{"length":5.5}', False),
        ('{"length":5', False),
        ('{"length":5,"length":6}', False),
        ('{"length":5} and more', False),
        ('{"length":5,"width":6}', False),
        ("", False),
        ("NaN", False),
        ("[" * 100_000, False),
    ],
)
def test_an_answer_from_elsewhere_is_checked(answer: str, valid: bool) -> None:
    from punchcard.extraction import Shape

    shape = Shape(LENGTH)
    if valid:
        shape.check(answer)
    else:
        with pytest.raises(PunchcardError, match="does not follow the schema") as raised:
            shape.check(answer)
        assert raised.value.fields["text"] == answer


# Sources.


def test_documents_of_every_kind_of_file(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    long = "x" * 200_000  # above the limit that the csv module has by itself
    contents = {
        "a.jsonl": '\ufeff{"id": 7, "text": "one"}\r\n\n"two\\u2028"\n{"text": "' + long + '"}',
        "a.csv": f'\ufeffid,text\n7,one\n8,"two\u2028"\n9,{long}\n',
        "a.txt": f"one\n  \ntwo\u2028\r\n{long}",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    table = pyarrow.table({"id": [7, 8, 9], "text": ["one", "two\u2028", long], "other": [0.5, 1.5, 2.5]})
    parquet.write_table(table, tmp_path / "a.parquet")
    kept = {"a.jsonl": [{"id": 7}, {}, {}], "a.csv": [{"id": "7"}, {"id": "8"}, {"id": "9"}], "a.txt": [{}, {}, {}]}
    kept["a.parquet"] = [{"id": 7}, {"id": 8}, {"id": 9}]
    for name, columns in kept.items():
        found = list(open_source(tmp_path / name).read())
        assert [document.text for document in found] == ["one", "two\u2028", long], name
        assert [document.index for document in found] == [0, 1, 2]
        assert [document.kept for document in found] == columns


def test_a_record_without_a_text_is_a_document_with_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "good"}\n{"id": 1}\n{oops\n\xff\n3\n{"id": 2, "text": ["a"]}\n{"text": null}\n')
    messages = [d.text.message for d in open_source(path).read() if isinstance(d.text, Failure)]
    assert [message.split(":")[0] for message in messages] == [
        "The document has no 'text'",
        "Line 3 is not JSON",
        "Line 4 is not JSON",
        "The document is a number, neither a text nor an object",
        "'text' is an array, not a text",
        "The document has no 'text'",
    ]


@pytest.mark.parametrize(
    ("source", "options", "complaint"),
    [
        ("missing.jsonl", {}, "There is no file missing.jsonl"),
        ("a.xlsx", {}, "of no known kind. Give a file of .csv, .jsonl, .parquet, .txt"),
        ("a.csv", {}, "No document of a.csv has a 'text'. The first has 'id', 'review'"),
        ("a.csv", {"text_column": "review", "keep": ["author"]}, "has a 'author'"),
        ("a.csv", {"text_column": "review", "keep": ["output"]}, "'output' cannot be kept"),
        ("a.parquet", {}, "a.parquet cannot be read"),
        ("latin.csv", {"text_column": "review"}, "latin.csv cannot be read near line"),
        ([{"id": 3}], {}, "The first has 'id'"),
        (["text"], {"keep": ["id"]}, "has a 'id'. The first has no columns"),
    ],
)
def test_a_source_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Any, options: Any, complaint: str
) -> None:
    if source == "a.parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,review\n1,good\n")
    Path("latin.csv").write_bytes(b"id,review\n1,gr\xfc\xdfe\n")
    Path("a.xlsx").touch()
    Path("a.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(PunchcardError, match="(?s)" + complaint.replace(".", r"\.")):
        batch.extract(source, LENGTH, model=model(), **options)


# Rows.


def test_every_document_gets_a_row(answered: list[str]) -> None:
    source = [{"text": "a", "id": 5, "more": 1}, "bb", "bad", {"id": 6}, {"text": "ccc", "id": {"deep": [1]}}]
    results = batch.extract(source, LENGTH, model=model())
    assert list(results) == [
        {"index": 0, "id": 5, "output": {"length": 1}},
        {"index": 1, "output": {"length": 2}},
        {
            "index": 2,
            "error": {"type": "PunchcardError", "message": "bad text", "hint": "improve it", "text": '{"le'},
        },
        {
            "index": 3,
            "id": 6,
            "error": {"type": "InvalidDocument", "message": "The document has no 'text'", "hint": None},
        },
        {"index": 4, "id": {"deep": [1]}, "output": {"length": 3}},
    ]
    assert (results.documents, results.done, results.failed, results.resumed) == (5, 5, 2, 0)
    assert str(results).startswith("5 of 5 documents are done, 2 of them failed; 5 of them now, ")
    kept = batch.extract(source[:1], LENGTH, model=model(), keep=["more", "id"], text_column="text")
    assert list(kept) == [{"index": 0, "more": 1, "id": 5, "output": {"length": 1}}]


def test_what_a_type_makes_of_an_answer_is_the_output() -> None:
    assert list(batch.extract(["x"], Reading, model=model())) == [{"index": 0, "output": {"value": 12}}]
    (row,) = batch.extract(["x"], Reading, model=model('{"value":13}'))
    assert row["error"]["type"] == "PunchcardError" and "unlucky" in row["error"]["message"]
    assert row["error"]["text"] == '{"value":13}'


def test_a_document_that_is_too_long_is_an_error_of_its_row() -> None:
    fake = FakeModel(speaker('{"value":12}'), context_length=1500)
    short, long = batch.extract(["x", "x" * 2000], Reading, model=fake)
    assert short["output"] == {"value": 12} and long["error"]["type"] == "ContextLengthError"


@pytest.mark.parametrize(
    ("options", "error", "complaint"),
    [
        ({"schema": {"type": "strin"}}, InvalidSchemaError, "strin"),
        ({"schema": False}, UnsatisfiableSchemaError, "satisf"),
        ({"workers": 0}, PunchcardError, "workers is 0"),
        ({"workers": 2}, PunchcardError, "load the model themselves"),
        ({"over": "dask"}, PunchcardError, "over is 'dask'"),
        ({"temperature": -1.0}, PunchcardError, "temperature is -1.0"),
        ({"max_new_tokens": 0}, PunchcardError, "max_new_tokens is 0"),
        ({"endpoint": "http://x/v1"}, PunchcardError, "model is the name of one that the server has"),
        ({"endpoint": "localhost", "model": None}, PunchcardError, "'localhost' is no address"),
        ({"endpoint": "http://x/v1", "model": None, "workers": 2}, PunchcardError, "there are no workers"),
        ({"endpoint": "http://x/v1", "model": None, "concurrency": 0}, PunchcardError, "concurrency is 0"),
        ({"endpoint": "http://x/v1", "model": None, "timeout": 0.0}, PunchcardError, "timeout is 0.0"),
    ],
)
def test_what_is_wrong_for_all_documents_is_raised(
    tmp_path: Path, options: Any, error: type[Exception], complaint: str
) -> None:
    options = {"schema": LENGTH, "model": model(), **options}
    with pytest.raises(error, match=complaint):
        batch.extract(["a", "b"], options.pop("schema"), out=tmp_path / "out.jsonl", **options)
    assert not (tmp_path / "out.jsonl").exists() or (tmp_path / "out.jsonl").read_bytes() == b""


# Files of rows.


def test_a_run_goes_on_wherever_the_file_was_cut(tmp_path: Path, answered: list[str]) -> None:
    source = ["a", "bb", "bad", "öäü" * 3]
    whole = tmp_path / "whole.jsonl"
    batch.extract(source, LENGTH, model=model(), out=whole)
    content, run = whole.read_bytes(), (tmp_path / "whole.jsonl.run").read_bytes()
    path = tmp_path / "out.jsonl"
    for cut in range(len(content) + 1):
        path.write_bytes(content[:cut])
        (tmp_path / "out.jsonl.run").write_bytes(run)
        answered.clear()
        results = batch.extract(source, LENGTH, model=model(), out=path)
        assert path.read_bytes() == content
        left = len(source) - content[:cut].count(b"\n")
        assert answered == source[len(source) - left :] and results.resumed == len(source) - left
        assert results.failed == 1


def test_rows_in_any_order_are_resumed_and_read_in_order(tmp_path: Path, answered: list[str]) -> None:
    path = tmp_path / "out.jsonl"
    source = ["a", "bb", "ccc", "dddd"]
    batch.extract(source, LENGTH, model=model(), out=path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[3] + lines[1])
    answered.clear()
    results = batch.extract(source, LENGTH, model=model(), out=path)
    assert answered == ["a", "ccc"] and [row["index"] for row in rows_of(path)] == [3, 1, 0, 2]
    assert [row["output"]["length"] for row in results] == [1, 2, 3, 4]


def test_failed_rows_are_done_again_on_request(tmp_path: Path, answered: list[str]) -> None:
    path = tmp_path / "out.jsonl"
    source = ["a", "bad", "ccc"]
    batch.extract(source, LENGTH, model=model(), out=path)
    answered.clear()
    assert batch.extract(source, LENGTH, model=model(), out=path).failed == 1
    assert answered == []
    results = batch.extract(source, LENGTH, model=model(), out=path, retry_failed=True)
    assert answered == ["bad"] and [row["index"] for row in rows_of(path)] == [0, 2, 1]
    assert (results.resumed, results.done, results.failed) == (2, 3, 1)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"source": ["a", "b", "c"]}, "the source"),
        ({"source": ["a", "x"]}, "the source"),
        ({"schema": {**LENGTH, "description": "other"}}, "the schema"),
        ({"schema": dict(reversed(LENGTH.items()))}, "the schema"),
        ({"model": FakeModel(speaker("1"), name="other")}, "the model"),
        ({"system": "Do it. {schema}"}, "the instruction"),
        ({"temperature": 0.5}, "the sampling"),
        ({"temperature": 0.5, "source": ["c"]}, "the source, the sampling"),
    ],
)
def test_rows_of_another_run_are_refused(tmp_path: Path, answered: list[str], change: Any, named: str) -> None:
    path = tmp_path / "out.jsonl"
    arguments: dict[str, Any] = {"source": ["a", "b"], "schema": LENGTH, "model": model(), "out": path}
    batch.extract(**arguments)
    before = path.read_bytes()
    with pytest.raises(PunchcardError, match=f"what differs is {named}\\.") as raised:
        batch.extract(**{**arguments, **change})
    assert "--overwrite" in str(raised.value) and path.read_bytes() == before
    batch.extract(**{**arguments, **change}, overwrite=True)
    assert len(rows_of(path)) == len({**arguments, **change}["source"])
    # What only bounds the answers may differ.
    batch.extract(**{**arguments, **change, "max_new_tokens": 99})


def test_a_file_that_is_no_output_is_left_alone(tmp_path: Path, answered: list[str]) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("my diary\n")
    with pytest.raises(PunchcardError, match=r"is not known to come from a batch: out.jsonl.run is missing"):
        batch.extract(["a"], LENGTH, model=model(), out=path)
    assert path.read_text() == "my diary\n"
    batch.extract(["a"], LENGTH, model=model(), out=path, overwrite=True)
    path.write_text('scribble\n{"index": 0}\n')
    with pytest.raises(PunchcardError, match=r"Line 1 of .*out.jsonl is no row"):
        batch.extract(["a"], LENGTH, model=model(), out=path)
    with pytest.raises(PunchcardError, match="cannot be written"):
        batch.extract(["a"], LENGTH, model=model(), out=tmp_path / "no" / "such" / "folder.jsonl")


def test_the_source_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text('"a"\n')
    (tmp_path / "link.jsonl").symlink_to(path)
    for out in (path, tmp_path / "link.jsonl"):
        with pytest.raises(PunchcardError, match=r"jsonl is the source\. Write the rows to another file"):
            batch.extract(path, LENGTH, model=model(), out=out, overwrite=True)
    assert path.read_text() == '"a"\n'


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    output = FileOutput(tmp_path / "out.jsonl", {"source": "s"})
    output.write({"index": 0, "output": "ä"})

    class Full:
        def __init__(self, file: Any) -> None:
            self._file, self._left = file, 15

        def write(self, data: memoryview) -> int:
            if not self._left:
                raise OSError(errno.ENOSPC, "No space left on device")
            written: int = self._file.write(data[: min(4, self._left)])
            self._left -= written
            return written

    file, output._file = output._file, Full(output._file)  # type: ignore[assignment]
    with pytest.raises(PunchcardError, match=r"cannot be written: .*No space left"):
        output.write({"index": 1, "output": "two"})
    output._file = file
    output.close()
    assert (tmp_path / "out.jsonl").read_text("utf-8") == '{"index": 0, "output": "ä"}\n{"index": 1, "o'
    again = FileOutput(tmp_path / "out.jsonl", {"source": "s"})
    again.write({"index": 1, "output": "\ud800"})
    again.close()
    assert again.finished == {0: True, 1: True}
    assert (tmp_path / "out.jsonl").read_text("utf-8").splitlines()[1] == '{"index": 1, "output": "\\ud800"}'


def test_two_runs_cannot_write_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.jsonl"
    errors = []

    def write(self: Extractor, text: str) -> str:
        with pytest.raises(PunchcardError, match="Another run is writing") as raised:
            batch.extract(["a"], LENGTH, model=model(), out=path)
        errors.append(raised.value)
        return '{"length": 1}'

    monkeypatch.setattr(Extractor, "write", write)
    batch.extract(["a"], LENGTH, model=model(), out=path)
    assert len(errors) == 1 and rows_of(path) == [{"index": 0, "output": {"length": 1}}]


def test_ctrl_c_keeps_what_is_done(tmp_path: Path, answered: list[str]) -> None:
    path = tmp_path / "out.jsonl"
    source = ["a", "bb", "stop", "dddd"]
    with pytest.raises(Interrupted, match=r"2 of 4 documents, which are in .*out.jsonl; the same again") as raised:
        batch.extract(source, LENGTH, model=model(), out=path)
    assert (raised.value.result.done, len(rows_of(path))) == (2, 2)
    batch.extract(source, LENGTH, model=model(), out=path)
    assert answered == ["a", "bb", "stop", "stop", "dddd"]
    assert [row["output"]["length"] for row in rows_of(path)] == [1, 2, 4, 4]


_SCRIPT = """
import sys, time
sys.path.insert(0, {tests!r})
from fake_model import FakeModel, speaker
from punchcard import Extractor, batch

def write(self, text):
    time.sleep(0.02)
    return '{{"length": %d}}' % len(text)

Extractor.write = write
batch.extract(["x" * n for n in range(100)], {schema!r}, model=FakeModel(speaker("1")), out={out!r})
"""


def test_a_run_that_is_killed_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    script = _SCRIPT.format(tests=str(Path(__file__).parent), schema=LENGTH, out=str(path))
    run = subprocess.Popen([sys.executable, "-c", script])
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (not path.exists() or path.read_bytes().count(b"\n") < 10):
            time.sleep(0.01)
    finally:
        run.kill()
        run.wait()
    before = rows_of(path)
    assert 10 <= len(before) < 100
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    after = rows_of(path)
    assert after[: len(before)] == before
    assert [(row["index"], row["output"]["length"]) for row in after] == [(n, n) for n in range(100)]


# Worker processes.

needs_kill = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


def tasks(*texts: str) -> Iterator[Task]:
    return iter([Task(index, text) for index, text in enumerate(texts)])


def check_answers(answers: list[Answer], texts: list[str]) -> set[int]:
    """All texts are answered as `Writer` would. Returns the processes that did."""
    found = {answer.index: answer.result for answer in answers}
    assert len(answers) == len(texts) == len(found)
    processes = set()
    for index, text in enumerate(texts):
        result = found[index]
        if text == "poison":
            assert isinstance(result, Failure) and result.type == "WorkerDied"
        elif text == "bad":
            assert result == Failure("ValueError", "this one I do not like")
        else:
            assert isinstance(result, str), result
            assert json.loads(result)["length"] == len(text)
            processes.add(json.loads(result)["process"])
    return processes


@needs_kill
def test_a_worker_that_is_killed_is_replaced_and_its_document_tried_again(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(40)]
    texts[7], texts[20], texts[39], texts[5] = "poison", "poison once", "poison", "bad"
    writer = functools.partial(Writer, str(tmp_path))
    processes = check_answers(list(answer_in_processes(tasks(*texts), writer, 2)), texts)
    assert len(processes) >= 3 and os.getpid() not in processes
    assert check_answers(list(answer_in_processes(tasks("poison"), writer, 1)), ["poison"]) == set()
    assert list(answer_in_processes(tasks(), writer, 1)) == []


def test_workers_take_tasks_as_they_have_time_for_them(tmp_path: Path) -> None:
    taken = []

    def endless() -> Iterator[Task]:
        for index in range(10**9):
            taken.append(index)
            yield Task(index, "x")

    answers = answer_in_processes(endless(), functools.partial(Writer, str(tmp_path)), 2)
    assert {next(answers).index for _ in range(6)} <= set(range(9))
    answers.close()
    assert len(taken) <= 9


def test_workers_that_do_not_come_to_life_end_the_run() -> None:
    with pytest.raises(PunchcardError, match="A worker cannot start: OSError: no model here"):
        list(answer_in_processes(tasks("a"), open_nothing, 1))
    with pytest.raises(PunchcardError, match="The workers die before they are ready"):
        list(answer_in_processes(tasks("a"), die_at_once, 2))
    with pytest.raises(ModelError, match="no model is called 'nix'"):
        batch.extract(["a"], LENGTH, model="nix", workers=1)


@pytest.fixture(scope="module")
def smollm() -> str:
    from punchcard.models.download import cached

    if cached("smollm2-135m") is None or not hasattr(punchcard._core, "LocalRuntime"):  # type: ignore[attr-defined]
        pytest.skip("the default model has not been fetched, or this build has no runtime for it")
    return "smollm2-135m"


class Person(BaseModel):
    name: str = punchcard.Field(max_length=12)
    city: str = punchcard.Field(max_length=12)


@needs_kill
def test_workers_answer_as_this_process_does(smollm: str, tmp_path: Path) -> None:
    texts = [f"{name} lives in {city}." for name in ("Ann", "Bob", "Cid") for city in ("Paris", "Rome")]
    alone = list(batch.extract(texts, Person, model=smollm))
    assert all("output" in row for row in alone)
    shared = batch.extract(texts, Person, model=smollm, workers=2, out=tmp_path / "out.jsonl")
    assert list(shared) == alone
    # Whoever answers, it is the same run.
    assert batch.extract(texts, Person, out=tmp_path / "out.jsonl").resumed == len(texts)


# An endpoint.


@pytest.fixture
def server() -> Iterator[Server]:
    pytest.importorskip("openai")
    server = Server()
    yield server
    server.close()


def test_an_endpoint_answers_and_its_answers_are_checked(server: Server, tmp_path: Path) -> None:
    kinds = ["fine", "busy", "shaky", "broken", "dropped", "hang", "garbage", "empty", "prose", "wrong", "twice"]
    kinds += ["cut", "silent", "refused", "fine:last"]
    results = batch.extract(kinds, LENGTH, endpoint=server.url, timeout=0.5, retries=2, max_new_tokens=77, seed=5)
    found = {kind: row.get("output", row.get("error")) for kind, row in zip(kinds, results, strict=True)}
    for kind in ("fine", "busy", "shaky", "dropped", "fine:last"):
        assert found[kind] == {"length": len(kind)}, kind
    expected = {
        "broken": ("InternalServerError", "a bug"),
        "hang": ("APITimeoutError", "timed out"),
        "empty": ("PunchcardError", "holds no message"),
        "prose": ("PunchcardError", "does not follow the schema"),
        "wrong": ("PunchcardError", "does not follow the schema"),
        "twice": ("PunchcardError", "does not follow the schema"),
        "cut": ("PunchcardError", "cut off by the server"),
        "silent": ("PunchcardError", "holds no text"),
        "refused": ("BadRequestError", "no such response_format"),
    }
    for kind, (type, message) in expected.items():
        assert found[kind]["type"] == type and message in found[kind]["message"], (kind, found[kind])
    assert "message" in found["garbage"]
    assert found["wrong"]["text"] == '{"length": "five"}' and found["cut"]["text"] == '{"len'
    assert (server.seen["broken"], server.seen["refused"], server.seen["hang"]) == (3, 1, 3)
    body = server.bodies[0]
    assert body["response_format"]["json_schema"]["schema"] == LENGTH
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("tiny", 77, 0.0, 5)
    assert json.dumps(LENGTH) in body["messages"][0]["content"]


def test_an_endpoint_has_so_many_requests_at_once(server: Server) -> None:
    texts = [f"slow:{n}" for n in range(24)]
    results = batch.extract(texts, LENGTH, endpoint=server.url, concurrency=6)
    assert results.failed == 0 and 2 <= server.most <= 6


def test_the_key_comes_from_the_variable_that_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not for you")
    monkeypatch.setenv("MY_KEY", "s3cret")
    batch.extract(["a"], LENGTH, endpoint=server.url, model="tiny")
    assert server.keys == {"Bearer none"}
    batch.extract(["b"], LENGTH, endpoint=server.url, model="tiny", api_key_env="MY_KEY")
    assert server.keys == {"Bearer none", "Bearer s3cret"}
    with pytest.raises(PunchcardError, match="NO_KEY holds no API key"):
        batch.extract(["c"], LENGTH, endpoint=server.url, model="tiny", api_key_env="NO_KEY")


def test_a_server_that_refuses_everybody_ends_the_run(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with pytest.raises(ModelError, match=r"refuses to answer: .*wrong key"):
        batch.extract(["fine", "forbidden", "fine:2"], LENGTH, endpoint=server.url, out=path, concurrency=1)
    assert [row["index"] for row in rows_of(path)] == [0]
    server.models = ["tiny", "large"]
    with pytest.raises(ModelError, match=r"serves 2 models. Choose one with model: tiny, large"):
        batch.extract(["a"], LENGTH, endpoint=server.url)


@pytest.mark.parametrize("how", ["gone", "down", "busy"])
def test_a_server_that_goes_away_ends_the_run_and_spoils_no_row(server: Server, tmp_path: Path, how: str) -> None:
    path = tmp_path / "out.jsonl"
    texts = ["fine:1", "fine:2", *(f"{how}:{n}" for n in range(30))]
    asked: dict[str, Any] = {"endpoint": server.url, "out": path, "retries": 0, "concurrency": 1}
    with pytest.raises(ModelError, match="does not answer"):
        batch.extract(texts, LENGTH, **asked)
    assert {row["index"] for row in rows_of(path)} == {0, 1}
    server.answer = lambda text, times: Server.answer(server, "fine" + text, times)  # type: ignore[method-assign]
    assert batch.extract(texts, LENGTH, **asked).failed == 0
    assert sorted(row["index"] for row in rows_of(path)) == list(range(32))


def test_a_server_that_was_never_there() -> None:
    pytest.importorskip("openai")
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:9/v1 does not answer: Connection error"):
        batch.extract(["a", "b"], LENGTH, endpoint="http://127.0.0.1:9/v1", model="m", retries=0)


# Ray.


@needs_kill
def test_ray_workers_answer_and_one_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    from punchcard.batch.over_ray import answer_with_ray

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    texts = [f"text {n}" for n in range(32)]
    texts[5], texts[15], texts[25] = "bad", "poison once", "poison"
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}}
    ray.init(num_cpus=2, runtime_env=environment, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        answers = list(answer_with_ray(tasks(*texts), functools.partial(Writer, str(tmp_path)), 2))
        processes = check_answers(answers, texts)
        assert len(processes) >= 3 and os.getpid() not in processes
        with pytest.raises(PunchcardError, match=r"Ray cannot answer the documents: .*no model is called 'nix'"):
            batch.extract(["a"], LENGTH, model="nix", over="ray")
    finally:
        ray.shutdown()


def test_without_the_optional_packages_an_error_names_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ray", "openai", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "a.parquet").touch()
    with pytest.raises(PunchcardError, match=r"pip install 'punchcard\[ray\]'"):
        batch.extract(["a"], LENGTH, over="ray")
    with pytest.raises(PunchcardError, match=r"pip install 'punchcard\[remote\]'"):
        batch.extract(["a"], LENGTH, endpoint="http://x/v1", model="m")
    with pytest.raises(PunchcardError, match=r"pip install 'punchcard\[parquet\]'"):
        batch.extract(tmp_path / "a.parquet", LENGTH)


# The command.


def test_the_command(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("docs.csv").write_text("id,body\nx,fine\ny,wrong\n")
    Path("schema.json").write_text(json.dumps(LENGTH))
    command = ["batch", "docs.csv", "--schema", "schema.json", "--out", "out.jsonl", "--endpoint", server.url]
    command += ["--text-column", "body", "--concurrency", "2", "--retries", "0"]
    done = CliRunner().invoke(main, command)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("2 of 2 documents are done, 1 of them failed; 2 of them now")
    first, second = sorted(rows_of(Path("out.jsonl")), key=lambda row: row["index"])
    assert first == {"index": 0, "id": "x", "output": {"length": 4}} and second["id"] == "y"
    server.answer = lambda text, times: Server.answer(server, "fine", times)  # type: ignore[method-assign]
    again = CliRunner().invoke(main, [*command, "--retry-failed"])
    assert (again.exit_code, again.stderr[:26]) == (0, "2 of 2 documents are done;")
    changed = CliRunner().invoke(main, [*command, "--keep", "body"])
    assert changed.exit_code == 1 and "what differs is the source" in changed.stderr
    assert len(changed.stderr.splitlines()) == 1
    wrong = CliRunner().invoke(main, ["batch", "docs.csv", "--schema", "schema.json", "--out", "o", "--retries", "1"])
    assert wrong.exit_code == 2 and "--retries wants an --endpoint" in wrong.stderr


def test_ctrl_c_of_the_command(tmp_path: Path, answered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(punchcard.extraction, "as_chat", lambda name: StepChat(model()))
    Path("docs.txt").write_text("a\nstop\n")
    Path("schema.json").write_text(json.dumps(LENGTH))
    handler = signal.getsignal(signal.SIGINT)  # whoever runs the tests may have set another
    done = CliRunner().invoke(main, ["batch", "docs.txt", "--schema", "schema.json", "--out", "out.jsonl"])
    assert done.exit_code == 130
    assert (
        "interrupted after: 1 of 2 documents, which are in out.jsonl; the same again goes on from there" in done.stderr
    )
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("kind", ["schema", "vllm", "refused"])
def test_a_request_that_the_server_refuses_ends_the_run_at_once(kind: str, server: Server, tmp_path: Path) -> None:
    texts = [f"{kind}:{n}" for n in range(500)]
    with pytest.raises(ModelError, match="refuses the request, whatever the document") as raised:
        batch.extract(texts, LENGTH, endpoint=server.url, concurrency=4, out=tmp_path / "out.jsonl")
    assert raised.value.hint and len(server.bodies) <= 4
    assert rows_of(tmp_path / "out.jsonl") == []


def test_a_document_that_the_server_refuses_is_an_error_of_its_row(server: Server) -> None:
    for texts in (["long:a", "long:b"], ["fine:a", "schema", "fine:b"], ["schema", "fine:a", "fine:b"]):
        rows = list(batch.extract(texts, LENGTH, endpoint=server.url, concurrency=3))
        assert ["output" in row for row in rows] == [text.startswith("fine") for text in texts]
