"""What passes between a batch and whoever answers its documents.

A runtime (this process, worker processes, Ray, an endpoint) is a function from tasks to answers, in any order. It takes
tasks as it has room for them, so a long source is never in memory as a whole. Answers are JSON text: what they become
in Python is the batch's business, so that no type has to travel to another process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from punchcard.chat import Sampling
from punchcard.errors import PunchcardError
from punchcard.schemas import JsonSchema

if TYPE_CHECKING:
    from punchcard.extraction import Extractor, Shape
    from punchcard.generation import Model

#: Writes what a text says, as JSON text (perhaps a `Written`); raises what stands in the way.
Writer = Callable[[str], str]


@dataclass(frozen=True)
class Task:
    """A document to answer: its place in the source, from 0, and its text."""

    index: int
    text: str


@dataclass(frozen=True)
class Failure:
    """Why a document has no answer. ``text``: what had been written, where something had."""

    type: str
    message: str
    hint: str | None = None
    text: str | None = None

    @classmethod
    def of(cls, error: Exception) -> Failure:
        if isinstance(error, PunchcardError):
            text = error.fields.get("text")
            return cls(type(error).__name__, error.message, error.hint, text if isinstance(text, str) else None)
        return cls(type(error).__name__, str(error))

    def to_dict(self) -> dict[str, str | None]:
        fields: dict[str, str | None] = {"type": self.type, "message": self.message, "hint": self.hint}
        return fields if self.text is None else {**fields, "text": self.text}


@dataclass(frozen=True)
class Answer:
    """What became of a task: JSON text that follows the schema, or why there is none. ``cut_short``: the text is
    complete only because it had to fit its tokens."""

    index: int
    result: str | Failure
    cut_short: bool = False


@dataclass(frozen=True)
class Job:
    """What is asked of every document alike, and of which model; see `punchcard.Extractor`."""

    shape: Shape
    model: str | os.PathLike[str] | Model | None
    system: str | None
    sampling: Sampling

    def extractor(self) -> Extractor:
        return _extractor(self.shape, self.model, self.system, self.sampling)


#: What a runtime gives. Closing it ends what is under way.
Answers = Generator[Answer, None, None]


def attempt(writer: Writer, task: Task) -> Answer:
    """Has a task answered; whatever is raised becomes a failure of this task alone."""
    try:
        return answer_of(task, writer(task.text))
    except Exception as error:
        return Answer(task.index, Failure.of(error))


def answer_of(task: Task, written: str) -> Answer:
    """The answer to a task, of what was written."""
    return Answer(task.index, str(written), cut_short=getattr(written, "finish", None) == "budget")


def answer_here(tasks: Iterator[Task], job: Job) -> Answers:
    """The runtime of this process: one task after the other."""
    writer = job.extractor().write
    for task in tasks:
        yield attempt(writer, task)


def load_writer(
    json_schema: JsonSchema | bool,
    model: str | os.PathLike[str] | None,
    system: str | None,
    sampling: Sampling,
    threads: int,
) -> Writer:
    """A writer with a model of its own, which computes on ``threads`` threads; for another process to call."""
    from punchcard.models import LocalModel

    return _extractor(json_schema, LocalModel.load(model, threads=threads), system, sampling).write


def _extractor(
    schema: Any, model: str | os.PathLike[str] | Model | None, system: str | None, sampling: Sampling
) -> Extractor:
    from punchcard.extraction import Extractor

    return Extractor(
        schema,
        model,
        system=system,
        max_new_tokens=sampling.max_new_tokens,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        seed=sampling.seed,
    )
