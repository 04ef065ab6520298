"""A server that answers in the manner of OpenAI's API, every answer under its schema or grammar.

    punchcard serve --model smollm2-135m

`create_app` makes the ASGI application. Requests flow down, tokens flow up:

- `app`, `connections`, `guard`, `streams`: HTTP;
- `bodies`, `protocol`: the bodies, and what they mean to a model;
- `service`, `lanes`: admission, preparation in threads;
- `scheduler`, `slots`, `batching`: one thread that writes all answers side by side;
- `planning`, `writer`, `steps`: one answer, token by token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from punchcard.errors import PunchcardError, extra_hint

if TYPE_CHECKING:
    from fastapi import FastAPI

    from punchcard.generation import Model
    from punchcard.server.batching import BatchModel
    from punchcard.server.options import ServerOptions

__all__ = ["create_app"]


def create_app(model: Model | BatchModel, options: ServerOptions | None = None) -> FastAPI:
    """The ASGI application that serves ``model``; see `punchcard.server.app.create_app`.

    Raises `PunchcardError` if the libraries of the extra ``serve`` are missing.
    """
    try:
        from punchcard.server import app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("punchcard"):
            raise
        raise PunchcardError(f"The server needs the package {error.name}", hint=extra_hint("serve")) from error
    return app.create_app(model, options)
