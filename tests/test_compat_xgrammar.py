"""XGrammar's names, as vLLM and SGLang use them, and, where XGrammar is installed, the same answers as it gives."""

from __future__ import annotations

import json
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import punchcard.compat.xgrammar as xgr  # noqa: E402
from punchcard.errors import GrammarError, MatcherError, PunchcardError, SchemaError  # noqa: E402

VOCABULARY = [*(bytes([i]) for i in range(256)), b"ab", b"<|eot|>", b"</s>"]
AB, EOT, END = 256, 257, 258
INFO = xgr.TokenizerInfo(VOCABULARY, stop_token_ids=[END], vocab_size=272)
COMPILER = xgr.GrammarCompiler(INFO)


def accepts(compiled: xgr.CompiledGrammar, text: str) -> bool:
    matcher = xgr.GrammarMatcher(compiled)
    return matcher.accept_string(text) and matcher.is_completed()


def allowed(matcher: xgr.GrammarMatcher) -> list[int]:
    bitmask = xgr.allocate_token_bitmask(2, INFO.vocab_size)
    matcher.fill_next_token_bitmask(bitmask, 1)
    assert bool((bitmask[0] == -1).all())
    return [int(i) for i in torch.nonzero(xgr.testing.bitmask_to_bool_mask(bitmask, INFO.vocab_size)[1])]


def test_a_vocabulary_is_read_in_each_spelling() -> None:
    raw = xgr.TokenizerInfo(["a", "é", "</s>"])
    assert raw.decoded_vocab == [b"a", "é".encode(), b"</s>"] and raw.stop_token_ids == [2]
    fallback = xgr.TokenizerInfo(["<0x0A>", "▁a", "</s>"], xgr.VocabType.BYTE_FALLBACK, stop_token_ids=2)
    assert fallback.decoded_vocab[:2] == [b"\n", b" a"] and fallback.vocab_type is xgr.VocabType.BYTE_FALLBACK
    level = xgr.TokenizerInfo(["Ġa", "Ċ", "<|im_end|>"], xgr.VocabType.BYTE_LEVEL, vocab_size=8)
    assert level.decoded_vocab[:2] == [b" a", b"\n"] and level.vocab_size == 8 and len(level.decoded_vocab) == 8
    assert level.special_token_ids == [2, 3, 4, 5, 6, 7]
    with pytest.raises(PunchcardError):
        xgr.TokenizerInfo(["a"])


def test_tokenizer_information_is_saved_and_read() -> None:
    again = xgr.TokenizerInfo.deserialize_json(INFO.serialize_json())
    assert (again.decoded_vocab, again.stop_token_ids) == (INFO.decoded_vocab, INFO.stop_token_ids)
    again = xgr.TokenizerInfo.from_vocab_and_metadata(VOCABULARY, INFO.dump_metadata())
    assert again.vocab_size == INFO.vocab_size
    with pytest.raises(xgr.InvalidJSONError):
        xgr.TokenizerInfo.deserialize_json("{")
    with pytest.raises(xgr.DeserializeFormatError):
        xgr.TokenizerInfo.deserialize_json("{}")


def test_a_tokenizer_of_huggingface() -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "</s>": 2}, unk_token="a"))
    tokenizer.add_special_tokens(["</s>"])
    info = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=32, stop_token_ids=[2])
    assert info.vocab_size == 32 and info.stop_token_ids == [2] and info.decoded_vocab[0] == b"a"


def test_a_request_from_schema_to_masked_logits() -> None:
    compiled = COMPILER.compile_json_schema('{"type": "object", "properties": {"a": {"enum": [1]}}}')
    matcher = xgr.GrammarMatcher(compiled, max_rollback_tokens=3)
    bitmask = xgr.allocate_token_bitmask(1, INFO.vocab_size)
    assert bitmask.dtype == xgr.bitmask_dtype and tuple(bitmask.shape) == xgr.get_bitmask_shape(1, INFO.vocab_size)
    said = []
    while not matcher.is_terminated():
        matcher.fill_next_token_bitmask(bitmask)
        logits = torch.zeros(1, INFO.vocab_size)
        logits[0, [*b'{"a:1}']] = 1.0
        logits[0, END] = 2.0
        xgr.apply_token_bitmask_inplace(logits, bitmask)
        token = int(logits.argmax())
        assert matcher.accept_token(token)
        said.append(token)
        if len(said) > 40:
            pytest.fail("no end")
    assert json.loads(bytes(said[:-1])) is not None and said[-1] == END
    assert not matcher.accept_token(END) and matcher.is_completed()
    matcher.rollback(2)
    assert not matcher.is_terminated()
    matcher.reset()
    assert allowed(matcher) == [ord("{")]


