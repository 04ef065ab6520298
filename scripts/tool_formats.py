"""Writes docs/tool-formats.md from the entries of `punchcard.formats`.

python scripts/tool_formats.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from punchcard.chat import Call
from punchcard.formats import FORMATS, ToolFormat
from punchcard.formats.base import ID, ID9, ID10, INDEX0, INDEX1, NAME, Json
from punchcard.formats.writing import write_calls

PAGE = Path(__file__).parents[1] / "docs" / "tool-formats.md"
_SHOWN = {INDEX0: "INDEX", INDEX1: "INDEX1", ID9: "ID", ID10: "ID", ID: "ID", NAME: "NAME"}
_CALLS = (Call("get_weather", {"city": "Oslo", "days": 2}), Call("set_lights", {"room": "den", "on": True}))

HEAD = """\
# Tool formats

How each model family was trained to write calls: one entry in `punchcard/formats/families`, from which follow the
prompt (where the model's own chat template does not show tools), the grammar of an answer, and the parser. This page is
made from the entries by `scripts/tool_formats.py`.

The format of a model is found by its chat template, then by the tokens of its vocabulary, then by its name
(`punchcard.formats.detect_format`); `tool_format="..."` of `Agent` and of the server overrides it.

All families share one layout, any part of which may be empty:

```text
OUTPUT = [reasoning] [text] section-begin  CALL (separator CALL)*  section-end
CALL   = begin  NAME  between  ARGUMENTS  end
```

- **Marks**: where a mark of the family is one token of the vocabulary, it is matched by its id, in the grammar and by
  the parser; the same characters spelled by other tokens are prose. Where it is several tokens, its characters count.
- **Trigger**: what tells in free text that calls follow: the mark itself; or, where the family writes no mark, the
  beginning of a call *with the name of a tool that is there* (`named`), and of those some only at the beginning of an
  answer (`start`). So a list in brackets, `import functools` or a piece of JSON in prose are prose.
- **Arguments** are under the tool's JSON Schema in full where they are JSON. In the other styles strings stand raw
  (what closes them cannot occur in them), and a schema that says something of an object or an array as a whole that the
  style cannot express is refused, by keyword; so are names that the style could not tell from what follows.
  Arguments are always an object: a schema that admits none is refused, by the name of the tool.
- **Texts and other values**: where a text stands raw and the schema admits other values too, only what the family
  would write of another value is that value, and the schema must admit it: `5` and `[1, "x"]`, but not `0x5`, `5e0`,
  `1_000` or `5 # five`. Numbers keep their spelling in streamed arguments, however long they are.
- **Trained bytes out, anything in**: the grammar lets through what the family was trained to write, to the byte; the
  parser also takes drift: other white space, other orders and names of members, lists and single objects alike, a fence
  around the bare object, arguments as a JSON text in a string, Python's words, missing ends, and the variants noted
  below. What looks like a call and is none stays text, and is not told of as a call: without a grammar a call is
  streamed when it is complete, under a grammar while it is written. An answer whose tokens ran out in a call has it as
  far as it came (`Reply.partial`, `finish_reason: "length"`), and nothing of it in its text.
- **Results** stand in the order of their calls, whatever order they come in, and have the name of the tool: a result is
  matched to its call by its id, then by its name, then by its place.
- **Confidence** is how sure the facts are. The entries of high confidence were compared with what the chat templates of
  the models print; what is unsure is said.

"""


def page() -> str:
    rows = [
        f"| [`{form.name}`](#{form.name}) | {', '.join(form.models)} | {_cell(_trigger(form))} | {_style(form)} | "
        f"{form.confidence} |"
        for form in FORMATS.values()
    ]
    table = "\n".join(
        ["| format | models | calls begin with | arguments | confidence |", "|---|---|---|---|---|", *rows]
    )
    return HEAD + f"## {len(FORMATS)} formats\n\n{table}\n\n" + "\n".join(map(_entry, FORMATS.values()))


def _entry(form: ToolFormat) -> str:
    lines = [f"### {form.name}", "", ", ".join(form.models) + f". Confidence: {form.confidence}."]
    lines += [f"Unsure: {form.unsure}."] if form.unsure else []
    lines.append("")
    parts = [
        ("section-begin", form.section_begin),
        ("begin", form.begin),
        ("between", form.between),
        ("end", form.end),
        ("separator", form.separator),
        ("section-end", form.section_end),
        ("closing", form.closing),
    ]
    lines += [f"- {name} {_code(value)}" for name, value in parts if value]
    if form.trigger != "marker":
        lines.append(f"- trigger: {form.trigger}")
    for frame in form.reasoning:
        ends = ", or a call" if form.calls_end_reasoning else ""
        lines.append(f"- reasoning {_code(frame.begin)} … {_code(frame.end)}{ends}")
    for frame in (*form.text, *([form.preamble] if form.preamble else [])):
        lines.append(f"- text {_code(frame.begin)} … {_code(frame.end) if frame.end else 'the end'}")
    if form.call_id:
        lines.append(f"- id of a call: {_code(form.call_id)}")
    if form.one_call:
        lines.append("- one call in an answer")
    if form.variants:
        known = "; ".join(f"{_code(v.begin)} NAME {_code(v.between)}" for v in form.variants)
        lines.append(f"- the parser also takes {known}")
    if form.empty:
        lines.append(f"- no call: {_code(form.empty)}")
    lines.append(f"- stop {', '.join(map(_code, form.stop)) or 'unknown'}")
    calls = _CALLS[:1] if form.one_call else _CALLS
    fence = "````" if "```" in write_calls(form, calls) else "```"
    lines += ["", f"{fence}text", write_calls(form, calls).strip("\n"), fence, ""]
    return "\n".join(lines)


def _trigger(form: ToolFormat) -> str:
    return form.mark if form.trigger == "marker" else f"{form.opener}NAME"


def _style(form: ToolFormat) -> str:
    style = form.arguments
    if isinstance(style, Json):
        return "JSON" if form.is_object else "JSON behind the name"
    if style.opening:
        return "object without quotes"
    if not style.before:
        return "keyword arguments"
    return "nested elements" if style.nested == "same" else "elements"


def _code(text: str) -> str:
    """A text in a code span, its line breaks and placeholders shown."""
    for placeholder, name in _SHOWN.items():
        text = text.replace(placeholder, name)
    text = text.replace("\n", "\\n")
    if "`" in text:
        return f"`` {text} ``" if "```" not in text else f"```` {text} ````"
    return f"`{text}`"


def _cell(text: str) -> str:
    """The same in a table."""
    return _code(text).replace("|", "\\|")


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes docs/tool-formats.md.")
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    if parser.parse_args().check:
        sys.exit(PAGE.read_text(encoding="utf-8") != page() and f"{PAGE} is stale: run python scripts/tool_formats.py")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
