"""Which tool does a request ask for? A choice by comparison.

Asked to name a tool, a small model has favourites: short names, frequent words, whatever its prompt showed last. So a
tool is not chosen by how likely its call is after the request, but by how much likelier than after other requests:

    score(tool) = log p(call of tool | request) - mean over other requests of log p(call of tool | other request)

which is the pointwise mutual information of request and tool, up to the other requests standing in for all requests.
They are the examples that the prompt shows, one for each tool, so no tool is favoured among them. Where no tool has a
score above 0, the request makes each of them less likely than the average request does, and none is called.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from punchcard.formats import Message, ToolFormat
from punchcard.formats.examples import example_requests
from punchcard.generation import Decoder, Model, Statistics
from punchcard.prompts import encode_prompt
from punchcard.tools import Tool

# More other requests than this cost time and tell nothing new.
_MAX_OTHERS = 8


class Calibration:
    """The baseline of a set of tools, kept for as long as the conversation before the request is the same."""

    def __init__(self, model: Model, tool_format: ToolFormat, tools: Sequence[Tool]) -> None:
        self._model = model
        self._format = tool_format
        self._tools = list(tools)
        self._options = [tool_format.call_head(tool) for tool in tools]
        self._baselines: dict[tuple[int, ...], NDArray[np.float64]] = {}

    def prepare(self, messages: Sequence[Message]) -> Statistics:
        """Scores other requests in place of the last message. To be called before that one is answered, since it moves
        the model's cache. Returns what it took."""
        statistics = Statistics()
        before = tuple(self._encoded(messages, ""))
        if before not in self._baselines:
            examples = example_requests(self._tools)
            rows = []
            for words in examples[:: math.ceil(len(examples) / _MAX_OTHERS)]:
                decoder = Decoder(self._model, self._encoded(messages, words))
                rows.append(self._scores(decoder))
                statistics += decoder.statistics
            self._baselines = {before: np.mean(rows, axis=0)}
        self._baseline = self._baselines[before]
        return statistics

    def choose(self, decoder: Decoder) -> Tool | None:
        """The tool that the request asks for, if any. ``decoder`` stands after the request; it writes nothing."""
        scores = self._scores(decoder) - self._baseline
        best = int(np.argmax(scores))
        return self._tools[best] if scores[best] > 0 else None

    def _scores(self, decoder: Decoder) -> NDArray[np.float64]:
        return np.array(decoder.score(self._options))

    def _encoded(self, messages: Sequence[Message], words: str) -> list[int]:
        instead: Message = {"role": "user", "content": words}
        return encode_prompt(self._model, self._format, [*messages[:-1], instead], self._tools)