def test_stop_tokens() -> None:
    compiled = COMPILER.compile_grammar('root ::= "a"')
    matcher = xgr.GrammarMatcher(compiled, override_stop_tokens=[EOT])
    assert matcher.stop_token_ids == [EOT] and matcher.accept_token(ord("a"))
    assert allowed(matcher) == [EOT] and not matcher.accept_token(END)
    assert matcher.accept_token(EOT) and matcher.is_terminated()
    early = xgr.GrammarMatcher(compiled, terminate_without_stop_token=True)
    assert not early.is_terminated() and early.accept_string("a") and early.is_terminated()
    assert not early.accept_token(END)


def test_forks_forced_text_and_captures() -> None:
    matcher = xgr.GrammarMatcher(COMPILER.compile_grammar('root ::= "abc" ("d" | "e")'))
    assert matcher.find_jump_forward_string() == "abc" and matcher.find_jump_forward_tokens()[:1] == [AB]
    fork = matcher.fork()
    assert fork.accept_string("abcd") and not matcher.is_completed() and fork.is_completed()
    assert matcher.max_rollback_tokens == -1 and matcher.temperature is None
    with pytest.raises(xgr.NotCoveredError):
        matcher.get_captures()
    with pytest.raises(MatcherError):
        matcher.rollback(1)


def test_batches() -> None:
    compiled = [COMPILER.compile_regex(pattern) for pattern in ("a", "b", "[ab]c")]
    matchers = [xgr.GrammarMatcher(each) for each in compiled]
    bitmask = xgr.allocate_token_bitmask(4, INFO.vocab_size)
    batch = xgr.BatchGrammarMatcher(2)
    batch.batch_fill_next_token_bitmask(matchers, bitmask, [3, 0, 1])
    masks = xgr.testing.bitmask_to_bool_mask(bitmask, INFO.vocab_size)
    assert torch.nonzero(masks[3]).flatten().tolist() == [ord("a")]
    assert torch.nonzero(masks[0]).flatten().tolist() == [ord("b")] and bool(masks[2].all())
    assert batch.batch_accept_token(matchers, [97, 97, 97]) == [True, False, True]
    assert batch.batch_accept_string(matchers, ["x", "b", "c"]) == [False, True, True]
    batch.batch_rollback(matchers, [1, 1, 2])
    assert batch.batch_accept_token(matchers, [97, 98, 98]) == [True, True, True]


def test_a_tree_of_drafted_tokens() -> None:
    matcher = xgr.GrammarMatcher(COMPILER.compile_regex("a(b|c)d"))
    #      0 ── 1:"a" ── 2:"b" ── 4:"d"
    #       └─ 5:"x"  └─ 3:"c"
    children = torch.tensor([1, 2, 4, -1, -1, -1])
    siblings = torch.tensor([-1, 5, 3, -1, -1, -1])
    tokens = torch.tensor([0, *b"abcdx"])
    bitmask = xgr.allocate_token_bitmask(6, INFO.vocab_size)
    assert matcher.traverse_draft_tree(children, siblings, tokens, bitmask)
    masks = xgr.testing.bitmask_to_bool_mask(bitmask, INFO.vocab_size)
    rows = [torch.nonzero(mask).flatten().tolist() for mask in masks[:5]]
    assert rows == [[97, AB], [98, 99], [100], [100], [END]] and bool(masks[5].all())
    assert allowed(matcher) == [97, AB]
    assert matcher.traverse_draft_tree(children, siblings, tokens, bitmask, time_threshold=10.0)
    with pytest.raises(xgr.NotCoveredError):
        matcher.traverse_draft_tree(children, siblings, tokens, bitmask, temperatures=torch.zeros(6))


