"""vLLM's logits processor, under both model runners.

Where vLLM's sources are (installed, or unpacked in the folders of ``PUNCHCARD_VLLM_SOURCE``), the runner's own batch
drives it: requests come, go and move as the engine moves them. Small stand-ins do so everywhere else.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from fake_model import END  # noqa: E402
from runtime_data import BYTES, COMPILER, WEATHER, snippet  # noqa: E402

from punchcard.errors import GrammarError, UnsatisfiableSchemaError  # noqa: E402
from punchcard.models import vllm as plugin  # noqa: E402
from punchcard.models.vllm import KEY, BatchRows, Grammars, SlotRows, check_params, extra_args  # noqa: E402

WIDTH = 300  # wider than the vocabulary of 260


@dataclass
class Params:
    """The part of vLLM's ``SamplingParams`` that matters."""

    extra_args: dict[str, Any] | None = None
    min_tokens: int = 0
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] = field(default_factory=list)
    structured_outputs: Any = None


class ByteGrammars(Grammars):
    """For the vocabulary of bytes."""

    def __init__(self) -> None:
        self.vocab_size = BYTES.vocab_size

    @property
    def _compiler(self) -> Any:
        return COMPILER


def regex_params(pattern: str) -> Params:
    return Params(extra_args(regex=pattern))


def allowed(logits: Any) -> list[set[int]]:
    return [set(torch.isfinite(row).nonzero().flatten().tolist()) for row in logits]


EVERYTHING = set(range(WIDTH))


# What a request says


def test_grammars_travel_in_extra_args() -> None:
    for args in (
        extra_args(json_schema=WEATHER, profile="spec"),
        extra_args(regex="a|b"),
        extra_args(ebnf='root ::= "a"'),
        extra_args(lark='start: "a"'),
        extra_args(structural_tag={"type": "json_schema", "json_schema": WEATHER}),
        extra_args(compiled=COMPILER.compile_regex("ab")),
    ):
        assert isinstance(args[KEY], str)  # as `vllm_xargs` wants it
        assert check_params(Params(args))
        assert check_params(Params({KEY: json.loads(args[KEY])}))
    assert not check_params(Params()) and not check_params(Params({"other": 1}))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("no json", "'no json'"),
        (7, "7"),
        ({}, "it names nothing"),
        ({"regexp": "a"}, "it names regexp"),
        ({"regex": "a", "ebnf": "b"}, "it names regex, ebnf"),
        ({"regex": "a("}, "group"),
        ({"regex": 7}, "given as its text"),
        ({"json_schema": {"type": "integer", "minimum": 3, "maximum": 2}}, "satisf"),
        ({"regex": "a", "options": {"speed": 3}}, "speed"),
        ({"compiled": "%"}, "cannot be read"),
    ],
)
def test_bad_grammars_are_refused_at_the_door(spec: Any, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        check_params(Params({KEY: spec}))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "rival",
    [{"min_tokens": 3}, {"allowed_token_ids": [1]}, {"bad_words": ["a"]}, {"structured_outputs": object()}],
)
def test_settings_that_forbid_tokens_are_refused(rival: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(rival))} cannot be combined with a grammar"):
        check_params(Params(extra_args(regex="a"), **rival))
    assert not check_params(Params(**rival))


def test_extra_args_check_what_they_are_given() -> None:
    with pytest.raises(GrammarError):
        extra_args()
    with pytest.raises(GrammarError):
        extra_args(regex="a", lark="b")
    with pytest.raises(UnsatisfiableSchemaError):
        extra_args(json_schema={"type": "string", "minLength": 2, "maxLength": 1})


# The first model runner: rows that are added, removed and moved


class Direction(Enum):
    UNIDIRECTIONAL = 0
    SWAP = 1


def update(*, removed: Any = (), added: Any = (), moved: Any = ()) -> Any:
    return SimpleNamespace(batch_size=0, removed=list(removed), added=list(added), moved=list(moved))


