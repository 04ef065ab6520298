"""MLX, on whatever device it finds: generation under a grammar, and the model under Agent and extract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

mlx = pytest.importorskip("mlx.core", reason="mlx is not installed")
mlx_lm = pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")

from fake_model import END  # noqa: E402
from runtime_data import WEATHER, chat, gguf, is_weather, regex, snippet  # noqa: E402

import punchcard  # noqa: E402
from punchcard.errors import ContextLengthError, MatcherError, ModelError  # noqa: E402
from punchcard.models import LocalModel, MlxModel  # noqa: E402
from punchcard.models.mlx import GrammarLogitsProcessor  # noqa: E402

Loaded = tuple[Any, Any]


@pytest.fixture(scope="module")
def smollm(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """SmolLM2 with the weights of its GGUF file, which transformers reads and writes as mlx-lm wants them."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("gguf", reason="gguf is not installed")
    from safetensors.torch import save_file

    path, folder = Path(gguf("smollm2-135m")), tmp_path_factory.mktemp("smollm")
    transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    weights = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    config.pop("quantization_config")
    config["rope_theta"] = config["rope_parameters"]["rope_theta"]
    (folder / "config.json").write_text(json.dumps(config, default=str))
    loaded = mlx_lm.load(str(folder))
    return loaded[0], loaded[1]


@pytest.fixture(scope="module")
def compiler(smollm: Loaded) -> punchcard.GrammarCompiler:
    info = punchcard.TokenizerInfo.from_huggingface(smollm[1], eos_token_ids=smollm[1].eos_token_ids)
    return punchcard.GrammarCompiler(info)


# Rows of tokens, without a model


def allowed(processor: GrammarLogitsProcessor, tokens: list[int], width: int = 260) -> set[int]:
    logits = processor(mlx.array(tokens), mlx.zeros((1, width), dtype=mlx.bfloat16))
    assert logits.dtype == mlx.bfloat16 and logits.shape == (1, width)
    return set(np.flatnonzero(np.isfinite(np.array(logits.astype(mlx.float32))[0])).tolist())


@pytest.mark.parametrize("width", [260, 300])
def test_only_what_the_grammar_admits_is_left(width: int) -> None:
    processor = GrammarLogitsProcessor(regex("[ab]c?"))
    assert allowed(processor, [7, 7], width) == {97, 98}
    assert allowed(processor, [7, 7, 97], width) == {99, END}
    assert allowed(processor, [7, 7, 97, END], width) == {END}
    assert allowed(processor, [7, 7, 97, END, 7, 7], width) == {97, 98}  # the next prompt
    with pytest.raises(MatcherError, match="token 99"):
        allowed(processor, [7, 7, 97, END, 7, 7, 99], width)
    processor.reset()
    assert allowed(processor, [99], width) == {97, 98}


def test_texts_that_go_back_are_drafts() -> None:
    processor = GrammarLogitsProcessor(regex("ab+|c"))
    for text in ([7], [7, 97], [7, 97, 98]):
        allowed(processor, text)
    with pytest.raises(MatcherError, match="cannot be told"):
        allowed(processor, [7, 99])
    drafting = GrammarLogitsProcessor(regex("ab+|c"), drafts=True)
    for text in ([7], [7, 97], [7, 97, 98]):
        allowed(drafting, text)
    assert allowed(drafting, [7, 99]) == {END}


def test_texts_in_turn_want_a_processor_each() -> None:
    processor = GrammarLogitsProcessor(regex("ab"))
    assert allowed(processor, [7, 7]) == allowed(processor, [8]) == {97}
    with pytest.raises(MatcherError, match="written in turn with one processor"):
        allowed(processor, [7, 7, 97])


# Generation


def test_answers_are_valid(smollm: Loaded, compiler: punchcard.GrammarCompiler) -> None:
    processor = GrammarLogitsProcessor(compiler.compile_json_schema(WEATHER, whitespace="none"))
    prompt = chat("What's the weather in Paris?")
    options = {"logits_processors": [processor], "max_tokens": 40}
    greedy = mlx_lm.generate(*smollm, prompt=prompt, **options)
    assert is_weather(greedy) and "Paris" in greedy
    assert mlx_lm.generate(*smollm, prompt=prompt, **options) == greedy
    mlx.random.seed(3)
    sampler = mlx_lm.sample_utils.make_sampler(temp=1.5)
    samples = [mlx_lm.generate(*smollm, prompt=prompt, sampler=sampler, **options) for _ in range(4)]
    assert all(map(is_weather, samples)) and len(set(samples)) > 1


