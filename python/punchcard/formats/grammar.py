"""The grammar of a whole answer: thoughts, text, calls of certain tools, and what ends it.

Text is free up to the first occurrence of what begins a call (`ToolFormat.trigger`); from there on everything is as the
family was trained to write it, and the arguments are under the tool's schema. Where a mark of the family is one token
of the vocabulary, it is this token and never its characters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
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
from punchcard.toolschemas import blamed, object_schema

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
            ends = [frame.end for frame in frames]
            return choice(self._thoughts(end, body, [other for other in ends if other != end]) for end in ends)
        if self.thoughts == "none" or not frames:
            return body
        some = choice(sequence(self._literal(frame.begin), self._thoughts(frame.end, body)) for frame in frames)
        return some if self.thoughts == "must" else choice([some, body])

    def _thoughts(self, end: str, body: Expr, others: Sequence[str] = ()) -> Expr:
        """The rest of thoughts with their end, which is none of ``others``, and ``body``; or calls, where these end
        them."""
        without = [other.strip() for other in others if other.strip() and not self._tokens_in(other)]
        if self.tool_format.calls_end_reasoning and self.tools:
            ended = sequence(self._up_to(end, [*without, *self._textual_triggers]), body)
            return choice([ended, self._triggered_calls(ANY_TEXT)])
        return sequence(self._up_to(end, without), body)

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
            words = sequence(self._up_to(frame.end, self._textual_triggers), alone, closing)
            found.append(words if self.begun == "text" else sequence(self._literal(frame.begin), words))
        if self.begun != "text":
            if form.text and not form.bare:
                found.append(sequence(alone, closing))
            else:
                found.append(sequence(self._triggered_calls(self._prose), closing))
                found += [self._bare_calls] if self._bare_beginning else []
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
        """Text before a call: any, but for what is a call in itself, or begins thoughts."""
        if not self.tools:
            return ANY_TEXT
        begins = [frame.begin.strip() for frame in self.tool_format.reasoning]
        free = text_without([begin for begin in begins if begin and not self._tokens_in(begin)])
        if not self._bare_beginning:
            return free
        return both(free, negation(sequence(self._bare_call_begins, ANY_TEXT)))

    @cached_property
    def _wordless(self) -> Expr:
        """Text of an answer without calls: nothing in it begins one."""
        if not self.tools:
            return ANY_TEXT
        if self.tool_format.trigger == "start":
            begun = sequence(_SPACE, choice(map(text, self._triggers)), ANY_TEXT)
            return both(self._prose, negation(begun))
        return _limited(self._prose, self._textual_triggers)

    def _up_to(self, mark: str, without: Sequence[str] = ()) -> Expr:
        """Text, with none of ``without`` in it, up to the first occurrence of ``mark``, and the mark."""
        if self._tokens_in(mark):
            return sequence(text_without(without), self._literal(mark))
        core = mark.strip()  # what tells; the white space around it is drift
        before, _, after = mark.partition(core)
        if not core:
            return self._literal(before)
        return sequence(_limited(shortest(sequence(ANY_TEXT, text(core))), without), text(after))

    # Calls.

    @cached_property
    def _triggers(self) -> list[str]:
        """What begins a call, as texts that occur in nothing else."""
        form = self.tool_format
        if form.trigger == "marker":
            return [form.mark]
        return list(dict.fromkeys(self._head(tool, form.section_begin).lstrip() for tool in self.tools))

    @cached_property
    def _ways(self) -> list[Answers]:
        """These answers, and those with calls framed in another way that text alone begins."""
        form = self.tool_format
        others = [
            replace(
                form, begin=v.begin, between=v.between, end=v.end, section_begin="", section_end="", trigger="marker"
            )
            for v in form.variants
        ]
        if form.section_begin.strip() and form.begin.strip() and not form.is_object:
            # Some leave the frame of all calls out, if each has a mark of its own.
            others.append(replace(form, section_begin="", section_end=""))
        found = [self]
        for other in others if form.trigger != "start" else ():
            known = any(other.mark.startswith(way.tool_format.mark) for way in found)
            if not known and not self._tokens_in(other.begin):
                found.append(replace(self, tool_format=replace(other, variants=())))
        return found

    @cached_property
    def _textual_triggers(self) -> list[str]:
        """Texts that begin a call. Where a trigger is a token, it is none of them."""
        return [trigger for way in self._ways for trigger in way._triggers if not self._tokens_in(trigger)]

    def _triggered_calls(self, prose: Expr) -> Expr:
        """Free text, and calls from their trigger on."""
        if self.tool_format.trigger == "start":
            return sequence(_SPACE, self._calls(self.tool_format.section_begin.lstrip()))
        textual = self._textual_triggers
        found = []
        for way in self._ways:
            section_begin = way.tool_format.section_begin.lstrip()
            for trigger in way._triggers:
                if trigger in textual:
                    up_to = shortest(sequence(ANY_TEXT, choice(map(text, textual))))
                    before = both(up_to, sequence(prose, text(trigger)))
                    before = up_to if len(textual) == 1 and prose == ANY_TEXT else before
                    found.append(sequence(before, way._calls(section_begin, strip=True, after=trigger)))
                else:
                    found.append(sequence(_limited(prose, textual), way._calls(section_begin, strip=True)))
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
        schema = object_schema(tool.name, tool.parameters)
        if not isinstance(form.arguments, Json):
            excludes = [form.end.strip()] if form.end.strip() and form.end.strip() not in form.stop else []
            try:
                # A style writes objects only, whatever else the schema admits.
                return parameters(
                    form.arguments, tool.parameters, excludes=excludes, literal=self._literal, place=Place()
                )
            except PunchcardError as error:
                raise blamed(tool.name, error, ToolError) from error
        spacing = {"spaced": "after_separators", "compact": "none", "indented": 40}[form.arguments.spacing]
        return _json(schema, spacing)

    # Calls without their frame, which only an answer's beginning tells from text.

    @cached_property
    def _bare_beginning(self) -> Expr | None:
        """What stands before the object of such a call."""
        pattern = self.tool_format.bare_beginning
        return _regex(r"[\s,]*" + pattern) if pattern and self.tools else None

    @cached_property
    def _object_begins(self) -> Expr:
        """The object of such a call, up to the name of the tool.

        Where the family is known to drift, an object at the beginning of an answer has no white space behind its
        bracket, whether it is a call or not: a model that begins it over several lines writes its values less well than
        it does in one.
        """
        space = "" if self.tool_format.drift else r"\s*"
        return _regex(rf'\{{{space}(?:"type"\s*:\s*"function"\s*,\s*)?"(?:name|tool_name)"\s*:\s*"')

    @cached_property
    def _bare_call_begins(self) -> Expr:
        names = choice(text(json_name(tool.name)) for tool in self.tools)
        called = sequence(self._object_begins, names, text('"'))
        begins = [called, _regex(r"\{\s")] if self.tool_format.drift else [called]
        return sequence(self._bare_beginning, choice(begins))

    @property
    def _bare_calls(self) -> Expr:
        form = self.tool_format
        calls = choice(
            named(
                "call",
                tool.name,
                sequence(
                    self._object_begins,
                    text(json_name(tool.name)),
                    _regex(r'"\s*,\s*"(?:arguments|parameters)"\s*:\s*'),
                    {"rule": f"arguments {tool.name}"},
                    _regex(r"\s*\}"),
                ),
            )
            for tool in self.tools
        )
        most = 1 if form.one_call else self.most_calls
        more = repeat(sequence(_regex(r"[\s,]*"), calls), 0, most - 1) if most > 1 else EMPTY
        ends = [optional(_regex(rf"\s*{end}")) for end in form.bare_endings]
        return sequence(self._bare_beginning, calls, more, *ends)

    # Literal text.

    def _literal(self, value: str) -> Expr:
        """A text of the layout: its marks that are tokens by name, what stands in it for something by its pattern."""
        if self.prefilled and any(value == frame.begin for frame in self.tool_format.text):
            value = value.removeprefix(self.tool_format.prefill)
        parts = _split(value, self._tokens_in(value))
        return sequence(*(token([part]) if is_token else _with_placeholders(part) for part, is_token in parts))

    def _tokens_in(self, value: str) -> list[str]:
        return [name for name in self.tool_format.markers if name in self.tokens and name in value]


_SPACE: Expr = {"regex": {"pattern": r"[ \n]{0,4}"}}


def _regex(pattern: str) -> Expr:
    return {"regex": {"pattern": pattern}}


def _limited(body: Expr, excludes: Sequence[str]) -> Expr:
    """``body``, in which none of these texts occurs."""
    if not excludes:
        return body
    return text_without(excludes) if body == ANY_TEXT else both(body, text_without(excludes))


def _json(schema: JsonSchema, spacing: object) -> Expr:
    # It was checked, and the tool named whose schema is malformed.
    options: dict[str, object] = {"whitespace": spacing, "check": False}
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