def test_structural_tags_of_both_forms() -> None:
    item = xgr.StructuralTagItem(begin="<f>", schema={"type": "integer"}, end="</f>")
    older = COMPILER.compile_structural_tag([item], ["<f"])
    tag = xgr.StructuralTag.from_legacy_structural_tag([item], ["<f"])
    for compiled in (
        older,
        COMPILER.compile_structural_tag(tag),
        COMPILER.compile_structural_tag(tag.model_dump_json()),
        COMPILER.compile_structural_tag(tags=[item], triggers=["<f"]),
        COMPILER.compile_structural_tag(xgr.StructuralTag.from_json(tag.model_dump())),
    ):
        assert accepts(compiled, "a<f>12</f>b") and not accepts(compiled, "<f>x</f>")
    with pytest.raises(xgr.InvalidJSONError):
        xgr.Grammar.from_structural_tag("{")
    with pytest.raises(xgr.InvalidStructuralTagError, match="format"):
        xgr.Grammar.from_structural_tag({"format": {"type": "no"}})
    with pytest.raises(TypeError):
        xgr.Grammar.from_structural_tag(1, 2, 3)


def test_grammars_combine_print_and_are_saved() -> None:
    a, b = xgr.Grammar.from_ebnf('root ::= "a"'), xgr.Grammar.from_regex("b+")
    both, either = xgr.Grammar.concat(a, b), xgr.Grammar.union(a, b)
    assert accepts(COMPILER.compile_grammar(both), "abb") and accepts(COMPILER.compile_grammar(either), "bb")
    assert accepts(COMPILER.compile_grammar(str(both)), "abb")
    again = xgr.Grammar.deserialize_json(both.serialize_json())
    assert accepts(COMPILER.compile_grammar(again), "abb")
    compiled = COMPILER.compile_grammar(both)
    assert compiled.memory_size_bytes > 0 and compiled.grammar is both
    assert accepts(xgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), INFO), "abb")
    with pytest.raises(xgr.DeserializeFormatError):
        xgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), xgr.TokenizerInfo(["a", "</s>"]))
    with pytest.raises(xgr.DeserializeVersionError):
        xgr.Grammar.deserialize_json('{"__VERSION__": "v0", "grammar": "nothing"}')
    assert xgr.testing._is_grammar_accept_string('root ::= "x"', "x")


def test_white_space_of_json() -> None:
    def texts(**options: Any) -> list[bool]:
        compiled = COMPILER.compile_json_schema({"type": "array"}, **options)
        return [accepts(compiled, text) for text in ("[1,2]", "[1, 2]", "[1,   2]")]

    assert texts() == [True, True, True]
    assert texts(max_whitespace_cnt=1) == [True, True, False]
    assert texts(any_whitespace=False) == [False, True, False]
    assert texts(any_whitespace=False, separators=(",", ":")) == [True, False, False]
    assert accepts(COMPILER.compile_builtin_json_grammar(), '{"a": [1e5,  null]}')


def test_strict_mode_and_order() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}
    strict = COMPILER.compile_json_schema(schema)
    assert accepts(strict, '{"a":1,"b":2}') and not accepts(strict, '{"a":1,"b":2,"c":3}')
    assert accepts(COMPILER.compile_json_schema(schema, strict_mode=False), '{"a":1,"b":2,"c":3}')
    assert not accepts(strict, '{"b":1,"a":2}')
    assert accepts(COMPILER.compile_json_schema(schema, any_order=True), '{"b":1,"a":2}')


def test_errors_come_from_the_calls_that_read_the_source() -> None:
    with pytest.raises(SchemaError):
        xgr.Grammar.from_json_schema({"type": "no"})
    with pytest.raises(GrammarError):
        xgr.Grammar.from_ebnf("root ::= (")
    for make in (
        lambda: xgr.Grammar.from_json_schema({}, any_whitespace=False, indent=2),
        lambda: xgr.Grammar.from_json_schema({}, any_whitespace=False, separators=(" ,", ":")),
        lambda: xgr.Grammar.from_json_schema({}, print_converted_ebnf=True),
        lambda: xgr.Grammar.from_lark("start: @a", named_grammars={"a": 'start: "a"'}),
        lambda: xgr.GrammarMatcher(COMPILER.compile_regex("a"), default_temperature=0.5),
        lambda: xgr.get_model_structural_tag,
        lambda: xgr.hf,
    ):
        with pytest.raises(xgr.NotCoveredError) as caught:
            make()
        assert caught.value.hint
    with pytest.raises(AttributeError):
        _ = xgr.nothing


