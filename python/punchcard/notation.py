"""In which notation a grammar is written, where only its text is given."""

from __future__ import annotations

import re

#: White space and comments of either notation. Before the first rule a `#` begins a comment.
_SKIPPED = re.compile(r"(?:[\s\ufeff]|#[^\n]*|//[^\n]*|/\*.*?\*/|\(\*.*?\*\))*", re.DOTALL)
#: A name with what may stand before and after it: `?name`, `name{x}`, `name.2`, `name[lazy]`; `[12] name`.
_NAME = re.compile(r"(?:\[\d+[a-z]*\]\s*)?[?!]*[\w.-]+(?:\{[^}\n]*\})?(?:\.-?\d+)?(?:\[[^\]\n]*\])?\s*")
#: What says nothing of the notation: literals, patterns, classes and comments. Then what defines a rule.
_SCANNED = re.compile(
    r"""(?x) "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' | \#[^\n]* | //[^\n]* | /(?:[^/\\\n]|\\.)+/ | \(\*.*?\*\)
    | \[[^\]\n]*\] | (?P<defines>::=|:=|=|:)""",
    re.DOTALL,
)
#: Characters in which the first rule is looked for.
_MOST_SCANNED = 4_000


def is_lark(text: str) -> bool:
    """Whether a grammar is Lark's rather than EBNF: by how its first rule is defined. Lark writes a colon, EBNF `::=`,
    `:=` or `=`; whatever stands in literals says nothing."""
    skipped = _SKIPPED.match(text)
    at = skipped.end() if skipped else 0
    if text.startswith("%", at):
        return True
    name = _NAME.match(text, at)
    if name is not None and text.startswith((":", "="), name.end()):
        return not text.startswith(("::=", ":=", "="), name.end())
    # Something else comes first, which the parser will name. It is to be the parser of the notation that was meant.
    defines = (found["defines"] for found in _SCANNED.finditer(text, at, at + _MOST_SCANNED) if found["defines"])
    return next(defines, ":") == ":"
