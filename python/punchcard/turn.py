"""One turn of a model: from a request to the prompt and the grammar of its answer, and from its tokens to a reply.

`plan` is all that a decoding loop needs: the tokens to begin with, a compiled grammar for its masks, and a parser that
takes the tokens as they are picked.
"""

from __future__ import annotations

import codecs
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from punchcard.chat import Delta, Reply, Request, Vocabulary
from punchcard.errors import CancelledError, PunchcardError, SchemaError, ToolError
from punchcard.formats import ToolFormat, detect_format, get_format
from punchcard.formats.base import Frame
from punchcard.formats.grammar import Answers, Begun
from punchcard.formats.parser import OutputParser
from punchcard.prompts import readable, safe_prompt, tokenize_prompt
from punchcard.tools import Tool
from punchcard.toolschemas import blamed

if TYPE_CHECKING:
    from punchcard._core import CancelToken, CompiledGrammar
    from punchcard.compiler import GrammarCompiler
    from punchcard.tokenizers.info import TokenizerInfo


class Speaker:
    """A model's vocabulary as its family uses it: marks that are one token are special, and so is what ends an answer.

    Attributes:
        tool_format: the family.
        tokens: the marks that are one token.
        stop_token_ids: tokens that end an answer.
    """

    def __init__(self, model: Vocabulary, tool_format: ToolFormat) -> None:
        self.tool_format = tool_format
        info = model.tokenizer_info
        special = set(info.special_token_ids)
        ids = {
            token: i for i, token in enumerate(info.tokens) if token[:1] in _MARKS and (i in special or len(token) > 2)
        }
        found = {mark: ids[mark.encode()] for mark in tool_format.markers if mark.encode() in ids}
        # A piece of text that happens to be spelled like a beginning of a tag is none of the family's marks.
        found = {mark: i for mark, i in found.items() if i in special or not mark[-1].isalnum()}
        stops = {ids[stop.encode()] for stop in tool_format.stop if stop.encode() in ids}
        self.tokens = frozenset(found)
        self.stop_token_ids = frozenset(stops | set(model.eos_token_ids))
        specials = special | set(found.values()) | self.stop_token_ids
        known = specials <= special and self.stop_token_ids <= set(info.eos_token_ids)
        self.info: TokenizerInfo = (
            info
            if known
            else info.replace(eos_token_ids=sorted(self.stop_token_ids), special_token_ids=sorted(specials))
        )
        self.thinks = [frame for frame in tool_format.reasoning if self._knows(frame, model.chat_template)]

    @cached_property
    def compiler(self) -> GrammarCompiler:
        from punchcard.compiler import GrammarCompiler

        return GrammarCompiler(self.info)

    def _knows(self, frame: Frame, template: str | None) -> bool:
        """Whether the model was made to think: its vocabulary or its template have the mark."""
        mark = frame.begin.strip()
        return any(token in mark for token in self.tokens) or mark in (template or "")

    @classmethod
    def of(cls, model: Vocabulary, tool_format: ToolFormat | str | None = None) -> Speaker:
        """The one of a model, made once. ``tool_format``: where the one that is detected is wrong."""
        if isinstance(tool_format, str):
            tool_format = get_format(tool_format)
        if tool_format is None:
            tool_format = detected_format(model)
        speakers = _speakers.setdefault(model, {})
        if tool_format.name not in speakers or speakers[tool_format.name].tool_format is not tool_format:
            speakers[tool_format.name] = cls(model, tool_format)
        return speakers[tool_format.name]


_MARKS = (b"<", b"[", b"]", "｜".encode()[:1], b":")
_speakers: weakref.WeakKeyDictionary[Any, dict[str, Speaker]] = weakref.WeakKeyDictionary()
_detected: weakref.WeakKeyDictionary[Any, ToolFormat] = weakref.WeakKeyDictionary()


