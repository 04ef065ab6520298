"""Does a grammar cost time, or save it? Whole answers of a local model, with a grammar and without.

    python benchmarks/end_to_end.py [--model smollm2-135m] [--rounds 3] [--limit N] [--threads N]

Each of the texts below is read into data of a shape, greedily, as `extract` does it. Measured, from the end of the
prompt to the last token:

- grammar: the answer under the schema; text that must follow is appended in one forward pass. ``first``: under a
  grammar that was just compiled, so that no mask of it is there yet; ``later``: the best of the following answers.
- no forced text: the same, with a forward pass for each token.
- no grammar: the same tokens, written one by one without a matcher: what a model takes that needs no help.
- free: what the model writes without a grammar, until it ends its answer or has written twice as many tokens; how many
  of these answers are valid is told too.

Also told is what the engine takes for each token (masks, steps, forced text, putting the mask on the logits), also as a
share of a forward pass, and what forward passes of one to 32 tokens take. The figures are printed, and written to
``results/end_to_end.json``. On a machine that does other work too, the shares say more than the seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

import punchcard
from punchcard import GrammarCompiler, GrammarMatcher, pydantic_schema
from punchcard.formats import detect_format
from punchcard.generation import Decoder
from punchcard.model_grammars import compile_schema
from punchcard.models import LocalModel
from punchcard.prompts import encode_prompt
from punchcard.sampling import Sampler

RESULTS = Path(__file__).parent / "results" / "end_to_end.json"
SYSTEM = "Write what the user's text says as JSON that follows this JSON Schema:\n{schema}"
MOST = 200


class Weather(BaseModel):
    city: str = Field(max_length=40)
    units: Literal["celsius", "fahrenheit"]
    days: int = Field(ge=1, le=14)


class Person(BaseModel):
    first_name: str = Field(max_length=30)
    last_name: str = Field(max_length=30)
    age: int = Field(ge=0, le=120)
    occupation: str = Field(max_length=40)


class Product(BaseModel):
    name: str = Field(max_length=60)
    price: float = Field(ge=0, le=10000)
    currency: Literal["EUR", "USD", "GBP"]
    in_stock: bool
    tags: list[str] = Field(max_length=4)


class Meeting(BaseModel):
    title: str = Field(max_length=60)
    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    start_time: str = Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")
    attendees: list[str] = Field(min_length=1, max_length=4)


class Ticket(BaseModel):
    category: Literal["billing", "technical", "account", "other"]
    priority: Literal["low", "normal", "high", "urgent"]
    customer_is_angry: bool
    summary: str = Field(max_length=100)


TEXTS: list[tuple[type[BaseModel], str]] = [
    (Weather, "What will the weather in Paris be like over the next three days, in Celsius?"),
    (Weather, "Give me a week's forecast for Chicago, in Fahrenheit please."),
    (Person, "Maria Castello, who is 41, has been a harbour pilot in Genoa for half of her life."),
    (Person, "The new teacher is called John Baker. He turned 29 last week."),
    (Product, "The Acme kettle costs 29.95 euros. We have plenty. It is red, quick and quiet."),
    (Product, "Sold out: the oak desk by Hilton & Sons, formerly 450 dollars."),
    (Meeting, "Let's discuss the budget on 2025-03-14 at half past nine: Ana, Bo and me, Carl."),
    (Meeting, "The planning session with Dora starts at 14:00 on the first of May 2025."),
    (Ticket, "I was charged twice this month!!! Give me my money back NOW."),
    (Ticket, "Hello, how do I change the e-mail address of my account? No hurry."),
]


class Stopwatch:
    """Seconds and calls by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            begun = time.perf_counter()
            try:
                return work(*arguments, **options)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun
                self.calls[name] = self.calls.get(name, 0) + 1

        return call


class TimedMatcher:
    """A matcher that notes what its methods take; ``forces`` tells whether it tells of forced text."""

    def __init__(self, matcher: GrammarMatcher, watch: Stopwatch, *, forces: bool = True) -> None:
        self.is_accepting = matcher.is_accepting
        self.fill_next_token_bitmask = watch.timed("mask", matcher.fill_next_token_bitmask)
        self.accept_token = watch.timed("accept", matcher.accept_token)
        forced = matcher.find_jump_forward_string
        self.find_jump_forward_string = watch.timed("forced", forced) if forces else lambda: ""


class TimedModel:
    """A model that notes what its forward passes and its tokenizer take."""

    def __init__(self, model: LocalModel, watch: Stopwatch) -> None:
        self._model = model
        self.forward = watch.timed("forward", model.forward)
        self.tokenize = watch.timed("tokenize", model.tokenize)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class Dictation(Sampler):
    """Looks for the best token as a greedy sampler does, and then takes the next one of ``tokens``."""

    def __init__(self, tokens: Sequence[int]) -> None:
        super().__init__()
        self._tokens = iter(tokens)

    def sample(self, logits: NDArray[np.float32]) -> int:
        super().sample(logits)
        return next(self._tokens)


