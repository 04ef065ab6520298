"""The decoding loop, against a model whose every logit is known."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from fake_model import END, MERGED, PIECES, TAG, FakeModel

from punchcard import Grammar, GrammarCompiler, GrammarMatcher
from punchcard.errors import ContextLengthError, PunchcardError
from punchcard.generation import Decoder, Interrupted
from punchcard.sampling import Sampler, log_probability, softmax

SCHEMA = {
    "type": "object",
    "properties": {"name": {"const": "lights"}, "level": {"type": "integer", "minimum": 0, "maximum": 100}},
    "required": ["name", "level"],
    "additionalProperties": False,
}


def matcher(model: FakeModel, schema: Any, **options: Any) -> GrammarMatcher:
    return GrammarMatcher(GrammarCompiler(model.tokenizer_info).compile_json_schema(schema, **options))


def noise(tokens: list[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Different logits after each text, the same after the same."""
    return np.random.default_rng(tokens).normal(size=len(PIECES)).astype(np.float32)


def says(text: str) -> Any:
    """A model that goes on with ``text`` after the one-token prompt, then ends."""
    tokens = [*text.encode(), END]

    def logits(so_far: list[int]) -> Any:
        row = np.zeros(len(PIECES), dtype=np.float32)
        said = so_far[1:]
        if said == tokens[: len(said)] and len(said) < len(tokens):
            row[tokens[len(said)]] = 9
        return row

    return logits


