"""What is asked of a model and what it answers, alike for every runtime.

A `Request` is a conversation with tools. A runtime answers it with a `Reply`, and tells of it while it is written in
`Delta`s. Two kinds of runtimes are known (`punchcard.models`):

- a `Model` computes logits, one step at a time; `StepChat` makes it a `Chat`;
- a `Chat` answers whole requests by itself, as an engine or a server somewhere else does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from punchcard.generation import Statistics
    from punchcard.grammar import Grammar
    from punchcard.tokenizers.info import TokenizerInfo
    from punchcard.tools import Tool

#: A turn of a conversation, as OpenAI's API spells it: ``role``, ``content``, ``tool_calls``, ``tool_call_id``, ...
Message = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call that a model wrote: the tool's name and plain JSON arguments.

    ``id``: as the model wrote it, in families that write one; else `None`.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "arguments": self.arguments}


@dataclass(frozen=True)
class Request:
    """What is asked of a model.

    Attributes:
        messages: the conversation.
        tools: what may be called; the prompt shows all of them.
        tool_choice: ``"auto"``: the model calls tools or answers in words; ``"required"``: it calls at least one;
            ``"none"``: it calls none.
        allowed: names of the tools that may be called; `None` for all. With ``"required"`` and one name, this tool is
            called.
        parallel: several calls in one answer are allowed, at most ``max_calls``.
        answer: what the text of an answer without calls must be; `None` for any text.
        reasoning: the model thinks before it answers (True), does not (False), or as its template has it (`None`).
        constrained: calls and the answer are written under a grammar. Without, they are what the model likes.
        skip_tools: a tool whose schema cannot be compiled is left out (`Plan.left_out` says why) instead of an error.
    """

    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"
    allowed: Sequence[str] | None = None
    parallel: bool = True
    max_calls: int = 16
    answer: Grammar | None = None
    reasoning: bool | None = None
    constrained: bool = True
    skip_tools: bool = False


@dataclass(frozen=True)
class Sampling:
    """How tokens are picked; see `punchcard.sampling.Sampler`. ``stop``: texts that end the answer, left out of it."""

    max_new_tokens: int = 256
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Delta:
    """A piece of an answer, as it comes.

    ``kind``: ``"text"`` or ``"reasoning"``, of which ``text`` is the next piece; ``"call"``: call number ``index``
    begins, ``text`` is the tool's name and ``id`` its id if the model wrote one; ``"arguments"``: ``text`` is the next
    piece of this call's arguments, as JSON text. What was told is never taken back.
    """

    kind: Literal["text", "reasoning", "call", "arguments"]
    text: str
    index: int = 0
    id: str | None = None


@dataclass
class PartialCall:
    """A call that an answer was cut off in: its name, and the beginning of its arguments as JSON text."""

    name: str
    arguments: str = ""


@dataclass
class Reply:
    """An answer: its words, the model's thoughts, its calls.

    ``partial``: the call that it was cut off in, if any.

    ``finish``: ``"stop"``: it came to its end; ``"calls"``: it ends with calls; ``"budget"``: it is complete under its
    grammar, but only because its tokens left room for nothing else, so what was written last may be cut short;
    ``"length"``: its tokens ran out, and it is not complete.
    ``confidence``: see `Decoder.confidence`; `None` where the runtime tells no probabilities.
    """

    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    partial: PartialCall | None = None
    finish: Literal["stop", "calls", "budget", "length"] = "stop"
    confidence: float | None = None
    statistics: Statistics | None = None


class Vocabulary(Protocol):
    """What is to be known of a model to ask it something: its tokens and its chat template.

    ``tokenize``: the ids of a text; special tokens are recognised only where ``parse_special``.
    """

    name: str
    vocab_size: int
    context_length: int
    chat_template: str | None
    bos_token_id: int | None
    eos_token_ids: list[int]

    @property
    def tokenizer_info(self) -> TokenizerInfo: ...
    def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]: ...


class Chat(Protocol):
    """A runtime that answers whole requests."""

    name: str

    def respond(
        self, request: Request, sampling: Sampling = ..., *, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        """The answer to ``request``; ``on_delta`` is told of each piece of it.

        Raises `PunchcardError` if the request cannot be answered.
        """
        ...
