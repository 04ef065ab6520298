"""`extract`: what a text says, as data of a given shape.

class Weather(BaseModel):
    city: str
    units: str = "celsius"

extract("What's the weather in Paris?", Weather)   # Weather(city='Paris', units='celsius')
"""

from __future__ import annotations

import json
import os
from typing import Any

import pydantic
from pydantic import TypeAdapter

from punchcard._core import GrammarMatcher
from punchcard.agent import load_model
from punchcard.chat import Message
from punchcard.errors import InvalidSchemaError, PunchcardError
from punchcard.generation import Decoder, Model
from punchcard.model_grammars import compile_schema
from punchcard.prompts import encode_prompt
from punchcard.sampling import Sampler
from punchcard.schemas import JsonSchema, adapter_schema, describe_validation_error, type_adapter
from punchcard.turn import Speaker

_SYSTEM = "Write what the user's text says as JSON that follows this JSON Schema:\n{schema}"


def extract(
    text: str,
    schema: Any,
    model: str | os.PathLike[str] | Model | None = None,
    *,
    system: str | None = None,
    max_new_tokens: int = 512,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
) -> Any:
    """Data of the shape of ``schema``, read from ``text`` by a language model.

    ``schema`` is a Pydantic model, or any type that Pydantic's `TypeAdapter` takes, and an instance of it is returned;
    or a JSON Schema (a dict, a bool or JSON text), and plain data is returned. ``model``: a name, a path to a GGUF
    file, an object with the interface of `LocalModel`, or `None` for the default model. ``system`` replaces the
    instruction; ``{schema}`` in it stands for the schema. Sampling: see `Sampler`; greedy by default.

    Raises `SchemaError` if the schema cannot be compiled, `ContextLengthError` if the text is too long for the model,
    `PunchcardError` (field ``text``: what was written) if the answer is cut off by ``max_new_tokens``, or a validator
    of the type refuses what was read. Ctrl-C raises `Interrupted`, which holds the text so far.
    """
    if max_new_tokens < 1:
        raise PunchcardError(f"max_new_tokens is {max_new_tokens}; it must be at least 1")
    json_schema, adapter = _read(schema)
    loaded = load_model(model)
    tool_format = Speaker.of(loaded).tool_format
    matcher = GrammarMatcher(compile_schema(loaded, json_schema, whitespace="none"))
    instruction = (system or _SYSTEM).replace("{schema}", json.dumps(json_schema, ensure_ascii=False))
    messages: list[Message] = [{"role": "system", "content": instruction}, {"role": "user", "content": text}]
    decoder = Decoder(
        loaded,
        encode_prompt(loaded, tool_format, messages, ()),
        sampler=Sampler(temperature, top_k=top_k, top_p=top_p, seed=seed),
        max_new_tokens=max_new_tokens,
    )
    answer = decoder.constrained(matcher)
    if answer.ended == "length":
        raise PunchcardError(
            f"The answer was cut off after {len(answer.tokens)} tokens",
            hint="Raise max_new_tokens, or bound the schema's strings and arrays",
            text=answer.text,
        )
    if adapter is None:
        return json.loads(answer.text)
    try:
        return adapter.validate_json(answer.text)
    except pydantic.ValidationError as error:
        raise PunchcardError(
            f"What was read is refused by the type: {describe_validation_error(error)}", text=answer.text
        ) from error


def _read(schema: Any) -> tuple[JsonSchema | bool, TypeAdapter[Any] | None]:
    """The JSON Schema, and the adapter that makes instances, if ``schema`` is a type."""
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise InvalidSchemaError(f"The schema is not JSON: {error}", pointer="", keyword="") from error
        if not isinstance(schema, (dict, bool)):
            raise InvalidSchemaError("A JSON Schema is an object, true or false", pointer="", keyword="")
    if isinstance(schema, (dict, bool)):
        return schema, None
    adapter = type_adapter(schema)
    return adapter_schema(adapter), adapter
