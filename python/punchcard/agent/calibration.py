"""Which tool does a request ask for? A choice by comparison.

Asked to name a tool, a small model has favourites: short names, frequent words, whatever its prompt showed last. So a
tool is not chosen by how likely its call is after the request, but by how much likelier than after other requests:

    score(tool) = log p(call of tool | request) - mean over other requests of log p(call of tool | other request)

which is the pointwise mutual information of request and tool, up to the other requests standing in for all requests.
They are the examples that the prompt shows, one for each tool, so no tool is favoured among them; and, where tools are
few, small talk, which asks for none. Where no tool has a score above 0, the request makes each of them less likely than
the average request does, and none is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from punchcard.chat import Message
from punchcard.formats import ToolFormat
from punchcard.formats.examples import survey
from punchcard.generation import Decoder, Model, Statistics
from punchcard.prompts import encode_prompt
from punchcard.tools import Tool

# Other requests, all in all, if there are not more tools.
_FEWEST = 8
_SMALL_TALK = (
    "Hello",
    "What is the capital of France?",
    "Thank you very much.",
    "Tell me a story.",
    "How are you?",
    "Why is the sky blue?",
    "What can you do?",
)


class Calibration:
    """The baseline of a set of tools, kept for as long as the conversation before the request is the same."""

    def __init__(self, model: Model, tool_format: ToolFormat, tools: Sequence[Tool]) -> None:
        self._model = model
        self._format = tool_format
        self._tools = list(tools)
        self._head = tool_format.section_begin + tool_format.begin
        # With what ends a name: one may be the beginning of another.
        self._names = [tool.name + '",' for tool in tools]
        self._key: list[int] = []
        self._baseline: NDArray[np.float64] | None = None

    def choose(
        self, messages: Sequence[Message], *, check: Callable[[], None] = lambda: None
    ) -> tuple[Tool | None, Statistics]:
        """The tool that the last of ``messages`` asks for, if any, and what it took to choose it.

        ``check`` is called before each of the prompts that are computed; what it raises ends the choice.

        Raises `ContextLengthError` if the messages are too long for the model.
        """
        statistics = Statistics()
        key = self._encoded(messages, "")
        if self._baseline is None or self._key != key:
            requests = [request for request, _, _ in survey(self._tools)]
            requests += _SMALL_TALK[: max(_FEWEST - len(requests), 0)]
            scored = []
            for words in requests:
                check()
                scored.append(self._scores(messages, words, statistics))
            self._baseline = np.mean(scored, axis=0)
            self._key = key
        check()
        words = str(messages[-1]["content"])
        scores = self._scores(messages, words, statistics, self._baseline) - self._baseline
        best = int(np.argmax(scores))
        return (self._tools[best] if scores[best] > 0 else None), statistics

    def _scores(
        self,
        messages: Sequence[Message],
        words: str,
        statistics: Statistics,
        offsets: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """How likely each tool's call is after ``words`` in place of the last message; see `Decoder.score`."""
        # What all calls begin with goes along with the prompt, in one pass.
        prompt = [*self._encoded(messages, words), *self._model.tokenize(self._head, parse_special=True)]
        decoder = Decoder(self._model, prompt)
        scores = decoder.score(self._names, None if offsets is None else offsets.tolist())
        statistics.add(decoder.statistics)
        return np.array(scores)

    def _encoded(self, messages: Sequence[Message], words: str) -> list[int]:
        instead: Message = {"role": "user", "content": words}
        return encode_prompt(self._model, self._format, [*messages[:-1], instead], self._tools)
