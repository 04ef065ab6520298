"""What the endpoints have in common: the strictness of bodies, sampling, errors, usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from punchcard.chat import Sampling
from punchcard.errors import PunchcardError
from punchcard.server.errors import BadRequest
from punchcard.server.options import ServerOptions
from punchcard.server.protocol.faults import UNKNOWN_FIELD
from punchcard.server.service import Usage
from punchcard.server.writer import Finish

Temperature = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
TopP = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
TopK = Annotated[int, Field(ge=-1)]
Seed = Annotated[int, Field(ge=-(1 << 63), le=(1 << 63) - 1)]
Stop = Annotated[str, Field(min_length=1, max_length=1000)]
Stops = Annotated[list[Stop], Field(max_length=16)]
Count = Annotated[int, Field(ge=1)]
Item = TypeVar("Item")
#: A list whose first wrong item is reported alone. A client can send a hundred thousand of them.
Items = Annotated[list[Item], Field(fail_fast=True)]


class Part(BaseModel):
    """A part of a request's body. What it does not know is refused: it would be ignored otherwise."""

    # Bodies are JSON, so nothing has to be converted.
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, data: Any) -> Any:
        """Reports one unknown field, or that another object was meant. Pydantic would report every one of a hundred
        thousand unknown fields."""
        if cls.model_config.get("extra") != "forbid" or not isinstance(data, dict):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        kinds = cls._types()
        if kinds and data.get("type", cls.model_fields["type"].default) not in kinds:
            # Another object was meant, and nothing more is to be said of this one.
            context = {"field": "type", "expected": " or ".join(f"'{kind}'" for kind in kinds)}
            raise PydanticCustomError("literal_error", "Input should be {expected}", context)
        for name in data:
            if name not in known:
                raise PydanticCustomError(
                    UNKNOWN_FIELD, "This field is not permitted here", {"field": name, "known": sorted(known)}
                )
        return data

    @classmethod
    def _types(cls) -> tuple[Any, ...]:
        """What the field ``type`` may be, where it says which object this is."""
        field = cls.model_fields.get("type")
        return get_args(field.annotation) if field is not None else ()


def _few(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > _MOST_PAIRS:
        raise PydanticCustomError("too_long", f"Input should have at most {_MOST_PAIRS} members")
    return value


_MOST_PAIRS = 1024
Value = TypeVar("Value")
#: An object whose members are looked at one by one, which takes a while where there are a hundred thousand.
Pairs = Annotated[dict[str, Value], BeforeValidator(_few)]


class Body(Part):
    """A request's body."""

    #: Fields that are known, but can only have values that change nothing; with what to do instead.
    NEUTRAL: ClassVar[Mapping[str, tuple[tuple[Any, ...], str | None]]] = {}
    #: What to do where a field is wrong.
    HINTS: ClassVar[Mapping[str, str]] = {}

    def refuse_unsupported(self) -> None:
        """Raises `BadRequest` for the first field that asks for what this server cannot do."""
        for name, (neutral, hint) in self.NEUTRAL.items():
            value = getattr(self, name)
            if value is not None and value not in neutral:
                raise BadRequest(
                    f"{name} is not supported by this server", hint=hint, param=name, code="unsupported_parameter"
                )


class StreamOptions(Part):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """What a request is refused with."""

    error: ErrorDetail


def sampling(
    options: ServerOptions,
    *,
    max_tokens: int | None,
    temperature: float | None,
    top_p: float | None = None,
    top_k: int | None = None,
    seed: int | None = None,
    stop: str | Sequence[str] | None = None,
    param: str = "max_tokens",
) -> Sampling:
    """How tokens are picked. Raises `BadRequest` if the answer may be longer than the server allows."""
    if max_tokens is not None and max_tokens > options.max_tokens:
        raise BadRequest(
            f"{param} is {max_tokens}; this server writes at most {options.max_tokens} tokens",
            param=param,
            code="max_tokens_too_large",
        )
    if top_k == 0:
        raise BadRequest("top_k is 0", hint="-1 or nothing stands for all tokens", param="top_k")
    return Sampling(
        max_new_tokens=max_tokens or options.max_tokens,
        temperature=options.default_temperature if temperature is None else temperature,
        top_k=None if top_k in (None, -1) else top_k,
        top_p=top_p,
        seed=seed,
        stop=(stop,) if isinstance(stop, str) else tuple(stop or ()),
    )


FINISH_REASONS: Mapping[Finish, Literal["stop", "tool_calls", "length"]] = {
    "stop": "stop",
    "calls": "tool_calls",
    "budget": "stop",  # OpenAI's API has no word for it: `StopReason` says so beside it
    "length": "length",
}

#: Why an answer stopped, where its finish reason does not say: it was cut short to be complete within its tokens.
StopReason = Literal["budget"]


def stop_reason(finish: Finish | None) -> StopReason | None:
    return "budget" if finish == "budget" else None


class PromptDetails(BaseModel):
    cached_tokens: int


class CompletionDetails(BaseModel):
    reasoning_tokens: int


class CompletionUsage(BaseModel):
    """Tokens. ``cached_tokens``: those of the prompt that were not computed again."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails

    @classmethod
    def of(cls, usage: Usage) -> CompletionUsage:
        return cls(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            total_tokens=usage.prompt_tokens + usage.completion_tokens,
            prompt_tokens_details=PromptDetails(cached_tokens=usage.cached_tokens),
            completion_tokens_details=CompletionDetails(reasoning_tokens=usage.reasoning_tokens),
        )


def required(condition: bool, message: str, param: str, hint: str | None = None) -> None:
    """Raises `BadRequest` unless the condition holds."""
    if not condition:
        raise BadRequest(message, hint=hint, param=param)


def blamed(error: PunchcardError, param: str) -> BadRequest:
    """The error as one of a field of the request."""
    return BadRequest(error.message, hint=error.hint, param=param)