class Recorder(Sampler):
    """Keeps the logits that it is given."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.seen: list[Any] = []

    def sample(self, logits: Any) -> int:
        self.seen.append(logits.copy())
        return super().sample(logits)


def test_the_mask_keeps_the_relative_weights_of_the_allowed_tokens() -> None:
    model = FakeModel(noise)
    recorder = Recorder()
    decoder = Decoder(model, [0], sampler=recorder, max_new_tokens=1)
    decoder.constrained(matcher(model, {"enum": ["a", "b", 1, True]}))
    (masked,) = recorder.seen
    allowed = np.flatnonzero(masked > -np.inf)
    assert sorted(PIECES[id] for id in allowed) == [b'"', b"1", b"t"]
    assert np.array_equal(masked[allowed], noise([0])[allowed])
    before, after = softmax(noise([0])), softmax(masked)
    assert np.allclose(after[allowed], before[allowed] / before[allowed].sum())


def test_the_mask_comes_before_temperature_top_k_and_top_p() -> None:
    # The model's favourites are not allowed: were they counted, top_k or top_p would leave nothing else.
    def logits(tokens: list[int]) -> Any:
        row = np.full(len(PIECES), -5, dtype=np.float32)
        row[[ord("x"), ord("y"), ord("z")]] = [9, 8, 7]
        row[[ord("1"), ord("2")]] = [1, 0]
        return row

    schema = {"enum": [1, 2]}
    for options in ({"top_k": 1}, {"top_p": 0.5}, {"top_k": 2, "top_p": 0.1}):
        model = FakeModel(logits)
        decoder = Decoder(model, [0], sampler=Sampler(1.0, seed=0, **options))
        assert decoder.constrained(matcher(model, schema)).text == "1"
    drawn = []
    for seed in range(400):
        model = FakeModel(logits)
        decoder = Decoder(model, [0], sampler=Sampler(2.0, seed=seed))
        drawn.append(decoder.constrained(matcher(model, schema)).text)
    assert drawn.count("1") + drawn.count("2") == 400
    assert abs(drawn.count("1") / 400 - 1 / (1 + math.exp(-1 / 2))) < 0.08


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_model_thinks_the_text_is_valid(seed: int) -> None:
    model = FakeModel(lambda tokens: noise([seed, *tokens]))
    decoder = Decoder(model, [0], sampler=Sampler(1.5, seed=seed))
    stretch = decoder.constrained(matcher(model, SCHEMA))
    assert stretch.ended == "stop"
    value = json.loads(stretch.text)
    assert value["name"] == "lights" and 0 <= value["level"] <= 100


def test_forced_text_takes_one_forward_pass() -> None:
    model = FakeModel(says('{"name":"lights","level":7}'))
    decoder = Decoder(model, [0])
    stretch = decoder.constrained(matcher(model, SCHEMA, whitespace="none"))
    assert stretch.text == '{"name":"lights","level":7}'
    # The colon is the last token of the forced text, and left to the mask, which allows nothing else.
    forced = '{"name":"lights","level"'
    assert model.forwards[:3] == [1, len(forced), 1]
    assert decoder.statistics.forced_tokens == len(forced) + 1
    assert len(model.forwards) <= 5


def test_what_the_mask_leaves_no_choice_about_needs_no_logits() -> None:
    model = FakeModel(says(""))
    decoder = Decoder(model, [0])
    token = Grammar({"sequence": [{"token": {"names": ["<tool_call>"]}}, {"text": "a"}]})
    grammar = GrammarCompiler(model.tokenizer_info).compile(token)
    stretch = decoder.constrained(GrammarMatcher(grammar))
    assert stretch.tokens == [TAG, ord("a")] and stretch.ended == "stop"
    assert decoder.statistics.forced_tokens == 2 and model.forwards == [1, 1, 1]


def test_a_stretch_ends_where_it_is_told_to() -> None:
    model = FakeModel(says('{"name":"lights","level":7}'))
    stretch = Decoder(model, [0]).constrained(
        matcher(model, SCHEMA, whitespace="none"), until=lambda tokens: ord(",") in tokens
    )
    assert stretch.text.startswith('{"name":"lights",') and stretch.ended == "stop"


def test_the_last_forced_token_is_the_models_to_spell() -> None:
    # After "a" only the quote is forced, but the model prefers the piece that closes both objects with it.
    def logits(tokens: list[int]) -> Any:
        row = np.zeros(len(PIECES), dtype=np.float32)
        row[MERGED] = 9
        return row

    model = FakeModel(logits)
    schema = {"const": {"x": {"y": "a"}}}
    stretch = Decoder(model, [0]).constrained(matcher(model, schema, whitespace="none"))
    assert stretch.text == '{"x":{"y":"a"}}'
    assert stretch.tokens[-1] == ord("}") or stretch.tokens[-1] == MERGED
    optional = {
        "type": "object",
        "properties": {"x": {"type": "object", "properties": {"y": {"const": "a"}, "z": {}}, "required": ["y"]}},
        "required": ["x"],
        "additionalProperties": False,
    }
    stretch = Decoder(model, [0]).constrained(matcher(model, optional, whitespace="none"))
    assert stretch.text == '{"x":{"y":"a"}}' and stretch.tokens[-1] == MERGED


def test_confidence_is_the_geometric_mean_of_the_unmasked_probabilities() -> None:
    model = FakeModel(noise)
    decoder = Decoder(model, [0], sampler=Sampler(1.0, seed=1))
    decoder.constrained(matcher(model, SCHEMA))
    tokens = [0, *decoder.tokens]
    logs = [log_probability(noise(tokens[:i]), tokens[i]) for i in range(1, len(tokens))]
    assert decoder.confidence == pytest.approx(math.exp(sum(logs) / len(logs)))
    willing = FakeModel(says('{"name":"lights","level":7}'))
    agreed = Decoder(willing, [0])
    agreed.constrained(matcher(willing, SCHEMA, whitespace="none"))
    assert agreed.confidence > 0.9 > 0.1 > decoder.confidence


def test_a_prompt_is_computed_only_from_where_it_differs() -> None:
    model = FakeModel(says(""))
    Decoder(model, [1, 2, 3, 4])
    decoder = Decoder(model, [1, 2, 9, 9, 9])
    assert model.forwards == [4, 3] and model.tokens == [1, 2, 9, 9, 9]
    assert decoder.statistics.cached_tokens == 2
    Decoder(model, [1, 2, 9])  # the last token is computed again, for its logits
    assert model.forwards == [4, 3, 1] and model.tokens == [1, 2, 9]


def test_two_decoders_of_one_model_do_not_disturb_each_other_in_turn() -> None:
    model = FakeModel(noise)
    alone = Decoder(FakeModel(noise), [5, 6], max_new_tokens=8).free().tokens
    Decoder(model, [5, 7], max_new_tokens=8).free()
    assert Decoder(model, [5, 6], max_new_tokens=8).free().tokens == alone


def test_scores_are_log_probabilities_and_leave_no_trace() -> None:
    model = FakeModel(noise)
    decoder = Decoder(model, [0])
    texts = ["say abc", "say abd", "say", "sx", "yes", "sx"]
    scores = decoder.score(texts)
    for text, score in zip(texts, scores, strict=True):
        tokens = [0, *text.encode()]
        expected = sum(log_probability(noise(tokens[:i]), tokens[i]) for i in range(1, len(tokens)))
        assert score == pytest.approx(expected, rel=1e-5)
    assert model.tokens == [0] and decoder.tokens == []
    assert model.forwards == [1, 1, 2, 3, 2]  # the prompt, "s", "ay", " ab", "ye"


def test_with_offsets_the_best_score_is_found_with_less_work() -> None:
    texts = [first + second + "zzz" for first in "abcdef" for second in "ghi"]
    all_work = less_work = 0
    for seed in range(20):
        model = FakeModel(lambda tokens, seed=seed: noise([seed, *tokens]))  # type: ignore[misc]
        decoder = Decoder(model, [0])
        offsets = list(np.random.default_rng(seed).normal(-20, 20, len(texts)))
        full = np.array(decoder.score(texts)) - offsets
        work = len(model.forwards) - 1
        pruned = np.array(decoder.score(texts, offsets)) - offsets
        assert pruned.argmax() == full.argmax() and pruned.max() == pytest.approx(full.max())
        assert (pruned >= full - 1e-5).all()
        all_work, less_work = all_work + work, less_work + len(model.forwards) - 1 - work
    assert less_work < all_work / 2


def test_an_answer_that_does_not_fit_is_cut_off_and_says_so() -> None:
    model = FakeModel(says('{"name":"lights","level":7}'))
    stretch = Decoder(model, [0], max_new_tokens=9).constrained(matcher(model, SCHEMA, whitespace="none"))
    assert stretch.ended == "length" and stretch.text == '{"name":"'
    exact = Decoder(model, [0], max_new_tokens=27).constrained(matcher(model, SCHEMA, whitespace="none"))
    assert exact.ended == "stop" and len(exact.tokens) == 27


def test_a_prompt_that_fills_the_context_is_an_error_with_the_figures() -> None:
    model = FakeModel(says(""), context_length=10)
    with pytest.raises(ContextLengthError) as raised:
        Decoder(model, [0] * 10)
    assert raised.value.fields == {"tokens": 10, "context_length": 10}
    assert model.forwards == []
    assert Decoder(model, [0] * 8, max_new_tokens=99).remaining == 2


@pytest.mark.parametrize("constrained", [False, True])
def test_ctrl_c_keeps_what_was_written(constrained: bool) -> None:
    willing = says('{"name":"lights","level":7}')

    def logits(tokens: list[int]) -> Any:
        if len(tokens) == 26:
            raise KeyboardInterrupt
        return willing(tokens)

    model = FakeModel(logits)
    decoder = Decoder(model, [0])
    with pytest.raises(Interrupted) as raised:
        if constrained:
            decoder.constrained(matcher(model, SCHEMA, whitespace="none"))
        else:
            decoder.free()
    assert '{"name":"lights","level":7}'.startswith(raised.value.text) and len(raised.value.text) >= 24
    assert isinstance(raised.value, KeyboardInterrupt)
    # The cache is as the next prompt needs it.
    assert Decoder(model, [0, 1]).statistics.cached_tokens == 1 and model.tokens == [0, 1]


@pytest.mark.parametrize(
    "options", [{"temperature": -1}, {"temperature": math.nan}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}]
)
def test_sampling_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(PunchcardError):
        Sampler(**options)


def test_a_seed_repeats_the_draws() -> None:
    logits = noise([1])
    draws = [[sampler.sample(logits) for _ in range(20)] for sampler in (Sampler(1.0, seed=3), Sampler(1.0, seed=3))]
    assert draws[0] == draws[1] and len(set(draws[0])) > 1


def test_top_p_keeps_the_smallest_set_that_holds_the_mass() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], dtype=np.float32))
    kept = {Sampler(1.0, top_p=0.6, seed=seed).sample(logits) for seed in range(200)}
    assert kept == {0, 1}
