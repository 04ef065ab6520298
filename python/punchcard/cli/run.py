"""``punchcard run``: answer a request by calling tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic_core import to_jsonable_python

from punchcard.cli.options import given, model_option, sampling_options
from punchcard.exact import write_json

if TYPE_CHECKING:
    from punchcard.agent.hooks import Refusal
    from punchcard.chat import Call


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
@click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), help="Most time for everything.")
@click.option("--approve", is_flag=True, help="Ask before each call is executed.")
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.json",
    help="Write what happened to a file: answers, calls, results, times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as one JSON object.")
@sampling_options
def run(
    query: str,
    tool_file: Path,
    model: str | None,
    system: str | None,
    no_grammar: bool,
    max_steps: int,
    max_seconds: float | None,
    approve: bool,
    save: Path | None,
    as_json: bool,
    max_new_tokens: int | None,
    **sampling: Any,
) -> None:
    """Answer QUERY by calling tools.

    Prints each call as a line of JSON, what it returned, and the model's closing words.
    """
    from punchcard.agent import Agent
    from punchcard.toolfiles import load_tools

    hook = _approved if approve else None
    agent = Agent(load_tools(tool_file), model, system, not no_grammar, before_call=hook, **given(**sampling))
    try:
        result = agent.run(query, max_steps, max_seconds=max_seconds, **given(max_new_tokens=max_new_tokens))
    finally:
        if save is not None:
            agent.transcript.save(save)
    result = to_jsonable_python(result, fallback=str)
    if as_json:
        click.echo(write_json(result))
    else:
        _print(result)
    if not result["success"]:
        click.echo(f"punchcard: error: {result['error']}", err=True)
        raise click.exceptions.Exit(1)


def _approved(call: Call) -> Refusal | None:
    """Asks the user about a call."""
    from punchcard.agent.hooks import Refusal

    click.echo(write_json(call.to_dict()), err=True)
    return None if click.confirm("Execute it?", err=True) else Refusal("the user said no")


def _print(result: dict[str, Any]) -> None:
    for index, call in enumerate(result["function_calls"]):
        click.echo(write_json(call))
        if index < len(result["results"]):
            outcome = result["results"][index]
            spoken = outcome["error"] if "error" in outcome else write_json(outcome["result"])
            click.echo(f"  {'!' if 'error' in outcome else '='} {spoken}")
    if not result["function_calls"]:
        click.echo("No tool was called.", err=True)
    if result["text"]:
        click.echo(result["text"])
