"""`extract`: what a text says, as data of a given shape.

class Weather(BaseModel):
    city: str
    units: str = "celsius"

extract("What's the weather in Paris?", Weather)   # Weather(city='Paris', units='celsius')

For many texts an `Extractor` does the work on schema and model once; `punchcard.batch` runs one over files.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pydantic
from pydantic_core import to_jsonable_python

from punchcard._core import GrammarMatcher
from punchcard.answering import StepChat, as_chat
from punchcard.chat import Chat, Message, Request, Sampling
from punchcard.errors import BudgetWarning, InputTypeError, InvalidSchemaError, PunchcardError
from punchcard.generation import Model
from punchcard.grammar import Grammar
from punchcard.model_grammars import compile_schema
from punchcard.sampling import Sampler
from punchcard.schemas import adapter_schema, describe_validation_error, type_adapter

if TYPE_CHECKING:
    from punchcard._core import CompiledGrammar

_SYSTEM = "Write what the user's text says as JSON that follows this JSON Schema:\n{schema}"


def extract(
    text: str,
    schema: Any,
    model: str | os.PathLike[str] | Model | Chat | None = None,
    *,
    system: str | None = None,
    max_new_tokens: int = 512,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
) -> Any:
    """Data of the shape of ``schema``, read from ``text`` by a language model; arguments and errors: see `Extractor`,
    which is what to use for more than one text."""
    _check_text(text)
    extractor = Extractor(
        schema,
        model,
        system=system,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
    return extractor.extract(text)


class Shape:
    """What is to be read out of a text: a JSON Schema, and the Python type where it was made of one.

    ``schema`` is a Pydantic model, or any type that Pydantic's `TypeAdapter` takes; or a JSON Schema (a dict, a bool or
    JSON text). ``json_schema``: the JSON Schema. Raises `InvalidSchemaError` for what is neither.
    """

    def __init__(self, schema: Any) -> None:
        if isinstance(schema, str):
            try:
                schema = json.loads(schema)
            except ValueError as error:
                raise InvalidSchemaError(f"The schema is not JSON: {error}", pointer="", keyword="") from error
            if not isinstance(schema, (dict, bool)):
                raise InvalidSchemaError("A JSON Schema is an object, true or false", pointer="", keyword="")
        self._adapter = None if isinstance(schema, (dict, bool)) else type_adapter(schema)
        self.json_schema = schema if self._adapter is None else adapter_schema(self._adapter)

    def messages(self, text: str, system: str | None = None) -> list[Message]:
        """The conversation that asks a model for what ``text`` says; ``system``: see `Extractor`.

        Raises `InputTypeError` if ``text`` is no text.
        """
        _check_text(text)
        instruction = (system or _SYSTEM).replace("{schema}", json.dumps(self.json_schema, ensure_ascii=False))
        return [{"role": "system", "content": instruction}, {"role": "user", "content": text}]

    def read(self, answer: str) -> Any:
        """An answer that follows the schema, as plain data, or as an instance of the type.

        Raises `PunchcardError` (field ``text``: the answer) if a validator of the type refuses it.
        """
        if self._adapter is None:
            return json.loads(answer)
        try:
            return self._adapter.validate_json(answer)
        except pydantic.ValidationError as error:
            raise PunchcardError(
                f"What was read is refused by the type: {describe_validation_error(error)}", text=answer
            ) from error

    def read_plain(self, answer: str) -> Any:
        """As `read`, but always plain data that can be written as JSON."""
        return to_jsonable_python(self.read(answer), fallback=str)

    def check(self, answer: str) -> None:
        """Raises `PunchcardError` (field ``text``: the answer) unless ``answer`` is JSON that follows the schema. For
        answers that were not written under its grammar."""
        matcher = GrammarMatcher(self._every_spelling)
        if not (matcher.accept_string(answer) and matcher.is_accepting()):
            raise PunchcardError(
                "The answer does not follow the schema",
                hint="Have the server enforce response_format, or use an abler model",
                text=answer,
            )

    def prepare_check(self) -> None:
        """Compiles what `check` needs, which else the first call does. Raises `SchemaError` if it cannot be."""
        _ = self._every_spelling

    @cached_property
    def _every_spelling(self) -> CompiledGrammar:
        from punchcard.compiler import GrammarCompiler
        from punchcard.tokenizers.info import TokenizerInfo

        # No model is involved: a vocabulary of bytes, and an end, are enough to take a text.
        alphabet = TokenizerInfo.from_vocab([*(bytes([byte]) for byte in range(256)), b"<end>"], eos_token_ids=[256])
        return GrammarCompiler(alphabet).compile_json_schema(self.json_schema, profile="spec")


class Written(str):
    """The text of an answer. ``finish``: ``"stop"``, or ``"budget"`` where it was cut short to be complete within its
    tokens."""

    finish: str

    def __new__(cls, text: str, finish: str = "stop") -> Written:
        written = super().__new__(cls, text)
        written.finish = finish
        return written


class Extractor:
    """Reads data of one shape out of texts, with a language model.

    ``schema`` is a Pydantic model, or any type that Pydantic's `TypeAdapter` takes, and instances of it are returned;
    or a JSON Schema (a dict, a bool or JSON text), and plain data is returned; or a `Shape`. ``model``: a name, a path
    to a GGUF file, a `Model` or a `Chat` of `punchcard.models`, or `None` for the default model. ``system`` replaces
    the instruction; ``{schema}`` in it stands for the schema. Sampling: see `Sampler`; greedy by default. Every text is
    sampled from ``seed`` anew, so what is read from it does not hang on the texts before it.

    The schema is compiled here, and the model keeps the beginning of the prompt, which all texts share.

    Raises `SchemaError` if the schema cannot be compiled, `ModelError` if the model cannot be loaded.
    """

    def __init__(
        self,
        schema: Any,
        model: str | os.PathLike[str] | Model | Chat | None = None,
        *,
        system: str | None = None,
        max_new_tokens: int = 512,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> None:
        if max_new_tokens < 1:
            raise PunchcardError(f"max_new_tokens is {max_new_tokens}; it must be at least 1")
        self._sampling = Sampling(max_new_tokens, temperature, top_k=top_k, top_p=top_p, seed=seed)
        Sampler(temperature, top_k=top_k, top_p=top_p, seed=seed)  # an option out of range is an error now
        self.shape = schema if isinstance(schema, Shape) else Shape(schema)
        self._chat = as_chat(model)
        self._system = system
        self._answer = Grammar.from_json_schema(self.shape.json_schema, whitespace="none")
        if isinstance(self._chat, StepChat):
            compile_schema(self._chat.model, self.shape.json_schema, whitespace="none")

    def extract(self, text: str) -> Any:
        """What ``text`` says: an instance of the type, or plain data. Raises as `write` and `Shape.read` do.

        An answer that fits ``max_new_tokens`` only because it was cut short gives a `BudgetWarning`.
        """
        written = self.write(text)
        if written.finish == "budget":
            warnings.warn(
                f"The answer was cut short to fit {self._sampling.max_new_tokens} tokens: it is valid, but its last "
                "value may not be what the model meant. Raise max_new_tokens, or bound the schema's strings and arrays",
                BudgetWarning,
                stacklevel=_callers_level(),
            )
        return self.shape.read(written)

    def write(self, text: str) -> Written:
        """What ``text`` says, as JSON text that follows the schema, which knows how it ended.

        Raises `ContextLengthError` if the text is too long for the model, `BudgetError` if no answer is short enough,
        `PunchcardError` (field ``text``: what was written) if the answer is cut off where it could have gone on.
        Ctrl-C raises `Interrupted`, which holds the text so far.
        """
        request = Request(self.shape.messages(text, self._system), answer=self._answer, reasoning=False)
        reply = self._chat.respond(request, self._sampling)
        if reply.finish == "length":
            tokens = reply.statistics.tokens if reply.statistics else self._sampling.max_new_tokens
            raise cut_off(reply.text, f"after {tokens} tokens")
        return Written(reply.text, reply.finish)


def _callers_level() -> int:
    """How far up the caller of this module is, for a warning that names its line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame, level = frame.f_back, level + 1
    return level


def _check_text(given: Any) -> None:
    """Raises `InputTypeError` for what is no text."""
    if not isinstance(given, str):
        raise InputTypeError(
            f"There is one text to extract from, and this is of the type {type(given).__name__}", hint=_remedy(given)
        )


def _remedy(given: Any) -> str:
    """What to give in place of something that is no text."""
    if isinstance(given, (bytes, bytearray)):
        return "Decode it first, such as with .decode()"
    if isinstance(given, (Mapping, int, float, bool)) or given is None:
        return "Give a str, such as json.dumps(...) of it"
    if isinstance(given, Iterable):
        return "For many texts use punchcard.batch.extract(texts, schema), or an Extractor in a loop"
    return "Give a str, such as its .read() or .read_text()" if hasattr(given, "read") else "Give a str"


def cut_off(text: str, where: str) -> PunchcardError:
    """The error of an answer that was not finished; ``where``: such as ``"after 512 tokens"``."""
    return PunchcardError(
        f"The answer was cut off {where}",
        hint="Raise max_new_tokens, or bound the schema's strings and arrays",
        text=text,
    )
