"""Language models that run in this process.

``LocalModel.load()`` gives the default one, fetched on first use; :mod:`.catalogue` lists those that have a name.
"""

from .catalogue import CATALOGUE, DEFAULT_MODEL, ModelEntry
from .download import ensure, resolve
from .local import LocalModel, LocalSequence

__all__ = ["CATALOGUE", "DEFAULT_MODEL", "LocalModel", "LocalSequence", "ModelEntry", "ensure", "resolve"]
