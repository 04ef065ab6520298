"""llama-cpp-python: completions under a grammar, and the model under Agent and extract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

from fake_model import END  # noqa: E402
from runtime_data import WEATHER, chat, gguf, is_weather, regex, snippet  # noqa: E402

import punchcard  # noqa: E402
from punchcard.errors import ContextLengthError, MatcherError, ModelError  # noqa: E402
from punchcard.models import LlamaCppModel, LocalModel  # noqa: E402
from punchcard.models.llama_cpp import GrammarLogitsProcessor, grammar_options, tokenizer_info  # noqa: E402


@pytest.fixture(scope="module", params=["smollm2-135m", "qwen2.5-coder-1.5b"])
def llama(request: pytest.FixtureRequest) -> Any:
    return llama_cpp.Llama(gguf(request.param), n_ctx=1024, n_batch=64, n_threads=2, verbose=False)


@pytest.fixture(scope="module")
def compiler(llama: Any) -> punchcard.GrammarCompiler:
    return punchcard.GrammarCompiler(tokenizer_info(llama))


def completion(llama: Any, text: str, options: dict[str, Any], **more: Any) -> dict[str, Any]:
    options = {"max_tokens": 60, "temperature": 0, **options, **more}
    return llama.create_completion(chat(text), **options)["choices"][0]


# Completions


def test_answers_are_valid_and_stop(llama: Any, compiler: punchcard.GrammarCompiler) -> None:
    options = grammar_options(llama, compiler.compile_json_schema(WEATHER, whitespace="none"))
    greedy = completion(llama, "What's the weather in Paris?", options)
    assert is_weather(greedy["text"]) and greedy["finish_reason"] == "stop"
    assert "Paris" in greedy["text"]
    assert completion(llama, "What's the weather in Paris?", options) == greedy
    samples = [completion(llama, "And in Rome?", options, temperature=1.5, seed=seed)["text"] for seed in range(4)]
    assert all(map(is_weather, samples))


def test_chat_completions_are_valid(llama: Any, compiler: punchcard.GrammarCompiler) -> None:
    processors = grammar_options(llama, compiler.compile_regex("(yes|no)\\."))["logits_processor"]
    messages = [{"role": "user", "content": "Is Paris in France?"}]
    answer = llama.create_chat_completion(messages, logits_processor=processors, temperature=0, max_tokens=9)
    assert answer["choices"][0]["message"]["content"] in ("yes.", "no.")


def test_streams_are_valid(llama: Any, compiler: punchcard.GrammarCompiler) -> None:
    options = grammar_options(llama, compiler.compile_regex("[a-z]{4}-[0-9]{3}"))
    parts = llama.create_completion("The code is ", max_tokens=30, temperature=0.9, seed=5, stream=True, **options)
    text = "".join(part["choices"][0]["text"] for part in parts)
    assert text[:4].isalpha() and text[4] == "-" and text[5:].isdigit() and len(text) == 8


def test_what_drops_the_grammar_is_an_error(llama: Any, compiler: punchcard.GrammarCompiler) -> None:
    options = grammar_options(llama, compiler.compile_regex("(yes|no)"))
    with pytest.raises(MatcherError, match="sampled without the grammar") as caught:
        completion(llama, "Well?", options, logit_bias={5: 1.0})
    assert "logit_bias" in str(caught.value)


def test_failures_of_a_callback_are_raised(llama: Any, compiler: punchcard.GrammarCompiler) -> None:
    options = grammar_options(llama, compiler.compile_regex("yes"))

    def forbid_all(ids: Any, scores: Any) -> Any:
        scores[:] = -np.inf
        return scores

    options["logits_processor"].insert(0, forbid_all)
    with pytest.raises(MatcherError, match="No token is left"):
        completion(llama, "Well?", options)
    del options["logits_processor"][0]
    assert completion(llama, "Well?", options)["text"] == "yes"


def test_wrong_vocabularies_and_drafts_are_refused(llama: Any) -> None:
    with pytest.raises(MatcherError, match="The grammar is for 260 tokens"):
        grammar_options(llama, regex("a"))

    class Drafting:
        draft_model = object()

        def n_vocab(self) -> int:
            return 260

    with pytest.raises(MatcherError, match="drafts"):
        grammar_options(Drafting(), regex("a"))


def test_a_refused_token_ends_the_answer() -> None:
    processor = GrammarLogitsProcessor(regex("ab"))

    def allowed(*tokens: int) -> set[int]:
        return set(np.flatnonzero(processor(np.array(tokens, np.intc), np.zeros(260, np.single)) == 0).tolist())

    assert allowed(0) == {97} and not processor.check(np.zeros(1, np.intc), np.zeros(1, np.single))
    assert allowed(0, 97) == {98}
    assert allowed(0, 97, 98) == {END}
    assert allowed(0, 97, 98, END, 7, 7) == {97}  # another prompt
    allowed(0)
    allowed(0, 99)
    with pytest.raises(MatcherError, match="token 99"):
        processor.check(np.zeros(2, np.intc), np.zeros(1, np.single))
    assert allowed(0, 97) == {97}  # begins anew


# The model


@pytest.fixture(scope="module")
def model(llama: Any) -> LlamaCppModel:
    return LlamaCppModel(llama)


@pytest.fixture(scope="module")
def local(llama: Any) -> LocalModel:
    return LocalModel.load(llama.model_path)


def test_logits_are_those_of_the_embedded_runtime(model: LlamaCppModel, local: LocalModel) -> None:
    ids = local.tokenize(chat("What is the capital of France? " * 15), parse_special=True)
    assert len(ids) > 64  # more than a batch
    local.rewind(0)
    model.rewind(0)
    expected, found = local.forward(ids, all_positions=True), model.forward(ids, all_positions=True)
    assert found.shape == (len(ids), local.vocab_size) and found.dtype == np.float32
    # llama.cpp rounds the activations to eight bits.
    assert np.abs(found - expected).max() < 0.1 * np.ptp(expected)
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.85
    model.rewind(5)
    assert np.abs(model.forward(ids[5:]) - found[-1]).max() < 0.02 * np.ptp(expected)
    assert (model.position, model.context_length) == (len(ids), 1024)


def test_tokens_are_those_of_the_embedded_runtime(model: LlamaCppModel, local: LocalModel) -> None:
    for text in (chat("naïve — 日本語 😀"), " x", "", "\n\n", '{"a": 1}'):
        for special in (False, True):
            assert model.tokenize(text, parse_special=special) == local.tokenize(text, parse_special=special)
    assert model.tokenizer_info.tokens == local.tokenizer_info.tokens
    assert set(local.eos_token_ids) <= set(model.eos_token_ids)
    assert model.chat_template == local.chat_template


def test_completions_in_between_do_no_harm(llama: Any, model: LlamaCppModel) -> None:
    ids = model.tokenize("One, two, three, four, five")
    model.rewind(0)
    expected = model.forward(ids)
    model.rewind(len(ids) - 1)
    llama.create_completion("Something else", max_tokens=3)
    assert np.abs(model.forward(ids[-1:]) - expected).max() < 1e-2 * np.ptp(expected)
    llama.create_completion("Something else", max_tokens=3)
    model.rewind(2)
    assert np.abs(model.forward(ids[2:]) - expected).max() < 1e-2 * np.ptp(expected)


def test_misuse_is_a_model_error(model: LlamaCppModel) -> None:
    model.rewind(0)
    for wrong in ([], [-1], [model.vocab_size]):
        with pytest.raises(ModelError):
            model.forward(wrong)
    with pytest.raises(ModelError, match="Cannot rewind"):
        model.rewind(1)
    with pytest.raises(ContextLengthError):
        model.forward([5] * 1025)
    assert model.position == 0


def test_agent_and_extract_run_on_it(model: LlamaCppModel) -> None:
    @punchcard.tool
    def set_lights(room: str, brightness: int = 50) -> None:
        """Set a room's lighting level."""

    result = punchcard.Agent(tools=[set_lights], model=model).run("Dim the kitchen lights to 10%", max_steps=1)
    assert [call["name"] for call in result["function_calls"]] == ["set_lights"]
    assert result["function_calls"][0]["arguments"]["room"] == "kitchen"
    data = punchcard.extract("What's the weather in Paris, in celsius?", WEATHER, model=model)
    assert is_weather(json.dumps(data))


def test_the_example_of_the_documents_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.gguf").symlink_to(gguf("smollm2-135m"))
    monkeypatch.chdir(tmp_path)
    names = snippet("llama-cpp-python")
    names["Weather"].model_validate_json(names["answer"])