def test_drafts_are_followed(smollm: Loaded, compiler: punchcard.GrammarCompiler) -> None:
    compiled = compiler.compile_json_schema(WEATHER, whitespace="none")
    options = {"prompt": chat("What's the weather in Paris?"), "max_tokens": 40}
    drafting = {"draft_model": smollm[0], "num_draft_tokens": 3}
    alone = mlx_lm.generate(*smollm, **options, logits_processors=[GrammarLogitsProcessor(compiled)])
    processor = GrammarLogitsProcessor(compiled, drafts=True)
    assert mlx_lm.generate(*smollm, **options, **drafting, logits_processors=[processor]) == alone
    with pytest.raises(MatcherError, match="cannot be told") as caught:
        mlx_lm.generate(*smollm, **options, **drafting, logits_processors=[GrammarLogitsProcessor(compiled)])
    assert "drafts=True" in str(caught.value)


def test_each_prompt_of_a_batch_has_its_own(smollm: Loaded, compiler: punchcard.GrammarCompiler) -> None:
    grammars = [compiler.compile_json_schema(WEATHER, whitespace="none"), compiler.compile_regex("(yes|no)\\.")]
    prompts = [smollm[1].encode(chat(text)) for text in ("What's the weather in Paris?", "Is it?")]
    from mlx_lm.generate import BatchGenerator

    batch = BatchGenerator(smollm[0], stop_tokens=[[t] for t in smollm[1].eos_token_ids])
    processors = [[GrammarLogitsProcessor(grammar)] for grammar in grammars]
    rows = batch.insert(prompts, [40, 40], logits_processors=processors)
    texts: dict[int, list[int]] = {row: [] for row in rows}
    while responses := batch.next_generated():
        for response in responses:
            if response.finish_reason != "stop":
                texts[response.uid].append(response.token)
    first, second = (smollm[1].decode(texts[row]) for row in rows)
    assert is_weather(first) and second in ("yes.", "no.")
    with pytest.raises(MatcherError, match="written in turn with one processor"):
        mlx_lm.batch_generate(*smollm, prompts=prompts, max_tokens=9, logits_processors=processors[0])


# The model


@pytest.fixture(scope="module")
def model(smollm: Loaded) -> MlxModel:
    return MlxModel(*smollm, name="smollm2-135m")


def test_logits_are_those_of_the_embedded_runtime(model: MlxModel) -> None:
    local = LocalModel.load()
    ids = local.tokenize(chat("What is the capital of France? — naïve"), parse_special=True)
    local.rewind(0)
    model.rewind(0)
    expected, found = local.forward(ids, all_positions=True), model.forward(ids, all_positions=True)
    assert found.shape == (len(ids), local.vocab_size) and found.dtype == np.float32
    # The embedded runtime has weights of eight bits, these are floats.
    assert np.abs(found - expected).max() < 0.03 * np.ptp(expected)
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.9
    model.rewind(5)
    assert np.abs(model.forward(ids[5:]) - found[-1]).max() < 1e-2
    assert (model.position, model.context_length) == (len(ids), 8192)


@pytest.mark.parametrize("special", [False, True])
def test_tokens_are_those_of_the_embedded_runtime(model: MlxModel, special: bool) -> None:
    local = LocalModel.load()
    for text in (chat("naïve — 日本語 😀"), " x", "", "\n\n", '{"a": 1}'):
        assert model.tokenize(text, parse_special=special) == local.tokenize(text, parse_special=special)
    assert model.tokenizer_info.tokens == local.tokenizer_info.tokens
    assert model.chat_template == local.chat_template


def test_misuse_is_a_model_error(model: MlxModel) -> None:
    model.rewind(0)
    for wrong in ([], [-1], [model.vocab_size]):
        with pytest.raises(ModelError):
            model.forward(wrong)
    with pytest.raises(ModelError, match="Cannot rewind"):
        model.rewind(1)
    with pytest.raises(ContextLengthError):
        model.forward([5] * 8193)


def test_agent_and_extract_run_on_it(model: MlxModel) -> None:
    @punchcard.tool
    def set_lights(room: str, brightness: int = 50) -> None:
        """Set a room's lighting level."""

    result = punchcard.Agent(tools=[set_lights], model=model).run("Dim the kitchen lights to 10%")
    assert result["function_calls"] == [{"name": "set_lights", "arguments": {"room": "kitchen", "brightness": 10}}]
    assert is_weather(json.dumps(punchcard.extract("What's the weather in Paris, in celsius?", WEATHER, model=model)))


def test_the_example_of_the_documents_runs(smollm: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlx_lm, "load", lambda name: smollm)
    names = snippet("MLX")
    names["Weather"].model_validate_json(names["answer"])
