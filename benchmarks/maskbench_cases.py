"""What the checks over MaskBench share: its schemas, validators that judge documents, processes with a time limit.

MaskBench is read from ``../shared``, next to the repository, and is no part of it.
"""

from __future__ import annotations

import argparse
import contextlib
import decimal
import gzip
import json
import multiprocessing
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
from tqdm import tqdm

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"
Row = dict[str, Any]
Judge = Callable[[str], "str | None"]

decimal.getcontext().prec = 2_000
warnings.simplefilter("ignore")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shared", type=Path, default=SHARED, help="the folder with data/maskbench.jsonl.gz")
    parser.add_argument("--sample", type=int, default=0, help="as many schemas, drawn by chance; 0 for all")
    parser.add_argument("--part", default="0/1", help="i/n: every n-th schema, from the i-th")
    parser.add_argument("--only", help="one id, or a prefix of ids")
    parser.add_argument("--limit", type=float, default=20, help="seconds for one schema")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=Path, help="results as JSON lines; ids that are there already are not run again")


def cases(args: argparse.Namespace) -> list[Row]:
    """The schemas that the arguments ask for, each with its instances; those with a row already are left out."""
    path = args.shared / "data" / "maskbench.jsonl.gz"
    if not path.exists():
        sys.exit(f"skipped: {path} is absent")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    if args.only:
        found = [case for case in found if case["id"].startswith(args.only)]
    if args.sample:
        found = random.Random(args.seed).sample(found, min(args.sample, len(found)))
    part, parts = map(int, args.part.split("/"))
    done = {row["id"] for row in read_rows(args.rows)}
    return [case for case in found[part::parts] if case["id"] not in done]


def read_rows(path: Path | None) -> list[Row]:
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def run(check: Callable[[Row], Row], args: argparse.Namespace) -> list[Row]:
    """Check every case, each within the time limit; the rows, old and new."""
    todo, rows = cases(args), read_rows(args.rows)
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(args.rows.open("a", encoding="utf-8")) if args.rows else None
        for row in tqdm(in_time(check, todo, args.limit), total=len(todo), mininterval=5):
            rows.append(row)
            if out is not None:
                out.write(json.dumps(row) + "\n")
                out.flush()
    return rows


def in_time(check: Callable[[Row], Row], todo: list[Row], limit: float) -> Iterator[Row]:
    """One row for each case. A process is forked for a few hundred cases, and anew where one died or took too long."""
    context = multiprocessing.get_context("fork")
    position = 0
    while position < len(todo):
        batch = todo[position : position + 250]
        here, there = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(check, batch, there), daemon=True)
        worker.start()
        there.close()
        for case in batch:
            position += 1
            try:
                if here.poll(limit):
                    yield here.recv()
                    continue
                yield {"id": case["id"], "slow": limit}
            except EOFError:
                yield {"id": case["id"], "died": True}
            break
        worker.kill()
        worker.join()


def _work(check: Callable[[Row], Row], batch: list[Row], pipe: Any) -> None:
    for case in batch:
        pipe.send(check(case))


class Validators:
    """What jsonschema and jsonschema-rs say of documents of one schema, formats asserted, numbers exact."""

    def __init__(self, schema: Any) -> None:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        self._makers: dict[str, Callable[[], Judge]] = {
            "jsonschema": lambda: _python_judge(kind, schema),
            "jsonschema-rs": lambda: _rust_judge(kind.__name__, schema),
        }
        self._judges: dict[str, Judge] = {}

    def objections(self, text: str) -> dict[str, str]:
        """By validator, why the document is invalid; ``broken:`` where the validator itself fails."""
        found = {}
        for name, make in self._makers.items():
            try:
                if name not in self._judges:
                    self._judges[name] = make()
                objection = self._judges[name](text)
            except Exception as error:  # what validators raise on odd patterns and numbers is theirs
                objection = f"broken: {type(error).__name__}: {error}"
            if objection:
                found[name] = objection[:150] + " ... " + objection[-150:] if len(objection) > 305 else objection
        return found


def _python_judge(kind: Any, schema: Any) -> Judge:
    numbers = kind.TYPE_CHECKER.redefine("integer", _is_integer)
    exact = json.loads(json.dumps(schema), parse_float=Decimal)
    validator = jsonschema.validators.extend(kind, type_checker=numbers)(exact, format_checker=kind.FORMAT_CHECKER)

    def judge(text: str) -> str | None:
        error = next(validator.iter_errors(json.loads(text, parse_float=Decimal)), None)
        return error and f"{error.validator} at {error.json_path}: {error.message}"

    return judge


def _rust_judge(kind: str, schema: Any) -> Judge:
    validator = getattr(jsonschema_rs, kind)(schema, validate_formats=True)

    def judge(text: str) -> str | None:
        error = next(validator.iter_errors(json.loads(text, parse_float=_double)), None)
        return error and f"{error.kind.name} at {error.instance_path}: {error.message}"

    return judge


def _double(text: str) -> float:
    if abs(value := float(text)) == float("inf"):
        raise OverflowError("a number beyond double precision")
    return value


def _is_integer(_: Any, value: Any) -> bool:
    if isinstance(value, Decimal):
        return bool(value == value.to_integral_value())
    return isinstance(value, int) and not isinstance(value, bool)


def no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name twice")
    return dict(pairs)
