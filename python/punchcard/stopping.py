"""Texts that end an answer, found wherever the pieces of it are cut."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from punchcard.chat import Delta, Reply


class StopTexts:
    """Passes on the deltas of an answer up to the first of ``stop`` in its text, which is left out.

    Text is held back only as far as it may be the beginning of one of them.
    """

    def __init__(self, stop: Sequence[str]) -> None:
        texts = [text for text in stop if text]
        self._pattern = regex.compile("|".join(map(regex.escape, texts))) if texts else None
        self._held = ""
        self._said = 0
        self.found = False

    def pass_on(self, deltas: list[Delta]) -> list[Delta]:
        """What may be told of ``deltas`` and of what was held back."""
        if self._pattern is None:
            return deltas
        passed: list[Delta] = []
        for delta in deltas:
            if self.found:
                break
            if delta.kind != "text":
                passed += self._released(len(self._held))
                passed.append(delta)
                continue
            self._held += delta.text
            match = self._pattern.search(self._held, partial=True)
            self.found = match is not None and not match.partial
            passed += self._released(len(self._held) if match is None else match.start())
        return passed

    def finish(self, deltas: list[Delta]) -> list[Delta]:
        """The last deltas, with what was held back."""
        passed = self.pass_on(deltas)
        if self.found or self._pattern is None:
            return passed
        # What may have been the beginning of a long one may hold a shorter one.
        match = self._pattern.search(self._held)
        self.found = match is not None
        return passed + self._released(len(self._held) if match is None else match.start())

    def cut(self, reply: Reply) -> None:
        """Takes the stop text, and what came after it, off a reply."""
        if self.found:
            reply.text = reply.text[: self._said]
            reply.finish = "stop"

    def _released(self, count: int) -> list[Delta]:
        text, self._held = self._held[:count], self._held[count:]
        self._said += len(text)
        return [Delta("text", text)] if text else []
