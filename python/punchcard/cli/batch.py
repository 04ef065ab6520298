"""``punchcard batch``: read data out of many texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from punchcard.cli.options import given, model_option, sampling_options
from punchcard.cli.schemas import SCHEMA_METAVAR, load_schema


@click.command()
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option(
    "--schema",
    required=True,
    metavar=SCHEMA_METAVAR,
    help="A JSON Schema, or a Pydantic model by the module that defines it.",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="OUT.jsonl", help="Gets a row for each document."
)
@click.option("--text-column", default="text", show_default=True, metavar="NAME", help="The column with the text.")
@click.option("--keep", multiple=True, metavar="NAME", help="A column to copy to the rows. [default: id]")
@model_option
@click.option("--workers", type=click.IntRange(min=1), help="Processes, each with the model loaded.")
@click.option("--ray", is_flag=True, help="Have the workers run on a Ray cluster, or on this machine's own Ray.")
@click.option("--endpoint", metavar="URL", help="A server with OpenAI's API, such as http://localhost:8000/v1.")
@click.option("--concurrency", type=click.IntRange(min=1), help="Requests to the endpoint at once. [default: 16]")
@click.option("--api-key-env", metavar="VARIABLE", help="The environment variable that holds the endpoint's key.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds for a try of a request. [default: 120]",
)
@click.option("--retries", type=click.IntRange(min=0), help="Most tries anew of a request. [default: 5]")
@click.option("--overwrite", is_flag=True, help="Begin anew, whatever OUT holds.")
@click.option("--retry-failed", is_flag=True, help="Do rows with errors again.")
@click.option("--system", metavar="TEXT", help="Replaces the instruction; {schema} in it stands for the schema.")
@sampling_options
def batch(
    source: Path,
    schema: str,
    out: Path,
    ray: bool,
    endpoint: str | None,
    concurrency: int | None,
    api_key_env: str | None,
    timeout: float | None,
    retries: int | None,
    **options: Any,
) -> None:
    """Read data of the shape of a schema out of every document of FILE (.jsonl, .csv, .txt, .parquet).

    Each document gets a line of JSON in OUT. Give the same command again to go on where a run was broken off.
    """
    from punchcard.batch import extract

    server = given(concurrency=concurrency, api_key_env=api_key_env, timeout=timeout, retries=retries)
    if server and endpoint is None:
        raise click.UsageError(f"--{next(iter(server)).replace('_', '-')} wants an --endpoint")
    results = extract(
        source,
        load_schema(schema),
        out=out,
        **given(endpoint=endpoint, over="ray" if ray else None, **server, **options),
    )
    click.echo(str(results), err=True)
    if results.failed:
        raise click.exceptions.Exit(1)