def detected_format(model: Vocabulary) -> ToolFormat:
    """The tool format of a model, by its template, its tokens and its name."""
    if model not in _detected:
        tokens = {token.decode("utf-8", "replace") for token in model.tokenizer_info.tokens if len(token) > 4}
        _detected[model] = detect_format(model.chat_template, model.name, tokens)
    return _detected[model]


@dataclass(frozen=True)
class Plan:
    """How a request is to be answered.

    Attributes:
        prompt: the token ids before the answer.
        grammar: what the answer may be; `None` where it may be anything.
        stop_token_ids: tokens that end it.
        tools: those of the request; ``calls``: whether the answer may have calls.
        left_out: tools that cannot be offered, and why (see `Request.skip_tools`).
        speaker: the vocabulary as the grammar sees it.
    """

    prompt: list[int]
    grammar: CompiledGrammar | None
    stop_token_ids: frozenset[int]
    speaker: Speaker
    tools: Sequence[Tool] = ()
    calls: bool = False
    left_out: dict[str, PunchcardError] = field(default_factory=dict)
    begun: Begun = "nothing"
    prefilled: bool = False

    def parser(self) -> TurnParser:
        """A parser for the tokens of the answer."""
        return TurnParser(self)


def plan(
    model: Vocabulary,
    request: Request,
    tool_format: ToolFormat | str | None = None,
    *,
    focus: Tool | None = None,
    cancel: CancelToken | None = None,
    **variables: Any,
) -> Plan:
    """What to begin with, and what to let through, to have ``request`` answered.

    ``tool_format``: where the one that is detected is wrong; ``focus``: see `render_prompt`; ``cancel``: ends
    the compilation; ``variables``: further ones for the chat template.

    Raises `ToolError` if a tool cannot be offered in the format, `SchemaError` (with the field ``tool``) if its
    arguments cannot be compiled, `ModelError` if the template cannot be rendered.
    """
    speaker = Speaker.of(model, tool_format)
    form = speaker.tool_format
    callable_tools = [] if request.tool_choice == "none" else _allowed(request)
    left_out: dict[str, PunchcardError] = {}
    if request.skip_tools:
        faults = ((tool.name, _fault(speaker, tool, cancel)) for tool in callable_tools)
        left_out = {name: error for name, error in faults if error is not None}
        callable_tools = [tool for tool in callable_tools if tool.name not in left_out]
    if request.tool_choice == "required" and not callable_tools:
        raise ToolError("A call is required, but there is no tool to call", hint="Give a tool, or another tool_choice")
    shown = [tool for tool in request.tools if tool.name not in left_out]
    text = safe_prompt(model, form, request.messages, shown, focus=focus, reasoning=request.reasoning, **variables)
    begun, prefilled, more = _begun(speaker, readable(text), request.reasoning)
    prompt = tokenize_prompt(model, text + more)
    grammar = None
    if request.constrained:
        answers = Answers(
            form,
            callable_tools,
            tokens=speaker.tokens,
            begun=begun,
            prefilled=prefilled,
            calls="must" if request.tool_choice == "required" else "may",
            most_calls=request.max_calls if request.parallel else 1,
            answer=request.answer,
            thoughts=_thoughts(speaker, request.reasoning),
        )
        grammar = _compiled(speaker, answers, cancel)
    return Plan(
        prompt,
        grammar,
        speaker.stop_token_ids,
        speaker,
        request.tools,
        bool(callable_tools),
        left_out,
        begun,
        prefilled,
    )


def _allowed(request: Request) -> list[Tool]:
    if request.allowed is None:
        return list(request.tools)
    known = {tool.name: tool for tool in request.tools}
    for name in request.allowed:
        if name not in known:
            raise ToolError(f"There is no tool {name}", hint=f"Known are {', '.join(known) or 'none'}", tool=name)
    return [known[name] for name in dict.fromkeys(request.allowed)]


