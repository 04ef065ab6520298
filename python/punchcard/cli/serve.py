"""``punchcard serve``: a model behind OpenAI's API."""

from __future__ import annotations

import ipaddress
import sys
from typing import Any

import click

from punchcard.cli.options import given, model_option

_SWITCH_SECONDS = 0.0005
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@click.command()
@model_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option("--api-key", envvar="PUNCHCARD_API_KEY", help="What clients have to send. Also PUNCHCARD_API_KEY.")
@click.option("--model-name", metavar="NAME", help="The model's name in the API. Default: its own.")
@click.option("--slots", type=click.IntRange(min=1), help="Answers that are written at once. Default: 8.")
@click.option("--queue", type=click.IntRange(min=1), help="Answers that may wait; more get 429. Default: 64.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Most tokens of an answer. Default: 4096.")
@click.option("--max-n", type=click.IntRange(min=1), help="Most answers to one request. Default: 8.")
@click.option("--max-request-bytes", type=click.IntRange(min=1), help="Of a request's body. Default: 4 MiB.")
@click.option("--max-request-values", type=click.IntRange(min=1), help="JSON values of a body. Default: 200000.")
@click.option("--max-schema-bytes", type=click.IntRange(min=1), help="Of a schema or grammar. Default: 1 MiB.")
@click.option("--request-seconds", type=click.FloatRange(min=1), help="Most time of a request. Default: 300.")
@click.option("--compile-seconds", type=click.FloatRange(min=1), help="Most time for its grammar. Default: 20.")
@click.option("--compile-threads", type=click.IntRange(min=1), help="Grammars compiled at once. Default: 2.")
@click.option("--cache-bytes", type=click.IntRange(min=1), help="Of compiled grammars kept. Default: 256 MiB.")
@click.option("--mask-seconds", type=click.FloatRange(min=1), help="Most computing for an answer's masks. Default: 10.")
@click.option("--read-seconds", type=click.FloatRange(min=1), help="Most time for a head, or a body. Default: 30.")
@click.option("--connections", type=click.IntRange(min=1), help="Connections open at once. Default: 512.")
@click.option("--prompt-chunk", type=click.IntRange(min=1), help="Prompt tokens read in one step. Default: 64.")
@click.option("--default-temperature", type=click.FloatRange(0, 2), help="Where a request names none. Default: 1.")
@click.option("--no-grammar", "grammar", flag_value=False, default=None, help="Enforce nothing, for comparison.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of the model. Default: the physical cores.")
@click.option("--log-level", type=click.Choice(["warning", "info", "debug"]), default="info", show_default=True)
def serve(model: str | None, host: str, port: int, threads: int | None, log_level: str, **options: Any) -> None:
    """Serve a model over HTTP, in the manner of OpenAI's API.

    Answers are under the schemas, tools and grammars that requests bring. Tools are never executed here.
    """
    from punchcard.errors import PunchcardError, extra_hint
    from punchcard.models import LocalModel
    from punchcard.server import create_app
    from punchcard.server.options import ServerOptions

    try:
        import uvicorn

        from punchcard.server.connections import reserve, uvicorn_options
    except ModuleNotFoundError as error:
        raise PunchcardError("The server needs the package uvicorn", hint=extra_hint("serve")) from error

    loopback = _is_loopback(host)
    has_key = options["api_key"] is not None
    if not loopback and not has_key:
        click.echo(
            f"punchcard: warning: {host} can be reached from other machines, and whoever reaches it can use this "
            "server. Set an API key with --api-key or PUNCHCARD_API_KEY.",
            err=True,
        )
    limits = ServerOptions(**given(**options), hosts=_LOOPBACK_NAMES if loopback and not has_key else None)
    try:
        port, held = reserve(host, port)
    except PunchcardError as error:
        raise click.BadParameter(str(error), param_hint="--port") from error
    app = create_app(LocalModel.load(model, threads=threads), limits)
    service = app.state.service
    # Threads that prepare requests in Python would else hold up the one that writes answers.
    sys.setswitchinterval(_SWITCH_SECONDS)
    click.echo(f"punchcard: {service.model_name} at http://{host}:{port}/v1, {service.slots} at once", err=True)
    for reserved in held:
        reserved.close()
    uvicorn.run(app, host=host, port=port, log_level=log_level, **uvicorn_options(limits))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
