"""What a server allows, with the defaults of ``punchcard serve``."""

from __future__ import annotations

from dataclasses import dataclass, field

from punchcard.errors import PunchcardError
from punchcard.limits import Limits


@dataclass(frozen=True)
class ServerOptions:
    """Limits and defaults of a server.

    Raises `PunchcardError` for a limit below 1.
    """

    #: The model's name in the API; by default its own.
    model_name: str | None = None
    #: What clients have to send as ``Authorization: Bearer KEY``; `None` asks for nothing.
    api_key: str | None = None
    #: Requests that are answered at once. Each holds keys and values of its tokens in memory.
    slots: int = 8
    #: Requests that may wait for a slot; more are refused with 429.
    queue: int = 64
    #: Bytes of a request's body.
    max_request_bytes: int = 4 << 20
    #: Values of a request's body: members of objects, items of arrays.
    max_request_values: int = 200_000
    #: Bytes of a schema, pattern or grammar, each.
    max_schema_bytes: int = 1 << 20
    #: Tokens of an answer: the most that may be asked for, and what is taken where nothing is.
    max_tokens: int = 4096
    #: Answers to one request (``n``, or prompts of a completion times ``n``).
    max_n: int = 8
    #: Seconds that a request's head may take, and its body, and a client to take a piece of the answer.
    read_seconds: float = 30.0
    #: Connections that are open at once; more are answered with 503. Used by ``punchcard serve``.
    connections: int = 512
    #: Seconds from a request's arrival to the end of its answer.
    request_seconds: float = 300.0
    #: Seconds that a request waits for its grammar.
    compile_seconds: float = 20.0
    #: Grammars that are compiled at once. One that takes longer than ``compile_seconds`` is given up.
    compile_threads: int = 2
    #: Bytes of compiled grammars that are kept for requests to come.
    cache_bytes: int = 256 << 20
    #: Seconds of computing that the masks of an answer may take.
    mask_seconds: float = 10.0
    #: Tokens of prompts that are read in one step, by all requests together.
    prompt_chunk: int = 64
    #: Calls and answers are written under grammars. Without, they are what the model likes: for comparison only.
    grammar: bool = True
    #: The temperature where a request names none; 1 as in OpenAI's API.
    default_temperature: float = 1.0
    #: What one grammar may cost.
    limits: Limits = field(
        default_factory=lambda: Limits(max_bytes=2 << 20, max_search=50_000, max_states=1_000_000, max_work=10_000_000)
    )
    #: Names by which the server may be called (the header Host); `None` for any. Without a key, a browser could
    #: otherwise be tricked into calling a server on its own machine.
    hosts: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name in ("default_temperature", "grammar"):
                continue
            if isinstance(value, (int, float)) and value < 1:
                raise PunchcardError(f"{name} is {value}; it must be at least 1")
