"""Stop texts, found across the borders of tokens."""

from __future__ import annotations

from collections.abc import Sequence


class StopTexts:
    """Lets a text through up to the first of some stop texts.

    What may be the beginning of one is held back until it is known; nothing else is. ``found`` is the stop text that
    was met, of which nothing is let through.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [text for text in texts if text]
        self._held = ""
        self.found: str | None = None

    def feed(self, text: str) -> str:
        """What can be told, of what was held back and ``text``."""
        if self.found is not None:
            return ""
        whole = self._held + text
        places = [(place + len(stop), place, stop) for stop in self._texts if (place := whole.find(stop)) >= 0]
        if places:
            # The one that is complete first, so that nothing depends on how the text is cut into pieces.
            _, place, self.found = min(places)
            self._held = ""
            return whole[:place]
        told = len(whole) - max((_overlap(whole, stop) for stop in self._texts), default=0)
        self._held = whole[told:]
        return whole[:told]

    def flush(self) -> str:
        """What was held back, where the text is at its end."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of ``text`` that ``stop`` begins with."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
