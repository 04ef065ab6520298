"""The command ``punchcard``. Each subcommand has a module of its own.

Exit codes:

- 0: done.
- 1: the answer is not what was asked for: a tool failed, the answer was cut off, or a document of a batch has none.
- 2: the command is wrong: its options, a tool file, a schema, a request too long for the model.
- 3: the model cannot be had: unknown, not to be fetched, damaged.
- 130: interrupted by Ctrl-C; what had been generated is printed.

Data goes to stdout, everything else to stderr. An error is one line.
"""

from __future__ import annotations

import sys
import warnings

import click

from punchcard.errors import BudgetWarning, ContextLengthError, ModelError, PunchcardError, SchemaError, ToolError


class _Group(click.Group):
    """Turns what goes wrong into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", BudgetWarning)
                warnings.showwarning = _warn
                return super().invoke(ctx)
        except PunchcardError as error:
            click.echo(f"punchcard: error: {' '.join(str(error).split())}", err=True)
            ctx.exit(_exit_code(error))
        except KeyboardInterrupt as interruption:
            text = getattr(interruption, "text", "")
            click.echo(f"\npunchcard: interrupted{f' after: {text}' if text else ''}", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            # The reader of a pipe has seen enough. Nothing may be written on the way out.
            sys.stdout = None
            ctx.exit(0)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Shows a warning as one line, as errors are."""
    click.echo(f"punchcard: warning: {' '.join(str(message).split())}", err=True)


def _exit_code(error: PunchcardError) -> int:
    if isinstance(error, (SchemaError, ToolError, ContextLengthError)):
        return 2
    if isinstance(error, ModelError):
        return 3
    return 1


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="punchcard", message="punchcard %(version)s")
def main() -> None:
    """Constrained decoding for language models: tool calls and extractions that cannot be malformed."""


def _register() -> None:
    from punchcard.cli.batch import batch
    from punchcard.cli.check import check
    from punchcard.cli.extract import extract
    from punchcard.cli.models import models
    from punchcard.cli.run import run
    from punchcard.cli.serve import serve

    for command in (run, extract, batch, serve, check, models):
        main.add_command(command)


_register()
