"""What became of each keyword of a schema."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class KeywordReport:
    """One keyword at one place."""

    #: JSON pointer (RFC 6901) to the keyword.
    pointer: str
    keyword: str
    #: ``"enforced"``: holds of every text that is admitted. ``"annotation"``: says nothing about validity.
    #: ``"not enforced"``: says something that is left out, which happens only with ``on_unsupported="report"``.
    status: Literal["enforced", "annotation", "not enforced"]
    #: What it became, in words; why, if it is not enforced.
    became: str


@dataclass(frozen=True)
class Report:
    """A schema as it is understood. ``str(report)`` is a table for people."""

    #: The dialect: ``"4"``, ``"6"``, ``"7"``, ``"2019-09"`` or ``"2020-12"``.
    draft: str
    #: All keywords of all schemas that can be reached, in the order of the document.
    keywords: tuple[KeywordReport, ...]
    #: JSON text of a document that is admitted.
    example: str | None
    #: Formulas that the schema and the questions about it have become.
    formulas: int
    #: States of regular languages that were built; others follow when a text reaches them.
    language_states: int
    #: Questions of satisfiability that were answered: what a compilation costs.
    steps: int
    #: The most ways in which a value can begin; masks cost in proportion to how many of them a text leaves open.
    alternatives: int

    @property
    def not_enforced(self) -> tuple[KeywordReport, ...]:
        """Keywords that are left out; empty unless the caller allowed it."""
        return tuple(entry for entry in self.keywords if entry.status == "not enforced")

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return {**asdict(self), "not_enforced": [entry.pointer for entry in self.not_enforced]}

    def __str__(self) -> str:
        width = max((len(entry.pointer) for entry in self.keywords), default=0)
        lines = [f"{entry.pointer:<{width}}  {entry.status:<12}  {entry.became}" for entry in self.keywords]
        missing = len(self.not_enforced)
        lines += [
            "",
            f"dialect      {self.draft}",
            f"enforced     {'everything' if not missing else f'all but {missing}'}",
            f"size         {self.formulas} formulas, {self.language_states} states of regular languages",
            f"cost         {self.steps} steps to compile, at most {self.alternatives} ways to begin a value",
            f"example      {self.example if self.example is not None else 'none was found'}",
        ]
        return "\n".join(lines)


def report_from_core(fields: dict[str, Any]) -> Report:
    """The report that the engine hands over."""
    keywords = tuple(KeywordReport(*entry) for entry in fields.pop("entries"))
    return Report(keywords=keywords, **fields)
