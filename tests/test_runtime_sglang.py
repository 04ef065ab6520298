"""SGLang's grammar backend.

Its base classes are SGLang's own where its sources are (installed, or unpacked at ``PUNCHCARD_SGLANG_SOURCE``; what
their module imports is not needed and stood in for), and stand-ins of the same shape everywhere.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from fake_model import END  # noqa: E402
from runtime_data import BYTES, COMPILER, WEATHER  # noqa: E402

from punchcard.errors import PunchcardError  # noqa: E402
from punchcard.models import sglang as plugin  # noqa: E402

BASE = "sglang.srt.constrained.base_grammar_backend"


def stand_ins() -> ModuleType:
    """The part of SGLang's module that a backend builds on."""
    module = ModuleType(BASE)
    module.__file__ = None

    class BaseGrammarObject:
        def __init__(self) -> None:
            self.finished = False
            self.grammar_stats = None
            self.current_token = None

    class InvalidGrammarObject(BaseGrammarObject):
        def __init__(self, error_message: str) -> None:
            super().__init__()
            self.error_message = error_message

    class BaseGrammarBackend:
        def __init__(self) -> None:
            self.cache: dict[Any, Any] = {}

        def reset(self) -> None:
            self.cache.clear()

    class GrammarRow(NamedTuple):
        row: int
        grammar: Any

    class GrammarStats(SimpleNamespace):
        pass

    registry: dict[str, Any] = {}
    for value in (BaseGrammarObject, InvalidGrammarObject, BaseGrammarBackend, GrammarRow, GrammarStats):
        setattr(module, value.__name__, value)
    module.GRAMMAR_BACKEND_REGISTRY = registry  # type: ignore[attr-defined]
    module.register_grammar_backend = registry.__setitem__  # type: ignore[attr-defined]
    return module


