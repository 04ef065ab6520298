"""``punchcard run``: answer a request by calling tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from pydantic_core import to_jsonable_python

from punchcard.cli.options import given, model_option, sampling_options


@click.command()
@click.argument("query")
@click.option(
    "--tools",
    "tool_file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.py|FILE.json",
    help="Functions with @tool, which are called; or OpenAI-style definitions, whose calls are only printed.",
)
@model_option
@click.option("--system", metavar="TEXT", help="Words for the system turn.")
@click.option("--no-grammar", is_flag=True, help="Let the model write as it likes, for comparison.")
@click.option("--max-steps", type=click.IntRange(min=1), default=8, show_default=True, help="Most turns of the model.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as one JSON object.")
@sampling_options
def run(
    query: str,
    tool_file: Path,
    model: str | None,
    system: str | None,
    no_grammar: bool,
    max_steps: int,
    as_json: bool,
    max_new_tokens: int | None,
    **sampling: Any,
) -> None:
    """Answer QUERY by calling tools.

    Prints each call as a line of JSON, what it returned, and the model's closing words.
    """
    from punchcard.agent import Agent
    from punchcard.toolfiles import load_tools

    agent = Agent(load_tools(tool_file), model, system, not no_grammar, **given(**sampling))
    result = agent.run(query, max_steps=max_steps, **given(max_new_tokens=max_new_tokens))
    result = to_jsonable_python(result, fallback=str)
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
    else:
        _print(result)
    if not result["success"]:
        click.echo(f"punchcard: error: {result['error']}", err=True)
        raise click.exceptions.Exit(1)


def _print(result: dict[str, Any]) -> None:
    for index, call in enumerate(result["function_calls"]):
        click.echo(json.dumps(call, ensure_ascii=False))
        if index < len(result["results"]):
            outcome = result["results"][index]
            spoken = outcome["error"] if "error" in outcome else json.dumps(outcome["result"], ensure_ascii=False)
            click.echo(f"  {'!' if 'error' in outcome else '='} {spoken}")
    if not result["function_calls"]:
        click.echo("No tool was called.", err=True)
    if result["text"]:
        click.echo(result["text"])
