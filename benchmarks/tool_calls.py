"""How well do models call tools, with the grammar and without?

    python benchmarks/tool_calls.py [--models smollm2-135m] [--grammar on|off|both] [--limit N] [--verbose]
        [--runtime embedded,transformers,llama-cpp-python]

Each of the 40 requests in ``data/tool_calls.json`` is answered by one turn of the model, over the tools of
``examples/home.py``, greedily. Printed for each model, with the grammar and without:

- valid: answers whose calls all name a tool and fit its schema (one that begins a call of a tool and garbles it is
  invalid; a call of a function that there is not is text);
- tools: answers that call just the tools that were expected, or none where none serves;
- arguments: those of them whose arguments are also among the expected ones, defaults filled in;
- tokens/s of generation, forced tokens included, and seconds for each answer, from request to last token.

With several runtimes, the same weights run in each of them. Printed besides: answers that are the same as those of the
first one, and how fast the runtime writes by itself, unconstrained, after the same prompt.

An expected call lists for each argument the values that are right, or ``"*"`` where all are; arguments that it does not
mention must have their default.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runtime_models import RUNTIMES
from tqdm import tqdm

from punchcard import Agent, GrammarMatcher, Tool, load_tools
from punchcard.errors import PunchcardError
from punchcard.generation import Model
from punchcard.model_grammars import compile_schema

HERE = Path(__file__).parent
Call = dict[str, Any]


class Judge:
    """Says of an answer's calls whether they are valid, and whether they are right."""

    def __init__(self, model: Model, tools: Sequence[Tool]) -> None:
        self._model = model
        self._tools = {tool.name: tool for tool in tools}

    def is_valid(self, call: Call) -> bool:
        """Whether the call names a tool, its arguments match the schema, and the function would take them."""
        tool = self._tools.get(call["name"])
        if tool is None:
            return False
        matcher = GrammarMatcher(compile_schema(self._model, tool.parameters, profile="spec"))
        if not (matcher.accept_string(json.dumps(call["arguments"])) and matcher.is_accepting()):
            return False
        try:
            tool.signature.bind(call["arguments"])
        except PunchcardError:
            return False
        return True

    def has_right_arguments(self, calls: Sequence[Call], expected: Sequence[Call]) -> bool:
        """Whether the calls match the expected ones, in any order."""
        rest = list(calls)
        for wanted in expected:
            match = next((call for call in rest if self._matches(call, wanted)), None)
            if match is None:
                return False
            rest.remove(match)
        return not rest

    def _matches(self, call: Call, wanted: Call) -> bool:
        if call["name"] != wanted["name"]:
            return False
        properties = self._tools[call["name"]].parameters["properties"]
        for name, schema in properties.items():
            right = wanted["arguments"].get(name, [schema.get("default")])
            given = call["arguments"].get(name, schema.get("default"))
            if right != "*" and not any(_same(given, value) for value in right):
                return False
        return True


def _same(given: Any, right: Any) -> bool:
    """Equality of JSON data, up to the case of strings and to members of nested objects that are left at a default."""
    if isinstance(given, str) and isinstance(right, str):
        return given.casefold().strip(" .") == right.casefold()
    if isinstance(given, dict) and isinstance(right, dict):
        defaults = {"minute": 0, "unit": "piece", "quantity": None}
        return all(_same(given.get(k, defaults.get(k)), right.get(k, defaults.get(k))) for k in {*given, *right})
    if isinstance(given, list) and isinstance(right, list):
        return len(given) == len(right) and all(map(_same, given, right))
    # In Python 1 == True; in JSON it is not.
    return bool(given == right) and isinstance(given, bool) == isinstance(right, bool)


