"""What a tool format is: how a model family was trained to read tools, to write calls and to take results.

All families share one layout, in which any part may be empty:

    OUTPUT = [REASONING] [TEXT] SECTION_BEGIN  CALL (SEPARATOR CALL)*  SECTION_END  CLOSING
    CALL   = BEGIN  NAME  BETWEEN  ARGUMENTS  END

A `ToolFormat` fills it in. It is data; what follows from it lives elsewhere: the prompt (`punchcard.formats.prompt`),
the text of calls (`.writing`), the grammar (`.grammar`) and the parser (`.parser`). The entries are in
`punchcard.formats.families`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from punchcard.tags.styles import Style

# What stands in a layout for something that differs from call to call. Private-use characters, which no family writes.
INDEX0 = "\ue000"
"""The number of the call, from 0."""
INDEX1 = "\ue001"
"""The number of the call, from 1."""
ID9 = "\ue002"
"""An id of 9 letters and digits."""
ID10 = "\ue003"
"""An id of 10 lower-case letters and digits."""
ID = "\ue004"
"""An id of letters, digits, ``_`` and ``-``."""
NAME = "\ue005"
"""The name of the tool, where it stands twice."""

#: What may stand for each of them, as a regular expression.
PLACEHOLDERS: Mapping[str, str] = {
    INDEX0: "[0-9]{1,4}",
    INDEX1: "[0-9]{1,4}",
    ID9: "[A-Za-z0-9]{9}",
    ID10: "[a-z0-9]{10}",
    ID: "[A-Za-z0-9_-]{1,64}",
}

#: How JSON is spaced: a space after each comma and colon; no space; or line breaks and indentation.
Spacing = Literal["spaced", "compact", "indented"]


@dataclass(frozen=True)
class Json:
    """Arguments that are one JSON object."""

    spacing: Spacing = "spaced"


@dataclass(frozen=True)
class Frame:
    """What stands around a part of an answer."""

    begin: str
    end: str


@dataclass(frozen=True)
class Variant:
    """Another way to frame a call, which models of a family also write. The parser takes it, no grammar asks for it."""

    begin: str
    between: str
    end: str


@dataclass(frozen=True)
class Detection:
    """What tells a family: texts that are all in its chat template (in any of the sets), or are tokens of its own;
    parts of the model's name, in lower case."""

    template: tuple[tuple[str, ...], ...] = ()
    tokens: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ToolFormat:
    """One family's way with tools.

    Attributes:
        name: of the entry.
        models: whose it is, for the documentation.
        confidence: how sure the facts are; ``unsure`` says which are not.
        begin, between, end: around a call's name and arguments; ``separator``: between two calls; ``section_begin``,
            ``section_end``: around all of them. `PLACEHOLDERS` may stand in them.
        arguments: `Json`, or the `Style` in which they are written.
        closing: the end of the whole answer, if that is more than a stop token.
        call_id: what a call's id is made of, where the model writes one.
        call_keys: names of the members that hold a call's name and arguments, where the call is a JSON object; empty
            ones where the only member is named after the tool. `None`: the call is no object.
        variants: other ways to write a call that are known to occur.
        trigger: what tells in free text that calls follow. ``"marker"``: the beginning of the first call, up to the end
            of its tag; ``"named"``: the beginning with the name of a tool, since the rest is ordinary text;
            ``"start"``: the same, and only where the answer begins.
        gap: what the family writes between text and its first call. It belongs to neither.
        reasoning: frames of the model's thoughts. ``calls_end_reasoning``: a call among thoughts is one.
        text: frames of text, where text has one; ``preamble``: of text before calls, where that is another frame.
            ``bare``: text may also come without.
        prefill: what the prompt ends with of the beginning of any part.
        markers: parts of the above that may be one token each. Where they are, they are matched by id, and the same
            characters, spelled by other tokens, are text.
        stop: tokens that end an answer.
        one_call: the family writes one call in an answer.
        detection: what tells the family.
        shown: what ``{tools}`` is in ``system``: definitions as JSON lines (``"lines"``), functions without their
            wrapper (``"functions"``), or a list of these (``"list"``).
        system: the text for the system turn, with ``{tools}`` and ``{example}`` (a call), where the chat template shows
            no tools; empty for a general one. ``instruction``: what is added where it does.
        result: how results go back where the template has no turn for them, with ``{content}``, ``{name}``, ``{id}``.
        empty: a whole section without calls, or `None` where the family answers in prose then.
        drift: a pattern for what models of the family write before a call's JSON, at the start of an answer, in place
            of its beginning; ``drift_end``: patterns for what they write after it, each or not.
        always_calls: the first answer to a request is a section (perhaps an empty one), never prose.
        calls_once: a run ends when its first calls have been executed; models of the family cannot go on from results.
        examples: the prompt shows invented requests and their calls, made from the tools' schemas.
        calibrate: the tool is chosen by how much more likely the request makes it than other words would.
    """

    name: str
    models: tuple[str, ...]
    begin: str
    between: str
    end: str
    separator: str = ""
    section_begin: str = ""
    section_end: str = ""
    arguments: Json | Style = field(default_factory=Json)
    closing: str = ""
    call_id: str = ""
    call_keys: tuple[str, str] | None = None
    variants: tuple[Variant, ...] = ()
    trigger: Literal["marker", "named", "start"] = "marker"
    gap: str = ""
    reasoning: tuple[Frame, ...] = ()
    calls_end_reasoning: bool = False
    text: tuple[Frame, ...] = ()
    preamble: Frame | None = None
    bare: bool = False
    prefill: str = ""
    markers: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    one_call: bool = False
    detection: Detection = field(default_factory=Detection)
    confidence: Literal["high", "medium", "low"] = "high"
    unsure: str = ""
    shown: Literal["lines", "functions", "list"] = "functions"
    system: str = ""
    instruction: str = ""
    result: str = "<tool_response>\n{content}\n</tool_response>"
    empty: str | None = None
    drift: str = ""
    drift_end: tuple[str, ...] = ()
    always_calls: bool = False
    calls_once: bool = False
    examples: bool = False
    calibrate: bool = False

    @property
    def is_object(self) -> bool:
        """Whether a call is a JSON object with its name in it."""
        return self.call_keys is not None

    @property
    def bare_beginning(self) -> str | None:
        """A pattern for what stands before the object of a call without its frame, at the start of an answer; `None`
        where there are no such calls."""
        if self.call_keys is None or not any(self.call_keys):
            return None
        return self.drift or r"(?:```(?:json)?\s*)?\[?\s*"

    @property
    def bare_endings(self) -> tuple[str, ...]:
        """Patterns for what may stand behind such calls, each or not."""
        return self.drift_end or (r"\]", "```")

    @property
    def opener(self) -> str:
        """What begins the first call, without the white space in front of it."""
        return (self.section_begin + self.begin).lstrip()

    @property
    def mark(self) -> str:
        """The tag that begins the first call, or all of its beginning where that is no tag."""
        tag = re.match(r"<[^>\"=]*>|\[[A-Z_]+\]", self.opener)
        # Without the space behind its last word, it would be found in longer words.
        return tag[0] if tag else self.opener