def test_the_cache() -> None:
    compiler = xgr.GrammarCompiler(INFO, max_threads=2, cache_limit_bytes=1 << 20)
    compiler.compile_regex("a")
    assert compiler.get_cache_size_bytes() > 0 and compiler.cache_limit_bytes == 1 << 20
    compiler.clear_cache()
    assert compiler.get_cache_size_bytes() == 0


def test_logits_beyond_vocab_size_stay() -> None:
    bitmask = torch.zeros((2, 2), dtype=torch.int32)
    logits = torch.ones(2, 40)
    xgr.apply_token_bitmask_inplace(logits, bitmask, vocab_size=33, indices=torch.tensor([1]), backend="cpu")
    assert bool((logits[0] == 1).all()) and bool((logits[1, :33] == -torch.inf).all())
    assert bool((logits[1, 33:] == 1).all())
    xgr.reset_token_bitmask(bitmask)
    assert bool((bitmask == -1).all())
    with pytest.raises(ValueError, match="backend"):
        xgr.apply_token_bitmask_inplace(logits, bitmask, backend="abacus")  # type: ignore[arg-type]


def test_helpers_for_bitmasks() -> None:
    chosen = torch.zeros((1, 40), dtype=torch.bool)
    chosen[0, 33] = True
    bitmask = xgr.testing.bool_mask_to_bitmask(chosen)
    assert torch.equal(xgr.testing.bitmask_to_bool_mask(bitmask, 40), chosen)
    assert xgr.testing._is_single_token_bitmask(bitmask, 40) == (True, 33)
    assert xgr.testing._get_masked_tokens_from_bitmask(bitmask, 40) == [i for i in range(40) if i != 33]


# Where XGrammar itself is installed, both must say the same of the same tags and texts.

TEXT = {"type": "any_text"}


def tag(begin: str, content: Any, end: str) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


X = tag("<a>", {"type": "const_string", "value": "x"}, "</a>")
TAGS: list[Any] = [
    TEXT,
    tag("<t>", TEXT, "</t>"),
    tag("<t>", {"type": "any_text", "excludes": ["<x"]}, "</t>"),
    {"type": "triggered_tags", "triggers": ["<a"], "tags": [X]},
    {"type": "triggered_tags", "triggers": ["<a"], "tags": [X], "at_least_one": True},
    {"type": "triggered_tags", "triggers": ["<a"], "tags": [X], "stop_after_first": True},
    {"type": "triggered_tags", "triggers": ["<a"], "tags": [X], "at_least_one": True, "stop_after_first": True},
    tag("<t>", {"type": "triggered_tags", "triggers": ["<a"], "tags": [X]}, "</t>"),
    {"type": "tags_with_separator", "tags": [X], "separator": "<"},
    {"type": "dispatch", "rules": [["<a>", {"type": "const_string", "value": "x"}]], "excludes": ["<x"]},
    {"type": "sequence", "elements": [{"type": "optional", "content": X}, {"type": "plus", "content": X}]},
    {"type": "repeat", "min": 1, "max": 2, "content": X},
]
PARTS = ["<a>x</a>", "<t>", "</t>", "<", "<a", ">", "x", "</a>", "<x", ""]


@pytest.mark.parametrize("form", TAGS)
def test_both_libraries_say_the_same(form: Any) -> None:
    other = pytest.importorskip("xgrammar", reason="xgrammar is not installed")
    vocabulary = [*(bytes([i]) for i in range(256)), b"</s>"]
    whole = {"type": "structural_tag", "format": form}
    theirs = other.GrammarCompiler(other.TokenizerInfo(vocabulary, stop_token_ids=[256])).compile_structural_tag(whole)
    ours = xgr.GrammarCompiler(xgr.TokenizerInfo(vocabulary, stop_token_ids=[256])).compile_structural_tag(whole)
    texts = {a + b + c + d for a in PARTS for b in PARTS for c in PARTS for d in ("", "</t>", "<a>x</a>")}
    for text in sorted(texts):
        matcher = other.GrammarMatcher(theirs)
        expected = matcher.accept_string(text) and matcher.is_completed()
        assert accepts(ours, text) == expected, text