def _compiled(speaker: Speaker, answers: Answers, cancel: CancelToken | None) -> CompiledGrammar:
    try:
        return speaker.compiler.compile(answers.grammar(), cancel=cancel)
    except CancelledError:
        raise
    except PunchcardError as error:
        for tool in answers.tools:
            # Alone, each tool is blamed for its own schema, at its own pointers.
            if (own := _fault(speaker, tool, cancel)) is not None:
                raise own from error
        raise


def _fault(speaker: Speaker, tool: Tool, cancel: CancelToken | None) -> PunchcardError | None:
    """Why a tool cannot be offered."""
    try:
        speaker.compiler.compile_json_schema(tool.parameters, cancel=cancel)
        alone = Answers(speaker.tool_format, [tool], tokens=speaker.tokens, calls="must")
        speaker.compiler.compile(alone.grammar(), cancel=cancel)
    except CancelledError:
        raise
    except SchemaError as error:
        return error if error.fields.get("tool") else blamed(tool.name, error)
    except ToolError as error:
        return error
    except PunchcardError as error:
        error.fields["tool"] = tool.name
        return error
    return None


def _begun(speaker: Speaker, prompt: str, reasoning: bool | None) -> tuple[Begun, bool, str]:
    """What the prompt has begun, whether it ends with `ToolFormat.prefill`, and what is to be added to it."""
    form = speaker.tool_format
    tail = prompt.rstrip()
    for frame in form.reasoning:
        if frame.begin.strip() and tail.endswith(frame.begin.strip()):
            if reasoning is False:  # a model that always thinks, and is asked not to
                return "thought", False, frame.end
            return "reasoning", False, ""
        if frame.end.strip() and tail.endswith(frame.end.strip()):
            return "thought", False, ""
    for frame in form.text:
        if frame.begin.strip() and tail.endswith(frame.begin.strip()):
            return "text", False, ""
    return "nothing", bool(form.prefill) and tail.endswith(form.prefill), ""


def _thoughts(speaker: Speaker, reasoning: bool | None) -> Literal["must", "may", "none"]:
    if not speaker.thinks or reasoning is False:
        return "none"
    return "must" if reasoning else "may"


class TurnParser:
    """Reads the tokens of an answer as they are picked; see `OutputParser`."""

    def __init__(self, plan: Plan) -> None:
        self._parser = OutputParser(
            plan.speaker.tool_format,
            plan.tools,
            tokens=plan.speaker.tokens,
            begun=plan.begun,
            prefilled=plan.prefilled,
            calls=plan.calls,
            constrained=plan.grammar is not None,
        )
        self._pieces = plan.speaker.info.tokens
        self._special = frozenset(plan.speaker.info.special_token_ids)
        self._stops = plan.stop_token_ids
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token_id: int) -> list[Delta]:
        """Goes on with a token. Returns what is new; a token that ends the answer adds nothing."""
        if token_id in self._stops:
            return []
        piece = self._pieces[token_id] if token_id < len(self._pieces) else b""
        if token_id in self._special:
            rest = self._decoder.decode(b"", final=True)
            self._decoder.reset()
            deltas = self._parser.feed(rest) if rest else []
            return deltas + self._parser.feed(piece.decode("utf-8", "replace"), special=True)
        text = self._decoder.decode(piece)
        return self._parser.feed(text) if text else []

    def feed_all(self, token_ids: Iterable[int]) -> list[Delta]:
        """Goes on with several tokens."""
        return [delta for token_id in token_ids for delta in self.feed(token_id)]

    def finish(self, ended: Literal["stop", "length"] = "stop") -> list[Delta]:
        """Ends the answer: at its end, or cut off. Returns what is left."""
        rest = self._decoder.decode(b"", final=True)
        return (self._parser.feed(rest) if rest else []) + self._parser.finish(ended)

    @property
    def reply(self) -> Reply:
        """What was read so far; complete when `finish` was called."""
        return self._parser.reply