class Batch:
    """Rows under the processor, and what each of them should allow."""

    def __init__(self) -> None:
        self.rows = BatchRows(ByteGrammars())

    def allowed(self, count: int) -> list[set[int]]:
        logits = torch.zeros(count, WIDTH)
        self.rows.mask(logits)
        return allowed(logits)


def test_rows_come_grow_and_go() -> None:
    batch = Batch()
    first: list[int] = []
    second = [ord("b")]  # resumed after it was put aside
    batch.rows.update(
        update(
            added=[
                (0, regex_params("ab+"), [1, 2], first),
                (1, Params(), [1], []),
                (2, regex_params("b[xy]"), None, second),
            ]
        )
    )
    assert batch.allowed(3) == [{97}, EVERYTHING, {120, 121}]
    first.append(97)
    second.append(120)
    batch.rows.update(None)
    assert batch.allowed(3) == [{98}, EVERYTHING, {END}]
    first.append(98)
    batch.rows.update(update(removed=[2]))
    assert batch.allowed(2) == [{98, END}, EVERYTHING]
    batch.rows.update(update(removed=[0], moved=[(1, 0, Direction.UNIDIRECTIONAL)]))
    assert batch.allowed(1) == [EVERYTHING]


def test_rows_move_and_swap() -> None:
    batch = Batch()
    answers: dict[str, list[int]] = {"a": [], "b": []}
    batch.rows.update(
        update(added=[(0, regex_params("a1"), None, answers["a"]), (3, regex_params("b2"), None, answers["b"])])
    )
    batch.rows.update(update(moved=[(0, 3, Direction.SWAP), (3, 1, Direction.UNIDIRECTIONAL)]))
    assert batch.allowed(4) == [{98}, {97}, EVERYTHING, EVERYTHING]
    answers["b"].append(98)
    batch.rows.update(update(moved=[(0, 2, Direction.SWAP)]))
    assert batch.allowed(4) == [EVERYTHING, {97}, {50}, EVERYTHING]
    batch.rows.update(update(moved=[(2, 1, Direction.UNIDIRECTIONAL)]))  # over a request that has ended
    assert batch.allowed(3) == [EVERYTHING, {50}, EVERYTHING]
    batch.rows.update(update(removed=[1], added=[(1, Params(), None, [])]))
    assert batch.allowed(2) == [EVERYTHING, EVERYTHING]


def test_what_breaks_a_grammar_ends_its_answer_alone(caplog: pytest.LogCaptureFixture) -> None:
    batch = Batch()
    answer: list[int] = []
    batch.rows.update(update(added=[(0, regex_params("ab"), None, answer), (1, regex_params("ab"), None, [])]))
    batch.allowed(2)
    answer.append(-1)  # a placeholder for a token that was never filled in
    assert batch.allowed(2) == [{END}, {97}]
    answer.append(98)
    assert batch.allowed(2) == [{END}, {97}]
    assert [record.message for record in caplog.records] == [
        "An answer is ended, because token 0 of it breaks its grammar"
    ]


def test_a_grammar_that_fails_late_gives_an_empty_answer(caplog: pytest.LogCaptureFixture) -> None:
    batch = Batch()
    batch.rows.update(update(added=[(0, Params({KEY: {"compiled": "AAAA"}}), None, [])]))
    assert batch.allowed(1) == [{END}]
    assert "gets an empty answer" in caplog.text


