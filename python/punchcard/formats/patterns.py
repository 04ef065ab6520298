"""What a format looks like to the parser: its layout as patterns.

They are looser than the layout: any white space or none where it has some, brackets around a single call or none, the
known variants. Marks that come as tokens are single characters, lone surrogates, which no text can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import regex

from punchcard.formats.arguments import NEVER as NEVER
from punchcard.formats.arguments import MemberPatterns
from punchcard.formats.base import NAME, PLACEHOLDERS, Json, ToolFormat
from punchcard.formats.source import compiled

#: The group that holds what stands for a placeholder.
GROUPS = {placeholder: f"id{number}" for number, placeholder in enumerate(PLACEHOLDERS)}

_ANY_NAME = r"(?!\.)[^\s\"'<>(){}\[\],|=\ud800-\udfff]{1,128}?"
_FENCE = r"(?:```(?:json)?)?"
#: What no text stands between and a tag: brackets of lists and objects, numbers of calls.
_CLOSED = frozenset(("]", "}", *PLACEHOLDERS))
#: An end of a call that is nothing but several tags.
_END_TAGS = regex.compile(r"\s*(?:(<[^<>\s]*>)\s*){2,}")


class FormatPatterns:
    """The patterns of a format, given the marks that come as tokens and the names of the tools.

    Attributes:
        codes: the character of each mark.
        parts: what a part of an answer begins with; the name of the group says which: ``think0``, ``text0``, ...,
            ``calls``, ``empty`` for a section without calls, or ``stray`` for a mark without meaning.
            ``later_parts``: the same in the middle of text.
        calls: what calls begin with.
        first_parts: as ``parts``, with ``drifted`` for a call without its frame, as ``drifted_call`` matches it; what
            follows that are ``next_drifted_call`` and ``drift_ends``, each or not.
        first_call, next_call: what stands before the arguments of the first call, and of a further one. The group
            ``name`` holds its name, if it is not inside of the arguments.
        call_end: what ends a call, then what ends its variants; ``call_ends``: any of it; ``section_end``: what ends
            all calls.
        reasoning_ends, text_ends: what ends each frame.
        members: of arguments that are no JSON.
    """

    def __init__(self, form: ToolFormat, marks: Sequence[str], names: Sequence[str]) -> None:
        self._form = form
        self.codes = {mark: chr(0xD800 + number) for number, mark in enumerate(marks)}
        self._inside = {mark[at : at + 2] for mark in form.markers for at in range(len(mark) - 1)}
        self._spelled = sorted(self.codes, key=len, reverse=True)
        known = "|".join(regex.escape(name) for name in sorted(names, key=len, reverse=True))
        # A name that nothing marks must be one that is known; where nothing is known, any will do.
        any_name = form.trigger == "marker" or not names
        self._name = "|".join(filter(None, (known, _ANY_NAME if any_name else "")))

        frames = [*form.text, *([form.preamble] if form.preamble else [])]
        self.reasoning_ends = [compiled(self.loose(frame.end)) for frame in form.reasoning]
        self.text_ends = [compiled(self.loose(frame.end)) if frame.end.strip() else NEVER for frame in frames]

        first = self._openings(first=True)
        self.first_call = compiled("|".join(first))
        self.next_call = compiled("|".join(self._openings(first=False)))
        begins = _without_groups("|".join(first))
        # Where it is searched for, white space in front would be tried from each of its characters on.
        searched = _without_groups("|".join(opening.removeprefix(r"\s*") for opening in first))
        self.calls = compiled(searched)
        drifted = self._drifted(names)
        self.drifted_call = compiled(drifted) if drifted else NEVER
        self.next_drifted_call = compiled(r"[\s,;]*(?=\{)")
        self.drift_ends = [compiled(rf"\s*{end}") for end in form.bare_endings]

        thoughts = [f"(?P<think{i}>{self.loose(frame.begin)})" for i, frame in enumerate(form.reasoning)]
        texts = [f"(?P<text{i}>{self.loose(frame.begin)})" for i, frame in enumerate(frames)]
        stray = [f"(?P<stray>{'|'.join(marks)})"] if (marks := self._stray()) else []
        empty = [f"(?P<empty>{self.loose(form.empty)})"] if form.empty else []
        calls = [f"(?P<calls>{begins})"]
        bare = [f"(?P<drifted>{drifted})"] if drifted else []
        self.first_parts = compiled(rf"\s*(?:{'|'.join([*thoughts, *texts, *empty, *calls, *stray, *bare])})")
        again = [] if form.trigger == "start" else calls
        self.parts = compiled(rf"\s*(?:{'|'.join([*thoughts, *texts, *empty, *again, *stray]) or NEVER.pattern})")
        later = [part for part, frame in zip(thoughts, form.reasoning, strict=True) if self._is_mark(frame.begin)]
        later += [part for part, frame in zip(texts, frames, strict=True) if self._is_mark(frame.begin)]
        later += [] if form.trigger == "start" else [f"(?P<calls>{searched})"]
        self.later_parts = compiled("|".join([*later, *stray])) if later or stray else NEVER

        self.call_ends = self._any(form.end, *(variant.end for variant in form.variants), *self._fences())
        ends = [form.end] if form.end.strip() else [form.section_end, form.separator]
        after_call = [self.loose(end) for end in ends if end.strip()]
        others = [self.loose(variant.end) for variant in form.variants if variant.end.strip()]
        # One may begin another, so they are looked for one after the other. Then what tells that an end is missing.
        missing = [*self._end_tags(), *([] if form.is_object else self._openings(first=False))]
        self.call_end = [compiled(rf"\s*(?:{'|'.join(some)})") for some in (after_call, others, missing) if some]
        self.section_end = self._section_end()
        ending = form.end if form.end.strip() not in form.stop else ""
        self.members = None if isinstance(form.arguments, Json) else MemberPatterns(form.arguments, self.loose, ending)

    def loose(self, layout: str, *, groups: bool = False, tight: bool = False) -> str:
        """A pattern for a text of the layout. ``groups``: placeholders are groups. ``tight``: what stands beside it is
        text, so white space there belongs to that."""
        coded = layout.strip()
        for mark in self._spelled:
            coded = coded.replace(mark, self.codes[mark])
        # Between two words there is some space, elsewhere there may be none.
        parts = regex.split(r"((?<=\w)\s+(?=\w))|(\s+)", coded)
        spaces = [r"\s+" if index % 3 == 1 else r"\s*" for index in range(len(parts))]
        return "".join(
            space if part.isspace() else self._spell(part, groups, tight)
            for part, space in zip(parts, spaces, strict=True)
            if part
        )

    def _spell(self, part: str, groups: bool, tight: bool) -> str:
        pattern = ""
        for before, character in zip(" " + part, part, strict=False):
            pattern += r"\s*" if self._is_between(before, character, tight=tight) else ""
            pattern += self._one(character, groups, tight)
        return pattern

    def _is_between(self, before: str, after: str, *, tight: bool) -> bool:
        """Whether these two stand on both sides of where there is no text: between two tags, or a tag and a bracket."""
        if before + after in self._inside:
            return False
        ends, begins = _is_end(before), _is_beginning(after)
        if (ends and begins) or (ends and after in "[{") or (before in _CLOSED and begins):
            return True
        # Behind a mark that tells a call from text there is no text at all.
        words = (ends and after.isalnum()) or (before.isalnum() and begins)
        return words and not tight and self._form.trigger == "marker"

    def _one(self, character: str, groups: bool, tight: bool) -> str:
        if character in PLACEHOLDERS:
            return f"(?{f'P<{GROUPS[character]}>' if groups else ':'}{PLACEHOLDERS[character]})"
        if character == NAME:
            return f"(?:{_ANY_NAME})"
        if _is_code(character):
            return character if tight else rf"\s*{character}\s*"
        return str(regex.escape(character))

    def _openings(self, *, first: bool) -> list[str]:
        """What stands before a call's arguments, in each of the ways that are known."""
        form = self._form
        ways = [(form.begin, form.between), *((variant.begin, variant.between) for variant in form.variants)]
        make = self._object_opening if form.is_object else self._named_opening
        return [make(begin, between, first, trained=i == 0) for i, (begin, between) in enumerate(ways)]

    def _object_opening(self, begin: str, between: str, first: bool, trained: bool) -> str:
        """Up to the bracket of the object that is the call."""
        form = self._form
        head = _before_object(begin)
        if not first:
            separator = self.loose(_before_object(form.separator))
            # Some write a list where the family writes one object after the other.
            return rf"[\s,;]*(?:{separator})?\s*{self.loose(head)}\s*\[?\s*(?=\{{)|\s*,\s*(?=\{{)"
        section = _before_object(form.section_begin) if trained else ""
        mark = f"(?:{self.loose(form.markers[0])})?" if form.trigger == "start" and form.markers else ""
        key = form.call_keys[0] if form.call_keys else ""
        named = rf'(?=\{{\s*"{key}"\s*:\s*"(?:{self._name})")' if form.trigger == "named" else r"(?=\{)"
        return rf"{mark}{self.loose(section + head)}\s*{_FENCE}\s*\[?\s*{named}"

    def _drifted(self, names: Sequence[str]) -> str:
        """A call at the beginning of an answer that is an object without the family's frame, perhaps in a fence."""
        frame = self._form.bare_beginning
        if frame is None or not names:
            return ""
        known = "|".join(regex.escape(name) for name in sorted(names, key=len, reverse=True))
        named = rf'\{{\s*(?:"type"\s*:\s*"function"\s*,\s*)?"(?:name|tool_name)"\s*:\s*"(?:{known})"'
        return rf"[\s,]*+{frame}(?={named})"

    def _named_opening(self, begin: str, between: str, first: bool, trained: bool) -> str:
        """Up to the arguments, with the name among it."""
        form = self._form
        lead = ""
        if first and trained and form.section_begin.strip():
            # Some leave the frame of all calls out, if each has a mark of its own.
            # And some the bracket of the list, behind a mark.
            mark = form.section_begin.strip().removesuffix("[")
            bracket = r"\s*\[?" if mark and mark != form.section_begin.strip() else ""
            section = self.loose(mark) + bracket if bracket else self.loose(form.section_begin)
            lead = f"(?:{section}){'?' if begin.strip() else ''}"
        elif not first:
            # Some write a list for each call, where the family has one for all.
            lists = r"|\]\s*[,;]?\s*\[|;" if form.section_begin.endswith("[") else ""
            lead = rf"\s*(?:{self.loose(form.separator)}{lists})?"
        behind = self.loose(between, groups=trained) if between.strip() else ""
        # Where the name tells a call from text, it stands exactly where it belongs.
        space = "" if form.trigger == "named" else r"\s*"
        behind = f"{space}{behind}{self._follows(between)}"
        before = r"\s+" if _ends_a_word(begin) else space
        return rf"{lead}\s*{self.loose(begin, groups=trained)}{before}(?P<name>{self._name}){behind}"

    def _follows(self, between: str) -> str:
        """What must come where nothing marks the end of a name."""
        if between.strip():
            return ""
        form = self._form
        style = form.arguments
        begins = r"\{" if isinstance(style, Json) else self.loose(style.opening or style.before)
        ends = f"|{self.loose(form.end)}" if form.end.strip() else ""
        space = regex.escape(between) if form.trigger == "named" else r"\s*"
        return rf"{space}(?={begins}{ends})"

    def _section_end(self) -> Any:
        form = self._form
        if not form.is_object:
            mark = form.section_end.strip().removeprefix("]")
            bracket = r"\]?\s*" if mark and mark != form.section_end.strip() else ""
            end = bracket + self.loose(mark) if bracket else self.loose(form.section_end)
            return compiled(r"\s*" + end) if form.section_end.strip() else NEVER
        tail = _behind_object(form.section_end)
        return compiled(rf"\s*(?:[\]}},]\s*){{0,3}}{self.loose(tail)}" if tail else r"\s*\]")

    def _end_tags(self) -> list[str]:
        """The tags of what ends a call, where it is several: any of them may be missing."""
        tags = _END_TAGS.fullmatch(self._form.end)
        return [self.loose(tag) for tag in tags.captures(1)] if tags else []

    def _fences(self) -> list[str]:
        return ["```"] if self._form.is_object else []

    def _any(self, *layouts: str) -> Any:
        """Any of these behind a call, with the bracket of a list in front of it."""
        ends = [_behind_object(layout) if self._form.is_object else layout.strip() for layout in layouts]
        patterns = dict.fromkeys([*(self.loose(end) for end in ends if end), *self._end_tags()])
        # A bracket too many closes nothing.
        brackets = r"\s*(?:[\]},]\s*){0,3}" if self._form.is_object else r"\s*"
        return compiled(f"{brackets}(?:{'|'.join(patterns)})") if patterns else NEVER

    def _stray(self) -> list[str]:
        """Marks that may be left over around parts: ends of frames and of sections, and stop tokens."""
        form = self._form
        ends = [frame.end for frame in (*form.text, *form.reasoning)]
        left = [form.section_end, form.closing, *ends, *form.stop, form.separator]
        return [self.loose(mark) for mark in left if mark.strip() and self._is_mark(mark)]

    def _is_mark(self, layout: str) -> bool:
        """Whether it cannot be mistaken for text."""
        return layout.strip()[:1] == "<" or any(mark in layout for mark in self.codes)


