"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def model_option(command: Command) -> Command:
    return click.option(
        "--model",
        metavar="NAME|PATH",
        help="A model of `punchcard models list`, or a GGUF file. Default: smollm2-135m.",
    )(command)


def sampling_options(command: Command) -> Command:
    for option in (
        click.option("--max-new-tokens", type=click.IntRange(min=1), help="Most tokens of an answer."),
        click.option("--seed", type=int, help="Draws the same tokens again; matters with --temperature."),
        click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), help="Draw from the top mass only."),
        click.option("--top-k", type=click.IntRange(min=1), help="Draw from the top tokens only."),
        click.option("--temperature", type=click.FloatRange(min=0), default=0.0, show_default=True),
    ):
        command = option(command)
    return command


def given(**options: Any) -> dict[str, Any]:
    """The options that were given on the command line."""
    return {name: value for name, value in options.items() if value is not None}
