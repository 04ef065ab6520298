"""Chat templates: Jinja programs that come with a model and turn messages into its prompt.

A template is code from whoever made the model file, so it runs in a sandbox (`punchcard.formats.sandbox`).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2

from punchcard.errors import ModelError
from punchcard.formats.sandbox import Environment, render

# Characters of the form of a date.
_LONGEST_DATE = 200

# For a model without a template: the most common layout.
_CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def render_template(
    template: str | None,
    messages: Sequence[dict[str, Any]],
    tools: Sequence[dict[str, Any]] | None,
    *,
    add_generation_prompt: bool = True,
    **variables: Any,
) -> str:
    """The prompt that a chat template makes of messages and OpenAI-style tool definitions, up to where the answer
    begins. Without a template, ChatML. ``variables``: what else it may ask for, such as ``enable_thinking``.

    Raises `ModelError` if it cannot be rendered.
    """
    # What begins a text is added by whoever makes tokens of it. Some templates ask for the tools by another name.
    defaults = {"bos_token": "", "eos_token": "", "functions": json.dumps(tools), "datetime": _now("%Y-%m-%d")}
    given = {"messages": messages, "tools": tools, "add_generation_prompt": add_generation_prompt}
    try:
        return render(_compile(template or _CHATML), {**given, **defaults, **variables})
    except Exception as error:  # a template is a program, which may raise anything
        said = str(error) or type(error).__name__
        raise ModelError(f"The model's chat template cannot be rendered: {said}") from error


@functools.lru_cache(maxsize=32)
def _compile(template: str) -> jinja2.Template:
    environment = Environment()
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = _now
    # Where the answers are that a model is trained on is nothing to a prompt.
    template = re.sub(r"(\{%[-+]?\s*)generation(\s*[-+]?%\})", r"\1if true\2", template)
    template = re.sub(r"(\{%[-+]?\s*)endgeneration(\s*[-+]?%\})", r"\1endif\2", template)
    return environment.from_string(template)


def _now(form: str) -> str:
    if re.search(r"%[-_0^#]*[0-9]", form) or len(form) > _LONGEST_DATE:
        raise jinja2.TemplateError(f"{form[:_LONGEST_DATE]!r} is no form of a date")
    return datetime.now().strftime(form)


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
