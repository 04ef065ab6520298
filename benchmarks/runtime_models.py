"""The runtimes that `tool_calls.py` compares: the same weights in each, and how fast each writes by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from punchcard.generation import Decoder, Model
from punchcard.models import LocalModel, resolve

_CONTEXT = 4096
_TOKENS = 64


def embedded(name: str) -> tuple[Model, Callable[[list[int]], float]]:
    model = LocalModel.load(name)

    def speed(prompt: list[int]) -> float:
        decoder = Decoder(model, prompt, max_new_tokens=_TOKENS, stop_token_ids=())
        decoder.free()
        return decoder.statistics.tokens_per_second

    return model, speed


def transformers(name: str) -> tuple[Model, Callable[[list[int]], float]]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from punchcard.models.transformers import TransformersModel

    path = resolve(name)
    loaded: Any = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = _named(TransformersModel(loaded, tokenizer), name, path)

    def speed(prompt: list[int]) -> float:
        ids = torch.tensor([prompt])
        options = {"attention_mask": torch.ones_like(ids), "do_sample": False, "pad_token_id": 0}
        # What reading the prompt takes is taken off.
        first = _timed(lambda: loaded.generate(ids, max_new_tokens=1, min_new_tokens=1, **options))
        all_of_it = _timed(lambda: loaded.generate(ids, max_new_tokens=_TOKENS, min_new_tokens=_TOKENS, **options))
        return (_TOKENS - 1) / (all_of_it - first)

    return model, speed


def llama_cpp_python(name: str) -> tuple[Model, Callable[[list[int]], float]]:
    from llama_cpp import Llama

    from punchcard.models.llama_cpp import LlamaCppModel

    path = resolve(name)
    llama = Llama(str(path), n_ctx=_CONTEXT, verbose=False, logits_all=False)
    model = _named(LlamaCppModel(llama), name, path)

    def speed(prompt: list[int]) -> float:
        tokens = iter(llama.generate(prompt, temp=0.0))
        next(tokens)
        return (_TOKENS - 1) / _timed(lambda: [next(tokens) for _ in range(_TOKENS - 1)])

    return model, speed


#: By the names that the command line takes.
RUNTIMES: dict[str, Callable[[str], tuple[Model, Callable[[list[int]], float]]]] = {
    "embedded": embedded,
    "transformers": transformers,
    "llama-cpp-python": llama_cpp_python,
}


def _named(model: Any, name: str, path: Path) -> Any:
    """The model under the name that it has in the catalogue, by which its family is told where templates are alike."""
    model.name = name if name.islower() else path.stem
    return model


def _timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
