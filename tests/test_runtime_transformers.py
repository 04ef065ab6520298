"""transformers: the processor in all modes of `generate`, and the model under Agent and extract.

The real model is SmolLM2, whose GGUF file transformers can read; its weights are those of the embedded runtime.
"""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from fake_model import END  # noqa: E402
from runtime_data import WEATHER, chat, gguf, is_weather, regex, snippet  # noqa: E402

import punchcard  # noqa: E402
from punchcard.errors import ContextLengthError, MatcherError, ModelError  # noqa: E402
from punchcard.models import LocalModel, TransformersModel  # noqa: E402
from punchcard.models.transformers import GrammarLogitsProcessor  # noqa: E402

Loaded = tuple[Any, Any, punchcard.GrammarCompiler]


@pytest.fixture(scope="module")
def smollm() -> Loaded:
    """The model, its tokenizer, and a compiler for both."""
    pytest.importorskip("gguf", reason="gguf is not installed")
    path = Path(gguf("smollm2-135m"))
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, padding_side="left")
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    model.generation_config.pad_token_id = tokenizer.pad_token_id = 0
    ends = model.generation_config.eos_token_id
    info = punchcard.TokenizerInfo.from_huggingface(tokenizer, eos_token_ids=ends, vocab_size=model.config.vocab_size)
    return model, tokenizer, punchcard.GrammarCompiler(info)


