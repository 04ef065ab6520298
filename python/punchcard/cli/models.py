"""``punchcard models``: the models that have a name."""

from __future__ import annotations

import click


@click.group()
def models() -> None:
    """List, fetch and find the models that have a name."""


@models.command("list")
def list_models() -> None:
    """Print each model's name, its size, whether it has been fetched, and what it is."""
    from punchcard.models.catalogue import CATALOGUE, DEFAULT_MODEL
    from punchcard.models.download import cached

    for entry in CATALOGUE.values():
        state = "fetched" if cached(entry.name) else "-"
        default = " (default)" if entry.name == DEFAULT_MODEL else ""
        size = f"{entry.size / 1e6:,.0f} MB"
        click.echo(f"{entry.name:20} {size:>9}  {state:8} {entry.licence:11} {entry.description}{default}")


@models.command()
@click.argument("name")
def pull(name: str) -> None:
    """Fetch the model NAME, and print the path of its file."""
    from punchcard.models.download import ensure

    click.echo(ensure(name))


@models.command()
@click.argument("name")
def path(name: str) -> None:
    """Print the path of the model NAME, if it has been fetched."""
    from punchcard.errors import ModelError
    from punchcard.models.download import cached

    found = cached(name)
    if found is None:
        raise ModelError(f"The model {name} has not been fetched", hint=f"`punchcard models pull {name}` fetches it")
    click.echo(found)
