"""The grammar of a whole answer: thoughts, text, calls of certain tools, and what ends it.

Text is free up to the first occurrence of what begins a call (`ToolFormat.trigger`); from there on everything is as the
family was trained to write it, and the arguments are under the tool's schema. Where a mark of the family is one token
of the vocabulary, it is this token and never its characters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from punchcard.errors import PunchcardError, ToolError
from punchcard.formats.base import NAME, PLACEHOLDERS, Json, ToolFormat
from punchcard.formats.writing import json_name
from punchcard.grammar import Grammar
from punchcard.schemas import JsonSchema
from punchcard.tags.base import Place
from punchcard.tags.expressions import (
    ANY_TEXT,
    EMPTY,
    Expr,
    both,
    choice,
    named,
    negation,
    optional,
    repeat,
    sequence,
    shortest,
    text,
    text_without,
    token,
)
from punchcard.tags.parameters import parameters
from punchcard.tools import Tool

#: Where an answer begins: anew, inside thoughts or text that the prompt has opened, or behind thoughts.
Begun = Literal["nothing", "reasoning", "text", "thought"]

_PLACEHOLDER = re.compile(f"([{''.join(PLACEHOLDERS)}])")


@dataclass(frozen=True)
class Answers:
    """Which answers are admitted.

    Attributes:
        tool_format: the family.
        tools: what may be called; none for answers without calls.
        tokens: the markers of the family that are one token.
        begun: what the prompt has begun already; ``prefilled``: it ends with `ToolFormat.prefill`.
        calls: calls may or must be made, or an empty list of them.
        most_calls: how many.
        answer: what the text of an answer without calls must be; `None` for any.
        thoughts: whether there must, may or must not be any, where the prompt has not begun them.
    """

    tool_format: ToolFormat
    tools: Sequence[Tool] = ()
    tokens: Collection[str] = frozenset()
    begun: Begun = "nothing"
    prefilled: bool = False
    calls: Literal["may", "must"] = "may"
    most_calls: int = 16
    answer: Grammar | None = None
    thoughts: Literal["must", "may", "none"] = "may"

    def grammar(self) -> Grammar:
        """The grammar of these answers.

        Raises `ToolError` if a tool has a name or a schema that the format cannot express.
        """
        body = choice([*self._with_calls(), *self._without_calls()])
        whole = self._thinking(body) if self.begun in ("nothing", "reasoning") else body
        rules = {f"arguments {tool.name}": self._arguments(tool) for tool in self.tools}
        return Grammar({"grammar": {"start": whole, "rules": rules}} if rules else whole)

    # Parts of an answer.

    def _thinking(self, body: Expr) -> Expr:
        """Thoughts, and ``body``."""
        frames = self.tool_format.reasoning
        if self.begun == "reasoning":
            # Which of the frames was begun, if there are several, is told by the end that comes.
            return choice(self._thoughts(frame.end, body) for frame in frames)
        if self.thoughts == "none" or not frames:
            return body
        some = choice(sequence(self._literal(frame.begin), self._thoughts(frame.end, body)) for frame in frames)
        return some if self.thoughts == "must" else choice([some, body])

    def _thoughts(self, end: str, body: Expr) -> Expr:
        """The rest of thoughts with their end, and ``body``; or calls, where these end them."""
        ended = sequence(self._up_to(end), body)
        if self.tool_format.calls_end_reasoning and self.tools:
            return choice([ended, self._triggered_calls(ANY_TEXT)])
        return ended

    def _with_calls(self) -> list[Expr]:
        """Answers with calls, and with an empty list of calls."""
        form = self.tool_format
        if not self.tools:
            return []
        alone = self._calls(form.section_begin)
        empty = [] if form.empty is None or self.calls == "must" else [self._literal(form.empty)]
        closing = optional(text("\n")) if not form.closing else self._literal(form.closing)
        if self.calls == "must" or form.always_calls:
            return [sequence(alone, closing) for alone in (alone, *empty)]
        frame = form.preamble or (form.text[0] if form.text else None)
        found: list[Expr] = []
        if frame is not None and frame.end:
            words = sequence(self._up_to(frame.end), alone, closing)
            found.append(words if self.begun == "text" else sequence(self._literal(frame.begin), words))
        if self.begun != "text":
            if form.text and not form.bare:
                found.append(sequence(alone, closing))
            else:
                found.append(sequence(self._triggered_calls(self._prose), closing))
                found += [self._drifted_calls] if form.drift else []
        return [*found, *(sequence(one, closing) for one in empty)]

    def _without_calls(self) -> list[Expr]:
        """Answers in words, or the answer that is asked for."""
        form = self.tool_format
        if self.tools and (self.calls == "must" or form.always_calls):
            return []
        words = self._wordless if self.answer is None else self.answer._expr
        closing = self._literal(form.closing)
        found = []
        for frame in form.text:
            if self.begun != "text":
                end = choice([EMPTY, self._literal(frame.end)]) if not form.closing else self._literal(frame.end)
                found.append(sequence(self._literal(frame.begin), words, end, closing))
            elif frame is form.text[0]:
                found.append(sequence(words, optional(self._literal(frame.end)), closing))
        if not form.text or form.bare:
            found.append(sequence(words, closing))
        return found

    # Free text.

    @cached_property
    def _prose(self) -> Expr:
        """Text before a call: any, but for what is a call in itself."""
        if not self._drift:
            return ANY_TEXT
        return both(ANY_TEXT, negation(sequence(self._drift_begins, ANY_TEXT)))

    @cached_property
    def _wordless(self) -> Expr:
        """Text of an answer without calls: nothing in it begins one."""
        if not self.tools:
            return ANY_TEXT
        if self.tool_format.trigger == "start":
            begun = sequence(_SPACE, choice(map(text, self._triggers)), ANY_TEXT)
            return both(ANY_TEXT, negation(begun))
        if self._is_textual:
            free = text_without(self._triggers)
            return both(free, self._prose) if self._drift else free
        return self._prose

    def _up_to(self, mark: str) -> Expr:
        """Text up to the first occurrence of ``mark``, and the mark."""
        if self._tokens_in(mark):
            return sequence(ANY_TEXT, self._literal(mark))
        core = mark.strip()  # what tells; the white space around it is drift
        before, _, after = mark.partition(core)
        return sequence(shortest(sequence(ANY_TEXT, text(core))), text(after)) if core else self._literal(before)

    # Calls.

    @cached_property
    def _triggers(self) -> list[str]:
        """What begins a call, as texts that occur in nothing else."""
        form = self.tool_format
        if form.trigger == "marker":
            return [form.mark]
        return list(dict.fromkeys(self._head(tool, form.section_begin).lstrip() for tool in self.tools))

    @cached_property
    def _is_textual(self) -> bool:
        """Whether nothing but text tells that a call begins."""
        return not any(self._tokens_in(trigger) for trigger in self._triggers)

    def _triggered_calls(self, prose: Expr) -> Expr:
        """Free text, and calls from their trigger on."""
        form = self.tool_format
        if form.trigger == "start":
            return sequence(_SPACE, self._calls(form.section_begin.lstrip()))
        if not self._is_textual:
            return sequence(prose, self._calls(form.section_begin.lstrip(), strip=True))
        found = []
        for trigger in self._triggers:
            up_to = shortest(sequence(ANY_TEXT, choice(map(text, self._triggers))))
            before = (
                both(up_to, sequence(prose, text(trigger))) if len(self._triggers) > 1 or prose != ANY_TEXT else up_to
            )
            found.append(sequence(before, self._calls(form.section_begin.lstrip(), strip=True, after=trigger)))
        return choice(found)

    def _calls(self, section_begin: str, *, strip: bool = False, after: str = "") -> Expr:
        """Calls, and the frame around all of them. ``strip``: without the white space in front; ``after``: without
        this beginning, which the first call must have."""
        form = self.tool_format
        firsts, others = [], []
        for tool in self.tools:
            head = self._head(tool, section_begin)
            head = head.lstrip() if strip else head
            if self.prefilled and head.startswith(form.prefill) and not after:
                head = head[len(form.prefill) :]
            if head.startswith(after):
                firsts.append(self._call(tool, head[len(after) :]))
            others.append(self._call(tool, self._head(tool, form.separator)))
        most = 1 if form.one_call else self.most_calls
        more = repeat(choice(others), 0, most - 1) if most > 1 else EMPTY
        return sequence(choice(firsts), more, self._ending(form.section_end))

    def _head(self, tool: Tool, before: str) -> str:
        """What stands before a call's arguments."""
        form = self.tool_format
        name = json_name(tool.name) if form.is_object else tool.name
        return (before + form.begin).replace(NAME, tool.name) + name + form.between.replace(NAME, tool.name)

    def _call(self, tool: Tool, head: str) -> Expr:
        end = self.tool_format.end
        body = sequence(
            self._literal(head),
            {"rule": f"arguments {tool.name}"},
            self._literal(end) if self.tool_format.section_end or self.tool_format.separator else self._ending(end),
        )
        return named("call", tool.name, body)

    def _ending(self, end: str) -> Expr:
        """The last text of an answer. A token that stops it is not asked for."""
        if end and end in self.tool_format.stop:
            return EMPTY if end in self.tokens else optional(text(end))
        return self._literal(end)

    def _arguments(self, tool: Tool) -> Expr:
        form = self.tool_format
        _check_name(form, tool)
        if not isinstance(form.arguments, Json):
            excludes = [form.end.strip()] if form.end.strip() and form.end.strip() not in form.stop else []
            try:
                return parameters(
                    form.arguments, tool.parameters, excludes=excludes, literal=self._literal, place=Place()
                )
            except PunchcardError as error:
                raise _blamed(tool, error) from error
        spacing = {"spaced": "after_separators", "compact": "none", "indented": 40}[form.arguments.spacing]
        return _json(tool.parameters, spacing)

    # Calls in another way than the family was trained to.

    @cached_property
    def _drift(self) -> bool:
        return bool(self.tool_format.drift and self.tools)

    @cached_property
    def _drift_begins(self) -> Expr:
        """How a call begins in another way, up to the name of one of the tools.

        An object at the beginning of an answer has no white space behind its bracket, whether it is a call or not: a
        model that begins it over several lines writes its values less well than it does in one.
        """
        names = choice(text(json_name(tool.name)) for tool in self.tools)
        called = sequence(_regex(_OBJECT_BEGINS), names, text('"'))
        return sequence(_regex(r"[\s,]*" + self.tool_format.drift), choice([called, _regex(r"\{\s")]))

    @property
    def _drifted_calls(self) -> Expr:
        calls = choice(
            named(
                "call",
                tool.name,
                sequence(
                    _regex(_OBJECT_BEGINS),
                    text(json_name(tool.name)),
                    text('", "arguments": '),
                    {"rule": f"arguments {tool.name}"},
                    text("}"),
                ),
            )
            for tool in self.tools
        )
        form = self.tool_format
        more = repeat(sequence(_regex(r"[\s,]*"), calls), 0, self.most_calls - 1)
        ends = [optional(_regex(rf"\s*{end}")) for end in form.drift_end]
        return sequence(_regex(r"[\s,]*" + form.drift), calls, more, *ends)

    # Literal text.

    def _literal(self, value: str) -> Expr:
        """A text of the layout: its marks that are tokens by name, what stands in it for something by its pattern."""
        if self.prefilled and any(value == frame.begin for frame in self.tool_format.text):
            value = value.removeprefix(self.tool_format.prefill)
        parts = _split(value, self._tokens_in(value))
        return sequence(*(token([part]) if is_token else _with_placeholders(part) for part, is_token in parts))

    def _tokens_in(self, value: str) -> list[str]:
        return [name for name in self.tool_format.markers if name in self.tokens and name in value]