def answers(loaded: Loaded, prompts: list[str], processor: GrammarLogitsProcessor, **options: Any) -> list[str]:
    """What `generate` writes behind each prompt, special tokens left out."""
    model, tokenizer, _ = loaded
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
    options = {"max_new_tokens": 48, "do_sample": False, **options}
    rows = model.generate(**inputs, logits_processor=[processor], **options)
    return list(tokenizer.batch_decode(rows[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True))


# Rows of tokens, without a model


def masked(processor: GrammarLogitsProcessor, rows: list[list[int]], width: int = 260, **kind: Any) -> list[set[int]]:
    """What the processor allows behind each row."""
    scores = torch.zeros(len(rows), width, **kind)
    result = processor(torch.tensor(rows), scores)
    assert result.dtype == scores.dtype and bool((scores == 0).all())
    return [set(torch.isfinite(row).nonzero().flatten().tolist()) for row in result]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_logits_may_be_wider_than_the_vocabulary(dtype: str) -> None:
    processor = GrammarLogitsProcessor(regex("[ab]c?"))
    assert masked(processor, [[7, 7]], width=300, dtype=getattr(torch, dtype)) == [{97, 98}]
    assert masked(processor, [[7, 7, 97]], width=300, dtype=getattr(torch, dtype)) == [{99, END}]


def test_rows_may_be_reordered_and_taken_back() -> None:
    processor = GrammarLogitsProcessor(regex("ax|by"), drafts=True)
    assert masked(processor, [[0], [0]]) == [{97, 98}, {97, 98}]
    assert masked(processor, [[0, 97], [0, 98]]) == [{120}, {121}]
    assert masked(processor, [[0, 98], [0, 97]]) == [{121}, {120}]
    assert masked(processor, [[0, 98, 121], [0, 98, 121]]) == [{END}, {END}]
    assert masked(processor, [[0], [0]]) == [{97, 98}, {97, 98}]


def test_what_comes_after_the_end_is_padding() -> None:
    processor = GrammarLogitsProcessor(regex("a|bc"))
    assert masked(processor, [[0], [1]]) == [{97, 98}] * 2
    masked(processor, [[0, 97], [1, 98]])
    assert masked(processor, [[0, 97, END], [1, 98, 99]]) == [{END}, {END}]
    assert masked(processor, [[0, 97, END, 0], [1, 98, 99, END]]) == [{END}, {END}]


def test_each_prompt_may_have_its_own_grammar() -> None:
    processor = GrammarLogitsProcessor([regex("a"), regex("b")])
    assert masked(processor, [[0], [1]]) == [{97}, {98}]
    assert masked(processor, [[0], [0], [1], [1]]) == [{97}, {97}, {98}, {98}]
    with pytest.raises(MatcherError, match="3 rows cannot be shared out among 2 grammars"):
        masked(processor, [[0], [1], [2]])


@pytest.mark.parametrize(
    "rows",
    [
        [[5, 6]],  # another prompt of the same length
        [[0]],  # a shorter one
        [[0, 97, END, 7, 8]],  # the next turn of the conversation
        [[0, 1], [0, 2]],  # another batch
    ],
)
def test_another_prompt_begins_anew(rows: list[list[int]]) -> None:
    processor = GrammarLogitsProcessor(regex("ab"))
    masked(processor, [[0, 1]])
    assert masked(processor, [[0, 1, 97]]) == [{98}]
    assert masked(processor, rows) == [{97}] * len(rows)


def test_a_prompt_that_begins_with_the_last_one_needs_a_reset() -> None:
    processor = GrammarLogitsProcessor(regex("ab+"))
    for text in ([0], [0, 97], [0, 97, 98]):
        masked(processor, [text])
    with pytest.raises(MatcherError, match="cannot be told") as caught:
        masked(processor, [[0, 98]])
    assert "reset()" in str(caught.value) and "drafts=True" in str(caught.value)
    processor.reset()
    assert masked(processor, [[0, 98]]) == [{97}]


def test_reset_begins_anew() -> None:
    processor = GrammarLogitsProcessor(regex("aba"))
    masked(processor, [[0]])
    assert masked(processor, [[0, 97]]) == [{98}]
    processor.reset()
    assert masked(processor, [[0, 97]]) == [{97}]


def test_an_empty_prompt_is_one() -> None:
    processor = GrammarLogitsProcessor(regex("ab"))
    scores = torch.zeros(1, 260)
    assert processor(torch.zeros(1, 0, dtype=torch.int64), scores)[0].isfinite().nonzero().tolist() == [[97]]
    assert masked(processor, [[97]]) == [{98}]


def test_a_refused_token_is_an_error_unless_it_was_drafted() -> None:
    processor = GrammarLogitsProcessor(regex("ab"))
    masked(processor, [[0]])
    with pytest.raises(MatcherError, match="Row 0 has token 99 as token 0 of its answer") as caught:
        masked(processor, [[0, 99]])
    assert "drafts=True" in str(caught.value)
    drafting = GrammarLogitsProcessor(regex("ab"), drafts=True)
    masked(drafting, [[0]])
    assert len(masked(drafting, [[0, 99]])[0]) == 260  # of no account: the token before it goes
    assert masked(drafting, [[0, 97]]) == [{98}]


def test_grammars_of_different_vocabularies_do_not_mix() -> None:
    other = punchcard.TokenizerInfo.from_vocab([b"a", b"</s>"], eos_token_ids=[1])
    with pytest.raises(MatcherError, match="2 and 260 tokens"):
        GrammarLogitsProcessor([regex("a"), punchcard.GrammarCompiler(other).compile_regex("a")])
    with pytest.raises(MatcherError, match="no grammar"):
        GrammarLogitsProcessor([])


# `generate`


def test_greedy_answers_are_those_of_the_embedded_runtime(smollm: Loaded) -> None:
    """Token by token, but for choices that are so near that the rounding of the weights decides them."""
    model, tokenizer, compiler = smollm
    local = LocalModel.load()
    local_compiled = punchcard.GrammarCompiler(local.tokenizer_info).compile_json_schema(WEATHER)
    same = total = 0
    for text in ("What's the weather in Paris?", "How hot is it in Oslo, in fahrenheit?"):
        prompt = tokenizer(chat(text), return_tensors="pt", add_special_tokens=False)
        processor = GrammarLogitsProcessor(compiler.compile_json_schema(WEATHER))
        rows = model.generate(**prompt, logits_processor=[processor], max_new_tokens=48, do_sample=False)
        tokens = rows[0, prompt["input_ids"].shape[1] :].tolist()
        assert is_weather(local.detokenize(tokens))
        matcher = punchcard.GrammarMatcher(local_compiled)
        bitmask = punchcard.allocate_token_bitmask(1, local.vocab_size)
        local.rewind(0)
        logits = local.forward(local.tokenize(chat(text), parse_special=True))
        for token in tokens:
            spread = np.ptp(logits)
            matcher.fill_next_token_bitmask(bitmask)
            punchcard.apply_token_bitmask_inplace(logits, bitmask)
            assert logits.max() - logits[token] < 0.03 * spread
            same, total = same + (token == int(logits.argmax())), total + 1
            assert matcher.accept_token(token)
            logits = local.forward([token])
        assert matcher.is_terminated()
    assert same > 0.9 * total


def test_padding_does_not_enter_the_grammar(smollm: Loaded) -> None:
    grammars = [smollm[2].compile_json_schema(WEATHER), smollm[2].compile_regex("(yes|no), [a-z ]{3,30}\\.")]
    prompts = [chat("What's the weather in Paris? I am there with my family for two weeks."), chat("Is it?")]
    alone = [
        answers(smollm, [prompt], GrammarLogitsProcessor(grammar))[0]
        for prompt, grammar in zip(prompts, grammars, strict=True)
    ]
    assert answers(smollm, prompts, GrammarLogitsProcessor(grammars)) == alone
    assert is_weather(alone[0]) and alone[1].startswith(("yes, ", "no, ")) and alone[1].endswith(".")


def test_samples_are_valid_and_differ(smollm: Loaded) -> None:
    processor = GrammarLogitsProcessor(smollm[2].compile_json_schema(WEATHER, whitespace="none"))
    torch.manual_seed(7)
    options = {"do_sample": True, "temperature": 1.5, "top_k": 50, "num_return_sequences": 6}
    written = answers(smollm, [chat("What's the weather?")], processor, **options)
    assert all(map(is_weather, written)) and len(set(written)) > 1


@pytest.mark.parametrize("beams", [2, 5])
def test_beam_search_finds_the_likeliest_text(smollm: Loaded, beams: int) -> None:
    """Among six words, of which the likeliest is found by trying them all. Five beams are more than there are
    continuations at first."""
    model, tokenizer, compiler = smollm
    words = ["red", "green", "blue", "yellow", "a red one", "a green one"]
    prompt = tokenizer(chat("What colour is the sky?"), return_tensors="pt", add_special_tokens=False)["input_ids"]

    def log_probability(word: str) -> float:
        """Of the likeliest spelling, and of the end after it."""
        best = -math.inf
        for cuts in itertools.product([False, True], repeat=len(word) - 1):
            pieces, begin = [], 0
            for at, cut in enumerate([*cuts, True], start=1):
                if cut:
                    pieces.append(word[begin:at])
                    begin = at
            if len(pieces) > 3:
                continue  # the likeliest are the shortest
            ids = [tokenizer.encode(piece, add_special_tokens=False) for piece in pieces]
            if any(len(piece) > 1 for piece in ids):
                continue
            tokens = torch.tensor([[piece[0] for piece in ids] + [tokenizer.eos_token_id]])
            with torch.inference_mode():
                logits = model(torch.cat([prompt, tokens], dim=1)).logits[0, prompt.shape[1] - 1 : -1]
            best = max(best, float(logits.log_softmax(-1).gather(1, tokens.T).sum()))
        return best

    expected = max(words, key=log_probability)
    processor = GrammarLogitsProcessor(compiler.compile_regex("|".join(words)))
    options = {"num_beams": beams, "num_return_sequences": beams, "length_penalty": 0.0}
    written = answers(smollm, [chat("What colour is the sky?")], processor, **options)
    assert set(written) <= set(words)
    assert written[0] == expected


def test_more_beams_than_texts(smollm: Loaded) -> None:
    processor = GrammarLogitsProcessor(smollm[2].compile_regex("a|b"))
    assert set(answers(smollm, [chat("?"), chat("Well?")], processor, num_beams=6)) <= {"a", "b"}


def test_assisted_decoding_writes_what_greedy_does(smollm: Loaded) -> None:
    compiled = smollm[2].compile_json_schema(WEATHER)
    prompt = [chat('Write {"city": "Paris"} as JSON with units.')]
    greedy = answers(smollm, prompt, GrammarLogitsProcessor(compiled))
    for options in ({"assistant_model": smollm[0]}, {"prompt_lookup_num_tokens": 4}):
        assert answers(smollm, prompt, GrammarLogitsProcessor(compiled, drafts=True), **options) == greedy
    assert is_weather(greedy[0])


def test_one_processor_serves_one_generation_after_the_other(smollm: Loaded) -> None:
    processor = GrammarLogitsProcessor(smollm[2].compile_regex("(yes|no)\\."))
    first = chat("Is the sky blue?")
    said = answers(smollm, [first], processor)[0]
    assert said in ("yes.", "no.")
    assert answers(smollm, [first], processor) == [said]
    again = answers(smollm, [f"{first}{said}<|im_end|>\n{chat('Are you sure?')}"], processor)
    assert again[0] in ("yes.", "no.")


def test_settings_that_leave_no_token_are_an_error(smollm: Loaded) -> None:
    processor = GrammarLogitsProcessor(smollm[2].compile_regex("yes"))
    with pytest.raises(MatcherError, match="No token is left for row 0"):
        answers(smollm, [chat("Well?")], processor, min_new_tokens=20)


# The model


@pytest.fixture(scope="module")
def model(smollm: Loaded) -> TransformersModel:
    return TransformersModel(smollm[0], smollm[1], name="smollm2-135m")


def test_logits_are_those_of_the_embedded_runtime(model: TransformersModel) -> None:
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
    assert model.position == 5
    assert np.abs(model.forward(ids[5:]) - found[-1]).max() < 1e-3


@pytest.mark.parametrize("special", [False, True])
def test_tokens_are_those_of_the_embedded_runtime(model: TransformersModel, special: bool) -> None:
    local = LocalModel.load()
    for text in (chat("naïve — 日本語 😀"), " x", "", "\n\n", '{"a": 1}'):
        assert model.tokenize(text, parse_special=special) == local.tokenize(text, parse_special=special)
    assert model.tokenizer_info.tokens == local.tokenizer_info.tokens
    assert model.chat_template == local.chat_template and model.context_length == local.context_length


def test_misuse_is_a_model_error(model: TransformersModel) -> None:
    model.rewind(0)
    for wrong in ([], [-1], [model.vocab_size]):
        with pytest.raises(ModelError):
            model.forward(wrong)
    with pytest.raises(ModelError, match="Cannot rewind to position 1"):
        model.rewind(1)
    with pytest.raises(ContextLengthError) as caught:
        model.forward([5] * 8193)
    assert (caught.value.tokens, caught.value.context_length, model.position) == (8193, 8192, 0)


def test_agent_and_extract_run_on_it(model: TransformersModel) -> None:
    @punchcard.tool
    def set_lights(room: str, brightness: int = 50) -> None:
        """Set a room's lighting level."""

    result = punchcard.Agent(tools=[set_lights], model=model).run("Dim the kitchen lights to 10%")
    assert result["function_calls"] == [{"name": "set_lights", "arguments": {"room": "kitchen", "brightness": 10}}]
    data = punchcard.extract("What's the weather in Paris, in celsius?", WEATHER, model=model)
    assert is_weather(json.dumps(data))


@pytest.mark.parametrize("kind", ["sliding", "state"])
def test_caches_that_cannot_go_back_are_computed_again(kind: str) -> None:
    """Small models with random weights, one with windows of six tokens, one a state space."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2}
    if kind == "sliding":
        heads = {"intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1}
        config = transformers.MistralConfig(**sizes, **heads, sliding_window=6)
    else:
        config = transformers.MambaConfig(**sizes, state_size=4)
    network = transformers.AutoModelForCausalLM.from_config(config)
    for weights in network.parameters():
        weights.data *= 3  # else all logits are near zero, and right and wrong look alike
    model = TransformersModel(network, _bytes_tokenizer(), context_length=32)
    ids = [int(i) for i in np.random.default_rng(3).integers(0, 64, 20)]
    whole = model.forward(ids, all_positions=True)
    model.rewind(12)
    again = np.concatenate([model.forward(ids[12:15], all_positions=True), model.forward(ids[15:], all_positions=True)])
    assert model.position == 20
    assert np.abs(again - whole[12:]).max() < 1e-3 * np.ptp(whole)


def test_a_tokenizer_that_adds_a_space_is_kept_from_it() -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pieces = {"</s>": 0, "▁": 1, "a": 2, "b": 3, "▁a": 4, "ab": 5, "\n": 6}
    tokenizer = Tokenizer(models.BPE(pieces, [("▁", "a"), ("a", "b")], byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    network = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(vocab_size=7, **sizes))
    model = TransformersModel(network, fast)
    assert fast.encode("ab", add_special_tokens=False) == [4, 3]
    assert model.tokenize("ab") == [5]
    assert model.tokenize(" a") == [4]


def _bytes_tokenizer() -> Any:
    from tokenizers import Tokenizer, models

    vocab = {"</s>": 0, **{chr(64 + i): i for i in range(1, 64)}}
    tokenizer = Tokenizer(models.BPE(vocab, []))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")


def test_the_example_of_the_documents_runs(smollm: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    for loader, loaded in (("AutoModelForCausalLM", smollm[0]), ("AutoTokenizer", smollm[1])):
        monkeypatch.setattr(getattr(transformers, loader), "from_pretrained", lambda name, loaded=loaded: loaded)
    names = snippet("transformers")
    names["Weather"].model_validate_json(names["answer"])
