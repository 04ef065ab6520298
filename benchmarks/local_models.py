"""How fast the local models read a prompt and write an answer.

    python benchmarks/local_models.py [MODEL ...] [--threads N] [--rounds N]

A round reads prompts of 100 and 1000 tokens into an empty cache, and writes 20 tokens after 100 and after 980. The best
round counts, since the others shared the machine with something; the median stands beside it.

Then it writes 8 tokens in each of 1 to 64 sequences at once, after 100 tokens that they share.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from punchcard.models import LocalModel

BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
TEXT = "The quick brown fox jumps over the lazy dog, and nobody in the village knows why it does so. "


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def report(what: str, tokens: int, times: list[float]) -> None:
    print(f"  {what:<26} {tokens / min(times):8.1f} tokens/s   (median {tokens / statistics.median(times):.1f})")


def measure(name: str, threads: int | None, rounds: int) -> LocalModel:
    begun = time.perf_counter()
    model = LocalModel.load(name, threads=threads)
    print(f"{model.name}: loaded in {time.perf_counter() - begun:.2f} s")
    ids = (model.tokenize(TEXT) * 60)[:1000]
    # Threads start, and kernels arrange their weights, when they are first needed.
    print(f"  first tokens in {seconds(lambda: (model.forward(ids[:1]), model.forward(ids[:16]))):.2f} s")
    for count, after in ((100, 100), (1000, 980)):
        times = []
        for _ in range(rounds if count == 100 else max(1, rounds // 3)):
            model.rewind(0)
            times.append(seconds(lambda count=count: model.forward(ids[:count])))  # type: ignore[misc]
        report(f"reading {count} tokens", count, times)
        times = []
        for _ in range(rounds):
            model.rewind(after)
            times.append(seconds(lambda: [model.forward([i]) for i in ids[:20]]))
        report(f"writing after {after}", 20, times)
    return model


def measure_batches(model: LocalModel, rounds: int) -> None:
    ids = (model.tokenize(TEXT) * 60)[:100]
    shared = model.sequence()
    model.forward_batch([(shared, ids)])
    sequences = [model.sequence() for _ in range(max(BATCHES))]
    times: dict[int, list[float]] = {size: [] for size in BATCHES}
    # Sizes take turns, so that a busy minute of the machine is not counted against one of them.
    for _ in range(rounds):
        for size in BATCHES:
            batch = sequences[:size]
            for sequence in batch:
                sequence.copy_from(shared, len(ids))
            steps = [[(sequence, [token + i]) for i, sequence in enumerate(batch)] for token in ids[:9]]
            model.forward_batch(steps[0])
            times[size].append(seconds(lambda steps=steps: [model.forward_batch(step) for step in steps[1:]]))  # type: ignore[misc]
    for size in BATCHES:
        report(f"writing {size} at once", 8 * size, times[size])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["smollm2-135m", "qwen2.5-coder-1.5b"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()
    for name in arguments.models:
        measure_batches(measure(name, arguments.threads, arguments.rounds), arguments.rounds)


if __name__ == "__main__":
    main()
