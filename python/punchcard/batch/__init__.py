"""Extraction from many documents.

    from punchcard import batch

    batch.extract("reviews.jsonl", Review, out="found.jsonl")              # in this process, with the default model
    batch.extract("reviews.jsonl", Review, out="found.jsonl", workers=4)   # in four, with a model each
    batch.extract("reviews.jsonl", Review, out="found.jsonl", over="ray")  # on the machines of a Ray cluster
    batch.extract("reviews.jsonl", Review, out="found.jsonl", endpoint="http://localhost:8000/v1")

Every document gets a row, ``{"index", columns kept from the source, "output"}``, or ``"error"`` in place of
``"output"``. Where an answer was cut short to be complete within its tokens, its row has ``"finish": "budget"``. A row
is in the file as soon as it is known; a run that was broken off goes on where it stopped.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from punchcard.batch.answers import Answer, Answers, Failure, Job, Task, answer_here, load_writer
from punchcard.batch.documents import Document, Source, open_source
from punchcard.batch.output import FileOutput, MemoryOutput, Output, Row
from punchcard.chat import Sampling
from punchcard.errors import PunchcardError
from punchcard.generation import Interrupted

if TYPE_CHECKING:
    from punchcard.batch.endpoint import Endpoint
    from punchcard.extraction import Shape
    from punchcard.generation import Model

__all__ = ["Results", "Row", "extract"]


@dataclass
class Results:
    """What became of a batch. Iterating gives its rows in the order of the source.

    Attributes:
        documents: how many the source has.
        done: rows that there are; of these ``resumed`` were there before the run, and ``failed`` hold an error.
        seconds: how long the run took, wall time.
        path: the file with the rows, or `None`.
    """

    documents: int
    resumed: int
    path: Path | None
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    _output: Output = field(default_factory=MemoryOutput, repr=False)

    def __iter__(self) -> Iterator[Row]:
        return self._output.rows()

    def __str__(self) -> str:
        """In words: ``480 of 500 documents are done, 3 of them failed; 380 of them now, 1.3 a second``."""
        now = self.done - self.resumed
        failed = f", {self.failed} of them failed" if self.failed else ""
        rate = f", {now / self.seconds:.2g} a second" if now and self.seconds else ""
        return f"{self.done} of {self.documents} documents are done{failed}; {now} of them now{rate}"


def extract(
    source: str | os.PathLike[str] | Iterable[str | Mapping[str, Any]],
    schema: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    model: str | os.PathLike[str] | Model | None = None,
    text_column: str = "text",
    keep: Sequence[str] = (),
    system: str | None = None,
    max_new_tokens: int = 512,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    workers: int | None = None,
    over: Literal["ray"] | None = None,
    endpoint: str | None = None,
    concurrency: int = 16,
    api_key_env: str | None = None,
    timeout: float = 120.0,
    retries: int = 5,
    overwrite: bool = False,
    retry_failed: bool = False,
    progress: bool | None = None,
) -> Results:
    """Runs `punchcard.extract` over many documents.

    ``source``: a ``.jsonl``, ``.csv``, ``.txt`` (one document a line) or ``.parquet`` file, or texts and mappings. The
    text is in ``text_column``; the columns ``keep``, by default ``id`` where there is one, are copied to the rows.
    ``schema``, ``system`` and sampling: as `punchcard.Extractor` takes them; an instance is written as plain data.

    ``out``: a file of JSON lines; without, rows are kept in memory. If it is there, the run goes on: rows that it has
    are not done again, or with ``retry_failed`` only those without an error. With several workers, rows come in the
    order in which they are finished.

    Who answers:

    - this process, with ``model`` as `punchcard.Extractor` takes it;
    - ``workers`` processes, each with the model of this name or file;
    - ``over="ray"``: ``workers`` Ray workers (by default one for each machine of the cluster), likewise;
    - ``endpoint``: a server with OpenAI's API, which has ``concurrency`` requests to do at once; its key is in the
      environment variable ``api_key_env``. ``timeout`` is in seconds, for each try; ``retries`` for each document.

    ``progress``: show a bar on stderr; by default, on a terminal.

    A document that cannot be answered never ends the run: its row says why. Raises `PunchcardError` where nothing can
    be answered: the source cannot be read, ``out`` comes from another source, schema, model, instruction or sampling
    (unless ``overwrite``), the server is gone; `SchemaError` if the schema, `ModelError` if the model cannot be used.
    Ctrl-C raises `Interrupted`, whose ``result`` are the `Results` so far.
    """
    from punchcard.extraction import Shape

    job = Job(Shape(schema), model, system, Sampling(max_new_tokens, temperature, top_k, top_p, seed))
    server = None
    if endpoint is not None:
        server = _endpoint(endpoint, job, concurrency, api_key_env, timeout, retries)
    _check_runtime(job, workers, over, server)
    documents = open_source(source, text_column, keep)
    count, digest = documents.survey()
    output: Output = MemoryOutput()
    if out is not None:
        _check_apart(source, out)
        output = FileOutput(Path(out), _identity(digest, job, server), overwrite=overwrite, retry_failed=retry_failed)
    results = Results(count, len(output.finished), Path(out) if out is not None else None, _output=output)
    started = time.perf_counter()
    try:
        left = count - len(output.finished)
        if left:
            runtime = functools.partial(_answers, job=job, workers=workers, over=over, server=server, left=left)
            _run(documents, runtime, job.shape, output, count, progress)
    except KeyboardInterrupt:
        kept = f", which are in {out}; the same again goes on from there" if out is not None else ""
        raise Interrupted(f"{len(output.finished)} of {count} documents{kept}", results) from None
    finally:
        results.done = len(output.finished)
        results.failed = sum(not succeeded for succeeded in output.finished.values())
        results.seconds = time.perf_counter() - started
        output.close()
    return results


def _run(
    documents: Source,
    runtime: Callable[[Iterator[Task]], Answers],
    shape: Shape,
    output: Output,
    count: int,
    progress: bool | None,
) -> None:
    """Has all documents answered that have no row yet."""
    from tqdm import tqdm

    waiting: dict[int, Document] = {}  # those that somebody is at work on
    finished = frozenset(output.finished)
    disable = None if progress is None else not progress  # None: where stderr is no terminal
    with tqdm(total=count, initial=len(finished), unit="doc", disable=disable) as bar:

        def write(document: Document, result: Mapping[str, Any]) -> None:
            output.write({"index": document.index, **document.kept, **result})
            bar.update()

        def tasks() -> Iterator[Task]:
            for document in documents.read():
                if document.index in finished:
                    continue
                if isinstance(document.text, Failure):
                    write(document, {"error": document.text.to_dict()})
                else:
                    waiting[document.index] = document
                    yield Task(document.index, document.text)

        with closing(runtime(tasks())) as answers:
            for answer in answers:
                write(waiting.pop(answer.index), _result(shape, answer))


def _result(shape: Shape, answer: Answer) -> Row:
    if isinstance(answer.result, Failure):
        return {"error": answer.result.to_dict()}
    try:
        row: Row = {"output": shape.read_plain(answer.result)}
        return {**row, "finish": "budget"} if answer.cut_short else row
    except Exception as error:  # whatever a validator of the type raises
        return {"error": Failure.of(error).to_dict()}


def _answers(
    tasks: Iterator[Task], *, job: Job, workers: int | None, over: str | None, server: Endpoint | None, left: int
) -> Answers:
    """The runtime that was asked for, at work on ``tasks``, which are ``left`` at most."""
    if server is not None:
        from punchcard.batch.endpoint import answer_at_endpoint

        return answer_at_endpoint(tasks, server, job.shape, job.system, job.sampling)
    if over is None and workers is None:
        return answer_here(tasks, job)
    assert job.model is None or isinstance(job.model, (str, os.PathLike))  # `_check_runtime` has seen to it
    load = functools.partial(load_writer, job.shape.json_schema, job.model, job.system, job.sampling)
    if over is not None:
        from punchcard.batch.over_ray import answer_with_ray

        return answer_with_ray(tasks, load, workers)
    from punchcard.batch.workers import answer_in_processes

    assert workers is not None
    workers = min(workers, left)
    threads = max(1, (os.cpu_count() or 1) // workers)
    return answer_in_processes(tasks, functools.partial(load, threads), workers)


def _endpoint(url: str, job: Job, concurrency: int, api_key_env: str | None, timeout: float, retries: int) -> Endpoint:
    from punchcard.batch.endpoint import Endpoint

    if job.model is not None and not isinstance(job.model, str):
        raise PunchcardError("With an endpoint, model is the name of one that the server has")
    return Endpoint(url, job.model, concurrency, api_key_env, timeout, retries)


def _check_runtime(job: Job, workers: int | None, over: str | None, server: Endpoint | None) -> None:
    if over not in (None, "ray"):
        raise PunchcardError(f"over is {over!r}; it is 'ray' or None")
    if workers is not None and workers < 1:
        raise PunchcardError(f"workers is {workers}; it must be at least 1")
    if server is not None and (workers is not None or over is not None):
        raise PunchcardError("With an endpoint there are no workers", hint="concurrency says how many requests it gets")
    shared = workers is not None or over is not None
    if shared and job.model is not None and not isinstance(job.model, (str, os.PathLike)):
        raise PunchcardError(
            "Workers load the model themselves", hint="Give its name or its file instead of a model that is loaded"
        )


def _check_apart(source: Any, out: str | os.PathLike[str]) -> None:
    if isinstance(source, (str, os.PathLike)) and Path(out).exists() and os.path.samefile(source, out):
        raise PunchcardError(f"{os.fspath(out)} is the source", hint="Write the rows to another file")


def _identity(source: str, job: Job, server: Endpoint | None) -> dict[str, Any]:
    """What rows depend on. The server's address is left out, and what only bounds an answer: both may change."""
    sampling = asdict(job.sampling)
    del sampling["max_new_tokens"], sampling["stop"]
    schema = json.dumps(job.shape.json_schema)  # the order of properties is that of what is written
    return {
        "source": source,
        "schema": hashlib.sha256(schema.encode()).hexdigest(),
        "model": f"{server.model or 'the only one'} of a server" if server is not None else _model_name(job.model),
        "instruction": job.system,
        "sampling": sampling,
    }


def _model_name(model: str | os.PathLike[str] | Model | None) -> str:
    from punchcard.models.catalogue import DEFAULT_MODEL

    if model is None:
        return DEFAULT_MODEL
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        return f"{path.name}, {path.stat().st_size} bytes" if path.is_file() else str(model).lower()
    return model.name