_OBJECT_BEGINS = r'\{(?:"type"\s*:\s*"function"\s*,\s*)?"name"\s*:\s*"'
_SPACE: Expr = {"regex": {"pattern": r"[ \n]{0,4}"}}


def _regex(pattern: str) -> Expr:
    return {"regex": {"pattern": pattern}}


def _json(schema: JsonSchema, spacing: object) -> Expr:
    options: dict[str, object] = {"whitespace": spacing}
    return Grammar.from_json_schema(schema, **options)._expr  # type: ignore[arg-type]


def _split(value: str, names: Collection[str]) -> list[tuple[str, bool]]:
    """A text as pieces, and whether each is a token. Longer names win."""
    if not names:
        return [(value, False)] if value else []
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    pieces = re.split(f"({pattern})", value)
    return [(piece, index % 2 == 1) for index, piece in enumerate(pieces) if piece]


def _with_placeholders(value: str) -> Expr:
    parts = [part for part in _PLACEHOLDER.split(value) if part]
    return sequence(*(_regex(PLACEHOLDERS[part]) if part in PLACEHOLDERS else text(part) for part in parts))


def _check_name(form: ToolFormat, tool: Tool) -> None:
    """Refuses a name that could not be told from what follows it."""
    if form.is_object:
        return
    follows = form.between.strip()[:1] or "<{"
    if any(character in tool.name for character in follows) or (":" in form.between[:1] and ":" in tool.name):
        raise ToolError(
            f"The name {tool.name!r} cannot be written in the format {form.name}",
            hint="Use letters, digits and '_'",
            tool=tool.name,
        )
    if form.between == "(" and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", tool.name):
        raise ToolError(
            f"The name {tool.name!r} is none of a Python function, which the format {form.name} asks for",
            hint="Use letters, digits and '_'",
            tool=tool.name,
        )


def _blamed(tool: Tool, error: PunchcardError) -> ToolError:
    fields = {**error.fields, "tool": tool.name}
    return ToolError(f"The arguments of {tool.name}: {error.message}", hint=error.hint, **fields)