def test_the_example_of_the_documents_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an engine of one row, which answers with a way to complete the text."""

    class Engine:
        def __init__(self, model: str, logits_processors: list[str]) -> None:
            assert logits_processors == ["punchcard.models.vllm:PunchcardLogitsProcessor"]

        def generate(self, prompt: str, params: Any) -> Any:
            assert check_params(params)
            follower = ByteGrammars().constraint(params, []).follower
            text = follower.matcher.find_completion().decode()
            return [SimpleNamespace(outputs=[SimpleNamespace(text=text)])]

    module = ModuleType("vllm")
    vars(module).update(LLM=Engine, SamplingParams=lambda max_tokens, extra_args: Params(extra_args))
    monkeypatch.setitem(sys.modules, "vllm", module)
    names = snippet("vLLM")
    names["Weather"].model_validate_json(names["answer"])


# The second model runner: slots, and rows of drafts


class Slots:
    """What the runner keeps on the device of its requests."""

    def __init__(self, slots: int = 4, length: int = 32) -> None:
        self.all_token_ids = SimpleNamespace(gpu=torch.zeros(slots, length, dtype=torch.int32))
        self.prompt_len = SimpleNamespace(np=np.zeros(slots, dtype=np.int32))
        self.total_len = SimpleNamespace(gpu=torch.zeros(slots, dtype=torch.int32))
        self.rows = SlotRows(ByteGrammars(), self)

    def add(self, slot: int, params: Params, prompt: list[int], answer: str = "") -> bool:
        tokens = prompt + list(answer.encode())
        self.prompt_len.np[slot] = len(prompt)
        self.total_len.gpu[slot] = len(tokens)
        self.all_token_ids.gpu[slot, : len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
        return self.rows.add(slot, params)

    def write(self, slot: int, *tokens: int) -> None:
        for token in tokens:
            self.all_token_ids.gpu[slot, self.total_len.gpu[slot]] = token
            self.total_len.gpu[slot] += 1

    def allowed(self, slots: list[int], drafts: dict[int, list[int]] | None = None) -> list[set[int]]:
        owners, tokens, places = [], [], []
        for slot in slots:
            last = int(self.all_token_ids.gpu[slot, self.total_len.gpu[slot] - 1])
            row = [last, *(drafts or {}).get(slot, [])]
            owners += [slot] * len(row)
            tokens += row
            places += range(len(row))
        context = SimpleNamespace(
            expanded_idx_mapping=torch.tensor(owners, dtype=torch.int32),
            idx_mapping=torch.tensor(slots, dtype=torch.int32),
            idx_mapping_np=np.array(slots, dtype=np.int32),
            expanded_local_pos=torch.tensor(places, dtype=torch.int32),
            input_ids=torch.tensor(tokens, dtype=torch.int32),
        )
        logits = torch.zeros(len(owners), WIDTH)
        self.rows.mask(logits, context)
        return allowed(logits)


def test_slots_are_read_and_reused() -> None:
    slots = Slots()
    assert slots.add(2, regex_params("ab+"), [5, 6])
    assert not slots.add(0, Params(), [5])
    assert slots.add(1, regex_params("b[xy]"), [7], "b")  # resumed
    assert slots.allowed([2, 0, 1]) == [{97}, EVERYTHING, {120, 121}]
    slots.write(2, 97)
    slots.write(1, 120)
    assert slots.allowed([1, 2]) == [{END}, {98}]
    slots.write(2, 98, 98)  # two at once, after a step without this request
    assert slots.allowed([0, 2]) == [EVERYTHING, {98, END}]
    slots.total_len.gpu[2] -= 2  # discarded, and sampled anew
    assert slots.allowed([2]) == [{98}]
    assert not slots.add(2, Params(), [5])
    assert slots.allowed([2]) == [EVERYTHING]


def test_drafts_have_rows_of_their_own() -> None:
    slots = Slots()
    slots.add(0, regex_params("ab(c|d)"), [5])
    slots.add(1, Params(), [5])
    slots.add(2, regex_params("[0-9]{2}"), [5], "4")
    found = slots.allowed([1, 0, 2], {1: [9], 0: [97, 98, 120, 99], 2: [50]})
    assert found == [EVERYTHING, EVERYTHING, {97}, {98}, {99, 100}, EVERYTHING, EVERYTHING, set(range(48, 58)), {END}]
    slots.write(0, 97, 98, 99)
    assert slots.allowed([0]) == [{END}]


# vLLM's own code


@pytest.fixture(scope="module")
def vllm() -> Iterator[Any]:
    source = os.environ.get("PUNCHCARD_VLLM_SOURCE")
    paths = source.split(os.pathsep) if source else []
    sys.path[:0] = paths
    try:
        yield pytest.importorskip("vllm.v1.worker.gpu_input_batch", reason="vLLM is not installed")
    finally:
        del sys.path[: len(paths)]


def test_the_class_is_one_of_both_runners(vllm: Any) -> None:
    module, name = plugin.PROCESSOR.split(":")
    made = getattr(importlib.import_module(module), name)
    first = importlib.import_module("vllm.v1.sample.logits_processor")
    second = importlib.import_module("vllm.v1.worker.gpu.sample.logits_processor")
    assert first._load_logitsprocs_by_fqcns([plugin.PROCESSOR]) == [made]
    assert importlib.import_module(f"{second.__name__}.loader")._load_v2_logitsprocs_by_fqcns([plugin.PROCESSOR]) == [
        made
    ]
    assert made.__abstractmethods__ == frozenset()
    params = importlib.import_module("vllm.sampling_params").SamplingParams
    made.validate_params(params(extra_args=extra_args(json_schema=WEATHER)))
    made.validate_params(params(min_tokens=3))
    with pytest.raises(ValueError, match="min_tokens cannot be combined"):
        made.validate_params(params(min_tokens=3, max_tokens=9, extra_args=extra_args(regex="a")))


def test_the_second_runner_says_what_is_read(vllm: Any) -> None:
    interface = importlib.import_module("vllm.v1.worker.gpu.sample.logits_processor.interface")
    read = {"expanded_idx_mapping", "idx_mapping_np", "input_ids"}
    assert read <= set(interface.LogitsContext.__dataclass_fields__)
    assert {"all_token_ids", "prompt_len", "total_len"} <= set(interface.LogitsProcRequestState.__dataclass_fields__)


def test_the_first_runner_moves_rows_as_it_likes(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its batch, with hundreds of requests that come, go, are put aside and resumed, with and without grammars."""
    monkeypatch.setattr(plugin, "Grammars", lambda config: ByteGrammars())
    for name in [name for name in sys.modules if name.startswith("vllm.")]:
        if getattr(sys.modules[name], "PIN_MEMORY", False):  # there may be no device to pin it for
            monkeypatch.setattr(sys.modules[name], "PIN_MEMORY", False)
    processor = plugin.PunchcardLogitsProcessor(None, torch.device("cpu"), False)
    logits_processors = importlib.import_module("vllm.v1.sample.logits_processor").LogitsProcessors([processor])
    params_class = importlib.import_module("vllm.sampling_params").SamplingParams
    batch = vllm.InputBatch(
        max_num_reqs=8,
        max_model_len=64,
        max_num_batched_tokens=64,
        device=torch.device("cpu"),
        vocab_size=WIDTH,
        block_sizes=[16],
        max_num_blocks_per_req=[4],
        logitsprocs=logits_processors,
        logitsprocs_need_output_token_ids=True,
        **_more_of(vllm.InputBatch),
    )
    draw = random.Random(11)
    states: dict[str, Any] = {}
    aside: list[str] = []
    finished: dict[str, tuple[str | None, list[int]]] = {}
    patterns: dict[str, str | None] = {}
    for step in range(400):
        for name in draw.sample(list(batch.req_id_to_index), k=min(draw.randrange(3), batch.num_reqs)):
            answer = states[name].output_token_ids
            batch.remove_request(name)
            if answer and (answer[-1] == END or len(answer) > 20):
                finished[name] = patterns[name], states.pop(name).output_token_ids
            else:
                aside.append(name)
        while batch.num_reqs < 8 and draw.random() < 0.6:
            if aside and draw.random() < 0.5:
                batch.add_request(states[aside.pop()])
                continue
            name = f"r{step}-{len(states)}"
            patterns[name] = pattern = draw.choice([None, "ab+", "[0-9]{3}-[0-9]{2}", "(yes|no)(, (yes|no))*"])
            args = None if pattern is None else extra_args(regex=pattern)
            states[name] = vllm.CachedRequestState(
                req_id=name,
                prompt_token_ids=[1, 2, 3],
                mm_features=[],
                sampling_params=params_class(temperature=0.0, extra_args=args),
                generator=None,
                block_ids=([0],),
                num_computed_tokens=0,
                output_token_ids=[],
            )
            batch.add_request(states[name])
        batch.condense()
        if batch.num_reqs > 1 and draw.random() < 0.5:
            batch.swap_states(*draw.sample(range(batch.num_reqs), 2))
        batch.refresh_metadata()
        logits = torch.zeros(batch.num_reqs, WIDTH)
        processor.apply(logits)
        for row, name in enumerate(batch.req_ids):
            choices = sorted(allowed(logits[row : row + 1])[0])
            assert (len(choices) == WIDTH) == (patterns[name] is None)
            states[name].output_token_ids.append(draw.choice(choices))
    import re

    checked = 0
    for pattern, answer in finished.values():
        if pattern is not None and answer[-1] == END:
            assert re.fullmatch(pattern, bytes(answer[: answer.index(END)]).decode())
            checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("kind", "spec", "text"),
    [
        ("JSON", json.dumps(WEATHER), '{"city": "Rome", "units": "celsius"}'),
        ("JSON_OBJECT", "", '{"a": [1]}'),
        ("REGEX", "a+b", "aab"),
        ("CHOICE", '["yes", "no"]', "no"),
        ("GRAMMAR", 'root ::= "a" | "b"', "b"),
        ("GRAMMAR", 'start: "a" | "b"', "a"),
        ("STRUCTURAL_TAG", '{"type": "structural_tag", "format": {"type": "const_string", "value": "ok"}}', "ok"),
    ],
)
def test_its_structured_outputs_run_on_punchcard(vllm: Any, monkeypatch: Any, kind: str, spec: str, text: str) -> None:
    pytest.importorskip("xgrammar", reason="XGrammar, which vLLM imports, is not installed")
    module = importlib.import_module("vllm.v1.structured_output.backend_xgrammar")
    types = importlib.import_module("vllm.v1.structured_output.backend_types")
    for name in ("backend_xgrammar", "utils"):  # put back in the end
        place = importlib.import_module(f"vllm.v1.structured_output.{name}")
        monkeypatch.setattr(place, "xgr", place.xgr)
    monkeypatch.setenv("PUNCHCARD_VLLM_STRUCTURED_OUTPUTS", "1")
    plugin.plugin()
    assert module.xgr.__name__ == "punchcard.compat.xgrammar"
    options = SimpleNamespace(disable_any_whitespace=False)
    model = SimpleNamespace(hf_config=SimpleNamespace(model_type="llama"))
    speculative = SimpleNamespace(num_speculative_tokens=2)
    config = SimpleNamespace(structured_outputs_config=options, model_config=model, speculative_config=speculative)
    backend = module.XgrammarBackend(config, _letters(), 128)
    grammar = backend.compile_grammar(getattr(types.StructuredOutputOptions, kind), spec)
    tokens = list(text.encode())
    assert grammar.validate_tokens(tokens) == tokens
    assert grammar.accept_tokens("r", tokens) and not grammar.is_terminated()
    bitmask = backend.allocate_token_bitmask(2)
    grammar.fill_bitmask(bitmask, 1)
    assert bitmask[1, 0] & 1  # the end may come
    assert grammar.accept_tokens("r", [0]) and grammar.is_terminated()
    grammar.rollback(2)
    assert grammar.accept_tokens("r", tokens[-1:]) and not grammar.is_terminated()


def _letters() -> Any:
    """A tokenizer of transformers for ASCII, each character a token, 0 the end."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from tokenizers import Tokenizer, models

    tokenizer = Tokenizer(models.BPE({"</s>": 0, **{chr(i): i for i in range(1, 128)}}, []))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")


def _more_of(batch_class: Any) -> dict[str, Any]:
    """Arguments that some versions of the batch want besides."""
    import inspect

    known = {"pin_memory": False, "kernel_block_sizes": [16], "is_pooling_model": False, "slot_mapping_modes": None}
    return {name: value for name, value in known.items() if name in inspect.signature(batch_class).parameters}
