"""In which notation a grammar is written, where only its text is given."""

from __future__ import annotations

import re

#: White space and comments of either notation. Before the first rule a `#` begins a comment.
_SKIPPED = re.compile(r"(?:[\s\ufeff]|#[^\n]*|//[^\n]*|/\*.*?\*/|\(\*.*?\*\))*", re.DOTALL)
#: A name with what may stand before and after it: `?name`, `name{x}`, `name.2`, `name[lazy]`; `[12] name`.
_NAME = re.compile(r"(?:\[\d+[a-z]*\]\s*)?[?!]*[\w.-]+(?:\{[^}\n]*\})?(?:\.-?\d+)?(?:\[[^\]\n]*\])?\s*")


def is_lark(text: str) -> bool:
    """Whether a grammar is Lark's rather than EBNF: by how its first rule is defined. Lark writes a colon, EBNF `::=`,
    `:=` or `=`; whatever stands in literals says nothing."""
    skipped = _SKIPPED.match(text)
    at = skipped.end() if skipped else 0
    if text.startswith("%", at):
        return True
    name = _NAME.match(text, at)
    if name is None:
        return "::=" not in text
    return not text.startswith(("::=", ":=", "="), name.end())