class Bench:
    def __init__(self, model: LocalModel) -> None:
        self.model = model
        self.format = detect_format(model.chat_template, model.name)
        self.apply = punchcard.apply_token_bitmask_inplace

    def decoder(self, shape: type[BaseModel], text: str, watch: Stopwatch, sampler: Sampler, most: int) -> Decoder:
        """A decoder behind the prompt. What the prompt took is not counted."""
        system = SYSTEM.format(schema=json.dumps(pydantic_schema(shape)))
        messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        model = TimedModel(self.model, watch)
        decoder = Decoder(model, encode_prompt(model, self.format, messages, ()), sampler=sampler, max_new_tokens=most)
        watch.seconds.clear()
        watch.calls.clear()
        return decoder

    def constrained(
        self, shape: type[BaseModel], text: str, *, forces: bool = True, anew: bool = False
    ) -> dict[str, Any]:
        """An answer under the schema, which is compiled anew or was before."""
        watch = Stopwatch()
        decoder = self.decoder(shape, text, watch, Sampler(), MOST)
        if anew:
            compiler = GrammarCompiler(self.model.tokenizer_info)
            grammar = compiler.compile_json_schema(pydantic_schema(shape), whitespace="none")
        else:
            grammar = compile_schema(self.model, pydantic_schema(shape), whitespace="none")
        matcher = GrammarMatcher(grammar)
        # `Decoder.constrained` takes it from here.
        punchcard.apply_token_bitmask_inplace = watch.timed("apply", self.apply)
        begun = time.perf_counter()
        stretch = decoder.constrained(TimedMatcher(matcher, watch, forces=forces))
        seconds = time.perf_counter() - begun
        punchcard.apply_token_bitmask_inplace = self.apply
        return {
            "tokens": stretch.tokens,
            "text": stretch.text,
            "forced": decoder.statistics.forced_tokens,
            "seconds": seconds,
            "parts": watch.seconds,
            "passes": watch.calls["forward"],
        }

    def dictated(self, shape: type[BaseModel], text: str, tokens: Sequence[int]) -> float:
        """Seconds for the same tokens, one by one, without a matcher."""
        decoder = self.decoder(shape, text, Stopwatch(), Dictation(tokens), MOST)
        begun = time.perf_counter()
        decoder.free(until=lambda written: len(written) == len(tokens))
        return time.perf_counter() - begun

    def free(self, shape: type[BaseModel], text: str, most: int) -> tuple[float, int, bool]:
        """Seconds, tokens, and whether the answer is valid under the schema."""
        decoder = self.decoder(shape, text, Stopwatch(), Sampler(), most)
        begun = time.perf_counter()
        stretch = decoder.free()
        seconds = time.perf_counter() - begun
        try:
            TypeAdapter(shape).validate_json(stretch.text.strip().removeprefix("```json").strip("`\n "))
            return seconds, len(stretch.tokens), True
        except ValidationError:
            return seconds, len(stretch.tokens), False

    def passes(self) -> dict[str, float]:
        """Milliseconds of a forward pass by its tokens, after 300 tokens: the best of some."""
        ids = (self.model.tokenize("The quick brown fox jumps over the lazy dog. ") * 40)[:400]
        self.model.rewind(0)
        self.model.forward(ids[:300])
        out = {}
        for count in (1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24, 32):
            times = []
            for _ in range(12):
                self.model.rewind(300)
                begun = time.perf_counter()
                self.model.forward(ids[300 : 300 + count])
                times.append(time.perf_counter() - begun)
            out[str(count)] = round(1e3 * min(times), 2)
        return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, help="only so many texts")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--no-write", action="store_true", help="only print")
    arguments = parser.parse_args()
    model = LocalModel.load(arguments.model, threads=arguments.threads)
    bench = Bench(model)
    model.forward(model.tokenize("Threads start when they are first needed."))

    names = ("grammar, first", "grammar, later", "no forced text", "no grammar", "free")
    seconds: dict[str, list[float]] = {name: [] for name in names}
    parts: dict[str, list[dict[str, float]]] = {"first": [], "later": []}
    tokens = forced = passes = valid = free_tokens = 0
    for shape, text in TEXTS[: arguments.limit]:
        first = bench.constrained(shape, text, anew=True)
        later = min((bench.constrained(shape, text) for _ in range(arguments.rounds)), key=lambda run: run["seconds"])
        without = [bench.constrained(shape, text, forces=False) for _ in range(arguments.rounds)]
        dictated = [bench.dictated(shape, text, later["tokens"]) for _ in range(arguments.rounds)]
        free = [bench.free(shape, text, 2 * len(later["tokens"])) for _ in range(arguments.rounds)]
        found = (
            first["seconds"],
            later["seconds"],
            min(run["seconds"] for run in without),
            min(dictated),
            min(free)[0],
        )
        for name, figure in zip(names, found, strict=True):
            seconds[name].append(figure)
        parts["first"].append(first["parts"])
        parts["later"].append(later["parts"])
        tokens += len(later["tokens"])
        forced += later["forced"]
        passes += later["passes"]
        free_tokens += free[0][1]
        valid += free[0][2]
        print(f"{shape.__name__:8} {' '.join(f'{1e3 * figure:7.0f} ms' for figure in found)}  {later['text']}")

    one_by_one = sum(seconds["no grammar"]) / tokens
    engine: dict[str, dict[str, float]] = {}
    for when, of_answers in parts.items():
        total = {name: sum(part.get(name, 0.0) for part in of_answers) for name in of_answers[0]}
        engine[when] = {name: round(1e6 * total[name] / tokens, 1) for name in sorted(total)}
        spent = sum(total[name] for name in ("mask", "apply", "accept", "forced"))
        engine[when]["share of a forward pass, %"] = round(100 * spent / tokens / one_by_one, 2)
        engine[when]["masks, % of a forward pass"] = round(100 * total["mask"] / tokens / one_by_one, 2)
    result = {
        "model": model.name,
        "answers": len(seconds["free"]),
        "tokens": tokens,
        "forced_tokens": forced,
        "forward_passes": passes,
        "milliseconds_per_answer": {name: round(1e3 * statistics.mean(times), 1) for name, times in seconds.items()},
        "milliseconds_per_token_without_grammar": round(1e3 * one_by_one, 2),
        "free_answers": {"tokens": free_tokens, "valid": valid},
        "microseconds_per_token": engine,
        "milliseconds_of_a_forward_pass_by_tokens": bench.passes(),
    }
    print(json.dumps(result, indent=1))
    if not arguments.no_write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
