"""Ray Data: workers with a model each, on the machines of a Ray cluster.

The tasks go out in blocks of a few. Ray restarts a worker that is killed and has it answer its block once more. A block
that is lost even so is taken apart, and its documents are tried one by one: that finds the one which kills workers.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from punchcard.batch.answers import Answer, Answers, Failure, Task, Writer, attempt
from punchcard.batch.workers import WORKER_DIED
from punchcard.errors import PunchcardError, extra_hint

#: A block is what Ray hands out, tries again and gives back at once.
_MAX_BLOCK = 16
_BLOCKS_PER_WORKER = 8


def answer_with_ray(tasks: Iterator[Task], open_writer: Callable[[int], Writer], count: int | None = None) -> Answers:
    """Answers tasks with ``count`` Ray workers (`None`: one for each machine of the cluster), in which
    ``open_writer(threads)`` makes what answers them.

    Uses the cluster that this process is connected to or that ``RAY_ADDRESS`` names; else it starts one on this machine
    and ends it in the end. All tasks are put into Ray's store at once.

    Raises `PunchcardError` if ray is not installed, or the workers cannot be started.
    """
    try:
        import ray
        import ray.data
    except ImportError:
        raise PunchcardError("Ray is not installed", hint=extra_hint("ray")) from None
    ours = not ray.is_initialized()
    if ours:
        # Its usage statistics would leave the machine.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(log_to_driver=False, logging_level=logging.WARNING)
    try:
        cluster: Any = ray  # what tells of it has no types
        count = count or sum(bool(node["Alive"]) for node in cluster.nodes())
        threads = max(1, int(cluster.cluster_resources().get("CPU", 1)) // count)
        left = {task.index: task for task in tasks}
        size = max(1, min(_MAX_BLOCK, len(left) // (count * _BLOCKS_PER_WORKER)))
        for block in (size, 1):
            for answer in _answer_blocks(list(left.values()), block, open_writer, threads, count) if left else ():
                del left[answer.index]
                yield answer
        for index in left:
            yield Answer(index, WORKER_DIED)
    finally:
        if ours:
            ray.shutdown()


def _answer_blocks(
    tasks: Sequence[Task], block: int, open_writer: Callable[[int], Writer], threads: int, count: int
) -> Answers:
    import ray.data
    import ray.exceptions

    items = [{"index": task.index, "text": task.text} for task in tasks]
    try:
        with _quiet_and_lenient():
            rows = ray.data.from_items(items, override_num_blocks=-(-len(items) // block))
            # One block at a time for each worker: those that wait in line for one that dies count as tried.
            answers = rows.map_batches(
                _Worker,
                fn_constructor_args=(open_writer, threads),
                batch_size=None,
                compute=ray.data.ActorPoolStrategy(size=min(count, len(items)), max_tasks_in_flight_per_actor=1),
                num_cpus=1,
                max_restarts=-1,
                max_task_retries=1,
            )
            for row in answers.iter_rows():
                failure = json.loads(row["failure"])
                yield Answer(int(row["index"]), Failure(**failure) if failure else str(row["result"]))
    except ray.exceptions.RayError as error:
        raise PunchcardError(f"Ray cannot answer the documents: {_cause(error)}") from error


@contextlib.contextmanager
def _quiet_and_lenient() -> Iterator[None]:
    """Has Ray Data go on where a block is lost, and keep its plans and traces to itself: lost documents are seen to."""
    import ray.data

    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    before = context.max_errored_blocks, context.enable_progress_bars, logger.level
    context.max_errored_blocks, context.enable_progress_bars = -1, False
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            # From 2.60 on Ray would rather have names for these arguments, and has none yet for the retries.
            warnings.filterwarnings("ignore", message="`ray_remote_args` is deprecated")
            yield
    finally:
        context.max_errored_blocks, context.enable_progress_bars = before[:2]
        logger.setLevel(before[2])


class _Worker:
    """What Ray runs: a model that answers a block of tasks at a time."""

    def __init__(self, open_writer: Callable[[int], Writer], threads: int) -> None:
        self._writer = open_writer(threads)

    def __call__(self, block: dict[str, Any]) -> dict[str, list[Any]]:
        rows: dict[str, list[Any]] = {"index": [], "result": [], "failure": []}
        for index, text in zip(block["index"], block["text"], strict=True):
            result = attempt(self._writer, Task(int(index), str(text))).result
            failed = isinstance(result, Failure)
            rows["index"].append(index)
            rows["result"].append("" if failed else result)
            rows["failure"].append(json.dumps(result.to_dict() if isinstance(result, Failure) else None))
        return rows


def _cause(error: BaseException) -> str:
    """What a worker raised, without the traces of all that it went through: their last line says it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
