"""``punchcard check``: what becomes of a schema."""

from __future__ import annotations

import json
from typing import Any

import click

from punchcard.cli.options import given
from punchcard.cli.schemas import SCHEMA_METAVAR, load_schema


@click.command()
@click.argument("schema", metavar=SCHEMA_METAVAR)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--profile", type=click.Choice(["generate", "spec"]), default="generate", show_default=True)
@click.option("--draft", help="Dialect where $schema is silent: 4, 6, 7, 2019-09, 2020-12.")
@click.option("--strict", is_flag=True, help="Close objects that do not say additionalProperties.")
@click.option("--no-formats", is_flag=True, help="Do not enforce format.")
@click.option("--allow-unsupported", is_flag=True, help="List what cannot be enforced instead of refusing the schema.")
def check(
    schema: str, as_json: bool, profile: Any, draft: str | None, strict: bool, no_formats: bool, allow_unsupported: bool
) -> None:
    """Say what each keyword of SCHEMA became, what is not enforced, what it costs, and show a document.

    The exit code is 0 if the schema can be used, and 2 if it is refused; the error then names the spot.
    """
    from punchcard.grammar import Grammar

    grammar = Grammar.from_json_schema(
        load_schema(schema),
        profile=profile,
        strict=strict,
        assert_formats=not no_formats,
        on_unsupported="report" if allow_unsupported else "error",
        **given(draft=draft),
    )
    report = grammar.report
    click.echo(json.dumps(report.to_dict(), ensure_ascii=False, indent=1) if as_json else str(report))
