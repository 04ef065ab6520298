"""Language models: those that run in this process, and the runtimes of others.

``LocalModel.load()`` gives the default one, fetched on first use; :mod:`.catalogue` lists those that have a name. Each
other runtime has a file of its own, which is loaded, with the library that it needs, when its class is first used; see
``docs/runtimes.md``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .catalogue import CATALOGUE, DEFAULT_MODEL, ModelEntry
from .download import ensure, resolve
from .local import LocalModel, LocalSequence

if TYPE_CHECKING:
    from .llama_cpp import LlamaCppModel as LlamaCppModel
    from .mlx import MlxModel as MlxModel
    from .remote import RemoteModel as RemoteModel
    from .transformers import TransformersModel as TransformersModel

# name -> the module that defines it
_RUNTIMES = {
    "LlamaCppModel": ".llama_cpp",
    "MlxModel": ".mlx",
    "RemoteModel": ".remote",
    "TransformersModel": ".transformers",
}

__all__ = ["CATALOGUE", "DEFAULT_MODEL", "LocalModel", "LocalSequence", "ModelEntry", "ensure", "resolve", *_RUNTIMES]


def __getattr__(name: str) -> Any:
    if name not in _RUNTIMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_RUNTIMES[name], __name__), name)
    globals()[name] = value
    return value