def measure(
    model: Model,
    tools: Sequence[Tool],
    requests: Sequence[Any],
    *,
    grammar: bool,
    verbose: bool,
    reference: list[Any] | None = None,
) -> tuple[Call, list[Any]]:
    """The figures of one model in one mode, and its answers. ``reference``: answers to compare them with."""
    judge = Judge(model, tools)
    agent = Agent(tools, model, grammar=grammar)
    agent.complete("Good morning")  # what is computed once for all requests is not counted
    counts = {"valid": 0, "tools": 0, "arguments": 0}
    tokens = forced = 0
    answers: list[Any] = []
    writing = seconds = 0.0
    for request in tqdm(requests, desc=f"{model.name}, {'with' if grammar else 'without'} grammar", disable=None):
        agent.reset()
        started = time.perf_counter()
        answer = agent.complete(request["query"])
        seconds += time.perf_counter() - started
        calls = answer["function_calls"]
        answers.append(calls or answer["text"])
        begun = agent.tool_format.mark in answer["text"] or any(f'"{tool.name}"' in answer["text"] for tool in tools)
        valid = answer["success"] and all(map(judge.is_valid, calls)) and not (begun and not calls)
        alternatives = request["calls"]
        names = sorted(call["name"] for call in calls)
        right_tools = any(names == sorted(call["name"] for call in expected) for expected in alternatives)
        right = valid and any(judge.has_right_arguments(calls, expected) for expected in alternatives)
        counts["valid"] += valid
        counts["tools"] += right_tools
        counts["arguments"] += right
        tokens += answer["timings"]["generated_tokens"]
        forced += answer["timings"]["forced_tokens"]
        writing += answer["timings"]["generation_seconds"]
        if verbose and not right:
            mark = "arguments" if right_tools and valid else "tool" if valid else "invalid"
            tqdm.write(
                f"  {mark:9} {request['query']}\n            {json.dumps(calls) if calls else answer['text'][:200]!r}"
            )
    share = {name: round(100 * count / len(requests), 1) for name, count in counts.items()}
    same = {} if reference is None else {"same": sum(a == b for a, b in zip(answers, reference, strict=True))}
    row = {
        "model": model.name,
        "grammar": grammar,
        **share,
        **same,
        "tokens_per_second": round(tokens / writing, 1),
        "forced_share": round(100 * forced / max(tokens, 1), 1),
        "seconds_per_answer": round(seconds / len(requests), 2),
    }
    return row, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--models", default="smollm2-135m,qwen2.5-coder-1.5b", help="names or paths, with commas between"
    )
    parser.add_argument("--tools", default=HERE.parent / "examples" / "home.py")
    parser.add_argument("--requests", default=HERE / "data" / "tool_calls.json", type=Path)
    parser.add_argument("--grammar", choices=("on", "off", "both"), default="both")
    parser.add_argument("--runtime", default="embedded", help=f"some of {', '.join(RUNTIMES)}, with commas between")
    parser.add_argument("--limit", type=int, help="only so many requests")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON lines")
    parser.add_argument("--verbose", action="store_true", help="print what went wrong")
    arguments = parser.parse_args()
    requests = json.loads(arguments.requests.read_text())[: arguments.limit]
    tools = load_tools(arguments.tools)
    rows = []
    for name in arguments.models.split(","):
        reference: dict[bool, list[Any]] = {}
        for runtime in arguments.runtime.split(","):
            model, speed = RUNTIMES[runtime](name)
            for grammar in {"on": [True], "off": [False], "both": [True, False]}[arguments.grammar]:
                row, answers = measure(
                    model,
                    tools,
                    requests,
                    grammar=grammar,
                    verbose=arguments.verbose,
                    reference=reference.get(grammar),
                )
                reference.setdefault(grammar, answers)
                prompt = model.tokenize("Write a story about a lighthouse and its keeper.\n" * 20)
                rows.append({"runtime": runtime, **row, "own_tokens_per_second": round(speed(prompt), 1)})
                if arguments.json:
                    print(json.dumps(rows[-1]), flush=True)
            del model, speed
    if not arguments.json:
        print(
            "| model | runtime | grammar | valid | right tools | right arguments | same answers | tokens/s | "
            "by itself | s per answer |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|")
        for row in rows:
            same = f"{row['same']} of {len(requests)}" if "same" in row else ""
            print(
                f"| {row['model']} | {row['runtime']} | {'on' if row['grammar'] else 'off'} | {row['valid']:g} % "
                f"| {row['tools']:g} % | {row['arguments']:g} % | {same} | {row['tokens_per_second']:g} "
                f"| {row['own_tokens_per_second']:g} | {row['seconds_per_answer']:g} |"
            )


if __name__ == "__main__":
    main()
