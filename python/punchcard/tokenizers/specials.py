"""Which added tokens are control markers, and which are text that happens to be one token.

Sources mark most control tokens as *special*, but not all of them: many list ``<think>``, ``<tool_call>`` or
``<|User|>`` as ordinary added tokens, next to runs of spaces and HTML tags that really are text. A marker that
matched as text could appear inside a JSON string, where a chat template or a server reads it as the end of the
call. So an added token counts as special if its source says so, or if it looks like a marker.

Only *added* (user-defined) tokens are looked at. An ordinary piece of the vocabulary is text, whatever it looks like:
``<div>`` or ``[INST]`` learnt by a BPE are characters.
"""

from __future__ import annotations

import re

_MARKER = re.compile(r"<[^<>\s]+>|\[/?[A-Z][A-Z0-9_@]*\]")
_HTML_TAG = re.compile(
    r"</?(?:a|abbr|article|b|blockquote|body|br|button|caption|center|cite|code|col|dd|del|details|div|dl|dt|em|figure|"
    r"font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|label|li|link|main|meta|nav|ol|option|p|pre|"
    r"script|section|select|small|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|textarea|tfoot|th|thead|"
    r"title|tr|tt|u|s|ul|var|video)/?>",
    re.IGNORECASE,
)


def looks_special(text: str) -> bool:
    """Whether an added token has the shape of a control marker: ``<...>``, but no HTML tag, or ``[UPPER_CASE]``."""
    return _MARKER.fullmatch(text) is not None and _HTML_TAG.fullmatch(text) is None
