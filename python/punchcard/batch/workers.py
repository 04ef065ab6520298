"""Worker processes: each has a model of its own and answers one document at a time.

A worker may be killed, by the system where memory is short or by a fault in native code. The document that it was busy
with is tried once more by a fresh one, and then given up; the others go on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext

from punchcard.batch.answers import Answer, Answers, Failure, Task, Writer, attempt
from punchcard.errors import PunchcardError

#: So many workers in a row that die before they are ready end the run.
_MAX_FAILED_STARTS = 3

WORKER_DIED = Failure(
    "WorkerDied",
    "The worker that read the document was killed, twice",
    hint="If memory was short, use fewer workers or a smaller model",
)


def answer_in_processes(tasks: Iterator[Task], open_writer: Callable[[], Writer], count: int) -> Answers:
    """Answers tasks in ``count`` processes, in which ``open_writer`` (which can be pickled) makes what answers them.

    Raises what ``open_writer`` raises, and `PunchcardError` if the workers do not come to life.
    """
    context = multiprocessing.get_context("spawn")  # a fork would share the locks of the model's threads
    again: deque[Task] = deque()
    died_once: set[int] = set()
    failed_starts = 0
    exhausted = False
    workers = [_Worker(context, open_writer) for _ in range(count)]
    try:
        while workers:
            for connection in wait([worker.connection for worker in workers]):
                worker = next(worker for worker in workers if worker.connection is connection)
                task, message = worker.task, worker.receive()
                if message is None:
                    workers.remove(worker)
                    worker.stop()
                    if task is not None and task.index in died_once:
                        yield Answer(task.index, WORKER_DIED)
                    elif task is not None:
                        died_once.add(task.index)
                        again.append(task)
                    failed_starts = 0 if worker.ready else failed_starts + 1
                    if failed_starts == _MAX_FAILED_STARTS:
                        raise PunchcardError(
                            "The workers die before they are ready",
                            hint="If memory is short, use fewer; a script must guard what it does with"
                            " if __name__ == '__main__'",
                        )
                    if again or not exhausted:
                        workers.append(_Worker(context, open_writer))
                    continue
                if isinstance(message, Exception):
                    raise message
                if isinstance(message, Answer):
                    yield message
                following = again.popleft() if again else next(tasks, None)
                if following is None:
                    exhausted = True
                    workers.remove(worker)
                    worker.stop()
                else:
                    worker.send(following)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """The parent's side of a worker. ``task``: what it is busy with."""

    def __init__(self, context: SpawnContext, open_writer: Callable[[], Writer]) -> None:
        self.connection, theirs = context.Pipe()
        self.ready = False
        self.task: Task | None = None
        self._process = context.Process(target=_serve, args=(theirs, open_writer), daemon=True)
        self._process.start()
        theirs.close()  # so that the connection ends with the process

    def send(self, task: Task) -> None:
        self.task = task
        with contextlib.suppress(OSError):  # it has just died, which `receive` will tell
            self.connection.send(task)

    def receive(self) -> _Ready | Answer | Exception | None:
        """What it has to say; `None` if it died."""
        try:
            message: _Ready | Answer | Exception = self.connection.recv()
        except (EOFError, OSError):
            return None
        self.ready = True
        self.task = None
        return message

    def stop(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join()
        self._process.close()


class _Ready:
    """Says that a worker waits for its first task."""


def _serve(connection: Connection, open_writer: Callable[[], Writer]) -> None:
    """The life of a worker. It ends when the parent closes the connection, or is no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides
    with contextlib.suppress(EOFError, OSError):
        try:
            writer = open_writer()
        except PunchcardError as error:
            connection.send(error)
            return
        except Exception as error:
            connection.send(PunchcardError(f"A worker cannot start: {type(error).__name__}: {error}"))
            return
        connection.send(_Ready())
        while True:
            connection.send(attempt(writer, connection.recv()))