@lru_cache(maxsize=256)
def patterns_of(form: ToolFormat, marks: tuple[str, ...], names: tuple[str, ...]) -> FormatPatterns:
    """The patterns of a format, made once."""
    return FormatPatterns(form, marks, names)


@lru_cache(maxsize=256)
def any_of(*patterns: Any) -> Any:
    """What any of these patterns matches."""
    return compiled("|".join(f"(?:{_without_groups(pattern.pattern)})" for pattern in patterns))


def _without_groups(pattern: str) -> str:
    return str(regex.sub(r"\(\?P<\w+>", "(?:", pattern))


def _ends_a_word(layout: str) -> bool:
    """Whether only white space tells the name behind this text from the rest of a word."""
    return layout[-1:].isspace() and layout.rstrip()[-1:].isalnum()


def _is_code(character: str) -> bool:
    return 0xD800 <= ord(character) < 0xE000


def _is_end(character: str) -> bool:
    return character == ">" or _is_code(character)


def _is_beginning(character: str) -> bool:
    return character == "<" or _is_code(character)


def _before_object(layout: str) -> str:
    """What stands before a call that is an object, without the bracket of a list."""
    return layout.partition("{")[0].rstrip().rstrip("[").rstrip()


def _behind_object(layout: str) -> str:
    """What stands behind it, without that bracket."""
    return layout.rpartition("}")[2].strip().removeprefix("]").strip()
