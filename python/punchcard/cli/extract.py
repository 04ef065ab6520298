"""``punchcard extract``: read data out of a text."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from pydantic_core import to_jsonable_python

from punchcard.cli.options import given, model_option, sampling_options
from punchcard.cli.schemas import SCHEMA_METAVAR, load_schema


@click.command()
@click.argument("text")
@click.option(
    "--schema",
    required=True,
    metavar=SCHEMA_METAVAR,
    help="A JSON Schema, or a Pydantic model by the module that defines it.",
)
@model_option
@sampling_options
def extract(text: str, schema: str, model: str | None, **options: Any) -> None:
    """Print what TEXT says as JSON of the shape of a schema. With '-', the text is read from stdin."""
    from punchcard.extraction import extract as extract_data

    shape = load_schema(schema)
    if text == "-":
        text = sys.stdin.read()
    data = extract_data(text, shape, model, **given(**options))
    click.echo(json.dumps(to_jsonable_python(data, fallback=str), ensure_ascii=False))