def released() -> ModuleType | None:
    """SGLang's module itself, if its source is there."""
    source = os.environ.get("PUNCHCARD_SGLANG_SOURCE")
    if source is None:
        found = importlib.util.find_spec("sglang")
        source = str(Path(found.origin).parent.parent) if found and found.origin else None
    if source is None:
        return None
    spec = importlib.util.spec_from_file_location(BASE, Path(source, *BASE.split(".")).with_suffix(".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[BASE] = module  # where its dataclasses look for it
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=["released", "stand-ins"])
def base(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    patch = pytest.MonkeyPatch()
    for name in ("sglang", "sglang.srt", "sglang.srt.constrained", "sglang.srt.parser"):
        patch.setitem(sys.modules, name, ModuleType(name))
    choices: list[str] = ["xgrammar"]
    for name, fields in (
        ("sglang.srt.parser.reasoning_parser", {"ReasoningParser": object}),
        ("sglang.srt.server_args", {"ServerArgs": object, "add_grammar_backend_choices": choices.extend}),
        ("sglang.srt.runtime_context", dict.fromkeys(("get_context", "get_exec", "get_resources", "get_serving"))),
    ):
        module = ModuleType(name)
        vars(module).update(fields)
        patch.setitem(sys.modules, name, module)
    sys.modules["sglang.srt.server_args"].GRAMMAR_BACKEND_CHOICES = choices
    patch.setitem(sys.modules, BASE, stand_ins())
    if request.param == "released":
        found = released()
        if found is None:
            patch.undo()
            pytest.skip("SGLang is not installed")
    plugin._classes.cache_clear()
    yield sys.modules[BASE]
    plugin._classes.cache_clear()
    patch.undo()


@pytest.fixture(scope="module")
def backend(base: ModuleType) -> Any:
    return plugin._classes()[1](COMPILER)


def write(grammar: Any, text: str) -> Any:
    for byte in text.encode():
        grammar.accept_token(byte)
    return grammar


def allowed(grammar: Any, *, rows: int = 2, row: int = 1) -> set[int]:
    """What may come next, by the calls that SGLang makes for a batch."""
    mask = grammar.allocate_vocab_mask(vocab_size=BYTES.vocab_size, batch_size=rows, device="cpu")
    grammar.fill_vocab_mask(mask, row)
    logits = torch.zeros(rows, BYTES.vocab_size)
    grammar.apply_vocab_mask(logits=logits, vocab_mask=grammar.move_vocab_mask(mask, "cpu"))
    assert bool(torch.isfinite(logits[1 - row]).all())
    return set(torch.isfinite(logits[row]).nonzero().flatten().tolist())


TAG = {"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}


@pytest.mark.parametrize(
    ("dispatch", "text", "answer"),
    [
        ("dispatch_json", json.dumps(WEATHER), '{"city": "Rome", "units": "celsius"}'),
        ("dispatch_json", "$$ANY$$", "[1, null]"),
        ("dispatch_regex", "a+b", "aab"),
        ("dispatch_ebnf", 'root ::= "a" root | "b"', "aab"),
        ("dispatch_structural_tag", json.dumps({"structures": [TAG], "triggers": ["<f"]}), "so <f>12</f>"),
        (
            "dispatch_structural_tag",
            json.dumps({"type": "structural_tag", "format": {"type": "const_string", "value": "ok"}}),
            "ok",
        ),
    ],
)
def test_each_kind_of_request(backend: Any, dispatch: str, text: str, answer: str) -> None:
    grammar = write(getattr(backend, dispatch)(text), answer)
    assert END in allowed(grammar) and not grammar.is_terminated()
    grammar.accept_token(END)
    assert grammar.is_terminated()


@pytest.mark.parametrize(
    ("dispatch", "text", "problem"),
    [
        ("dispatch_json", '{"type": "integer", "minimum": 3, "maximum": 2}', "satisf"),
        ("dispatch_json", "{", "JSON"),
        ("dispatch_regex", "a(", "group"),
        ("dispatch_ebnf", "root ::= other", "other"),
        ("dispatch_structural_tag", "{", "no JSON"),
    ],
)
def test_what_cannot_be_compiled_is_an_invalid_grammar(
    base: ModuleType, backend: Any, dispatch: str, text: str, problem: str
) -> None:
    invalid = getattr(backend, dispatch)(text)
    assert isinstance(invalid, base.InvalidGrammarObject)
    assert problem in invalid.error_message


def test_refused_tokens_abort_the_request(backend: Any) -> None:
    grammar = write(backend.dispatch_regex("abc"), "a")
    with pytest.raises(ValueError, match="token 120 breaks the grammar as number 1 of the answer"):
        grammar.accept_token(ord("x"))
    assert allowed(grammar) == {ord("b")}


def test_drafts_are_tried_and_rolled_back(backend: Any) -> None:
    """As the tree of drafts is walked: accept, fill, roll back; also over the end."""
    grammar = write(backend.dispatch_regex("a(b|c)?"), "a")
    grammar.accept_token(ord("b"))
    assert allowed(grammar) == {END}
    grammar.accept_token(END)
    grammar.accept_token(END)
    grammar.rollback(1)
    assert grammar.is_terminated()
    grammar.rollback(2)
    assert allowed(grammar) == {ord("b"), ord("c"), END}


def test_the_tree_of_drafts_is_walked_by_its_own_code(base: ModuleType, backend: Any) -> None:
    """``traverse_tree`` of the release, over the tree a(b(x), c(END)), z."""
    walk = _function_of("sglang.srt.speculative.spec_utils", "traverse_tree", base)
    grammar = write(backend.dispatch_regex("qa(b|c)"), "q")
    drafts = torch.tensor([ord("q"), ord("a"), ord("z"), ord("b"), ord("c"), ord("x"), END])
    child = torch.tensor([1, 3, -1, 5, 6, -1, -1])
    sibling = torch.tensor([-1, 2, -1, 4, -1, -1, -1])
    mask = grammar.allocate_vocab_mask(BYTES.vocab_size, len(drafts), "cpu")
    walk(child, sibling, drafts, grammar, mask, BYTES.vocab_size)
    logits = torch.zeros(len(drafts), BYTES.vocab_size)
    grammar.apply_vocab_mask(logits, mask)
    found = [set(torch.isfinite(row).nonzero().flatten().tolist()) for row in logits]
    everything = set(range(BYTES.vocab_size))
    assert found == [{ord("a")}, {ord("b"), ord("c")}, everything, {END}, {END}, everything, everything]
    assert allowed(grammar) == {ord("a")}


def _function_of(module: str, name: str, base: ModuleType) -> Any:
    """A function of SGLang's, without what its module imports."""
    import ast
    import typing

    if not base.__file__:
        pytest.skip("SGLang is not installed")
    path = Path(base.__file__).parents[3].joinpath(*module.split(".")).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    scope: dict[str, Any] = {"torch": torch, **vars(typing), **vars(base)}
    exec(compile(tree, str(path), "exec"), scope)
    return scope[name]


def test_copies_begin_anew(backend: Any) -> None:
    grammar = write(backend.dispatch_regex("ab"), "a")
    copy = grammar.copy()
    assert (allowed(copy), allowed(grammar)) == ({ord("a")}, {ord("b")})
    assert copy.grammar_stats.is_cache_hit and copy.grammar_stats.dispatch_type == "regex"


def test_batches_are_filled_at_once(base: ModuleType, backend: Any) -> None:
    class Wrapped:
        def fill_vocab_mask(self, vocab_mask: Any, row: int) -> None:
            vocab_mask[row] = 7

    first, second = backend.dispatch_regex("a"), backend.dispatch_regex("b")
    mask = first.allocate_vocab_mask(BYTES.vocab_size, 4, "cpu")
    entries = [base.GrammarRow(3, second), base.GrammarRow(0, first), base.GrammarRow(2, Wrapped())]
    first.fill_vocab_mask_batched(entries, mask)
    assert [sorted(set(row.tolist())) for row in mask] == [[0, 2], [-1], [7], [0, 4]]
    first.reset_vocab_mask(mask)
    assert bool((mask == -1).all())


def test_jumps(backend: Any) -> None:
    grammar = write(backend.dispatch_regex("ab(cd|ce)"), "a")
    helper = grammar.try_jump_forward(None)
    assert grammar.jump_forward_str_state(helper) == ("bc", -1)
    grammar.jump_and_retokenize([97], [97, 98, 99], -1)
    assert allowed(grammar) == {ord("d"), ord("e")}
    assert grammar.try_jump_forward(None) is None
    with pytest.raises(ValueError, match="token 120"):
        grammar.jump_and_retokenize([97, 98, 99], [97, 120], -1)


@pytest.mark.parametrize("is_allowed", [True, False])
@pytest.mark.parametrize("reset", [True, False])
def test_filters(is_allowed: bool, reset: bool) -> None:
    mask = torch.full((2, 3), 0b1010, dtype=torch.int32)
    plugin.set_token_filter(mask, [0, 1, 31, 64], 1, is_allowed, reset_vocab_mask=reset)
    assert mask[0].tolist() == [0b1010] * 3
    bits = {at for at in range(96) if mask[1, at // 32].item() >> at % 32 & 1}
    kept = {at for at in range(96) if at % 32 in (1, 3)} if not reset else set() if is_allowed else set(range(96))
    assert bits == (kept | {0, 1, 31, 64} if is_allowed else kept - {0, 1, 31, 64})


def test_the_backend_is_registered_once(base: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin.register()
    plugin.register()
    choices = sys.modules["sglang.srt.server_args"].GRAMMAR_BACKEND_CHOICES
    assert choices.count("punchcard") == 1
    serving = SimpleNamespace(constrained_json_disable_any_whitespace=True)
    monkeypatch.setattr(sys.modules["sglang.srt.runtime_context"], "get_serving", lambda: serving)
    monkeypatch.setattr(plugin.TokenizerInfo, "from_huggingface", lambda tokenizer, **options: BYTES)
    made = base.GRAMMAR_BACKEND_REGISTRY["punchcard"](None, None, BYTES.vocab_size, {END})
    grammar = write(made.dispatch_json(json.dumps(WEATHER)), '{"city":')
    assert ord('"') in allowed(grammar) and ord(" ") not in allowed(grammar)
    serving.constrained_json_whitespace_pattern = "[ ]"
    with pytest.raises(PunchcardError, match="whitespace-pattern"):
        base.GRAMMAR_BACKEND_REGISTRY["punchcard"](None, None, BYTES.vocab_size, {END})


def test_the_cache_is_that_of_sglang(base: ModuleType, backend: Any) -> None:
    if not hasattr(backend, "get_cached_or_future_value"):
        pytest.skip("the stand-ins have no cache")
    key = ("regex", "[0-9]+")
    future, hit = backend.get_cached_or_future_value(key, False)
    grammar = future.result(timeout=60)
    assert not hit and grammar.grammar_stats.compilation_time > 0
    backend.set_cache(key, grammar.copy())
    write(grammar, "12")
    again, hit = backend.get_cached_or_future_value(key, False)
    assert hit and allowed(again) == set(range(48, 58))
    backend.reset()
    assert backend.get_cached_or_future_value(key, False)[1] is False
