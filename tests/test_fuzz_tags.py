"""Random structural tags in all their formats, sound and not: each is compiled and followed, or refused with a path."""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from punchcard import (
    GrammarCompiler,
    GrammarMatcher,
    LimitError,
    Limits,
    TokenizerInfo,
    allocate_token_bitmask,
    structural_tag,
)
from punchcard.errors import PunchcardError
from punchcard.tags import StructuralTag

EXAMPLES = int(os.environ.get("PUNCHCARD_EXAMPLES", "0"))
PROFILE = settings(
    max_examples=EXAMPLES or 120,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
#: Every byte is a token; then some of several bytes, two special tokens and the end.
LONG = [b"<a", b"<a>", b"</a>", b"ab", b">{", b'"}', b'{"', b"\n\n", b"\xc3\xa9", b"\xf0\x9f"]
SPECIAL = [b"<|call|>", b"<|return|>"]
TOKENS = [*(bytes([i]) for i in range(256)), *LONG, *SPECIAL, b"</s>"]
CALL, RETURN, END = (len(TOKENS) - 3 + i for i in range(3))
INFO = TokenizerInfo.from_vocab(TOKENS, eos_token_ids=[END], special_token_ids=[CALL, RETURN])
LIMITS = Limits(
    max_search=2_000,
    max_alternatives=128,
    max_automaton_states=20_000,
    max_automaton_work=100_000,
    max_states=20_000,
    max_readings=500,
)
COMPILER = GrammarCompiler(INFO, limits=LIMITS, cache_enabled=False)
#: Steps of a walk, and tokens that are tried at each.
STEPS = 8

texts = st.sampled_from(["a", "b", "<a", "<a>", "<a><b>", "</a>", "<", ">", "é", "\n", "", "ab"])
tokens = st.sampled_from([CALL, RETURN, "<|call|>", "<|return|>", "<|none|>", 97, 10**6, END])
counts = st.integers(-1, 3) | st.sampled_from([50, 70_000, 2**31, 2**40])
schemas = st.sampled_from(
    [
        True,
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"enum": ["x", 1, None]}}, "additionalProperties": False},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}},
        {"type": "string", "maxLength": 2},
        {"type": "integer", "minimum": 3, "maximum": 1},
        {"type": "what"},
        None,
        "{",
    ]
)
grammars = st.sampled_from(
    ['root ::= "a" root | "b"', 'root ::= root "a" | "b"', "start: A\nA: /a+/", "root ::= <|call|>", "root ::=", "("]
)
options = st.sampled_from([{}, {"profile": "spec"}, {"whitespace": "none"}, {"no": 1}, {"limits": 1}])
styles = st.sampled_from(
    ["json", "qwen_xml", "minimax_xml", "deepseek_xml", "deepseek_v4_1_xml", "glm_xml", "kimi_k3_xml", "other"]
)


def fields(kind: str, optional: dict[str, st.SearchStrategy[Any]] | None = None, **needed: Any) -> Any:
    return st.fixed_dictionaries({"type": st.just(kind), **needed}, optional=optional or {})


flags = st.booleans()
leaves = st.one_of(
    fields("const_string", value=texts),
    fields("any_text", {"excludes": st.lists(texts, max_size=2), "max_tokens": counts, "max_chars": counts}),
    fields("any_tokens", {"exclude_tokens": st.lists(tokens, max_size=2), "max_tokens": counts}),
    fields("token", token=tokens),
    fields("exclude_token", {"exclude_tokens": st.lists(tokens, max_size=2)}),
    fields("regex", pattern=st.sampled_from(["a+b?", "[^<]*", "(?=a).", "\\1", "(", ""])),
    fields("grammar", {"syntax": st.sampled_from(["ebnf", "lark"])}, grammar=grammars),
    fields("lark", grammar=grammars),
    fields(
        "json_schema",
        {
            "style": styles,
            "newlines": st.sampled_from(["optional", "required", "none"]),
            "any_order": flags,
            "max_whitespace_cnt": counts,
            "options": options,
            "excludes": st.lists(texts, max_size=2),
        },
        json_schema=schemas,
    ),
    fields("qwen_xml_parameter", json_schema=schemas),
)


def combined(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    token = st.fixed_dictionaries({"type": st.just("token"), "token": tokens})
    begins, ends = texts | token, texts | token | st.lists(texts, max_size=2)
    tag = st.fixed_dictionaries({"begin": begins, "content": items, "end": ends}, optional={"type": st.just("tag")})
    once = {"at_least_one": flags, "stop_after_first": flags}
    pairs = st.lists(st.tuples(texts, items).map(list), max_size=3)
    return st.one_of(
        fields("sequence", elements=st.lists(items, max_size=3)),
        fields("or", elements=st.lists(items, max_size=3)),
        fields("optional", content=items),
        fields("star", content=items),
        fields("plus", content=items),
        fields("repeat", min=counts, max=counts, content=items),
        fields("tag", begin=begins, content=items, end=ends),
        fields("tags_with_separator", once, tags=st.lists(tag, max_size=3), separator=texts),
        fields(
            "triggered_tags",
            {**once, "excludes": st.lists(texts, max_size=1)},
            triggers=st.lists(texts, max_size=2),
            tags=st.lists(tag, max_size=3),
        ),
        # Those that fire, mostly.
        fields(
            "triggered_tags",
            once,
            triggers=st.just(["<a"]),
            tags=st.lists(
                st.fixed_dictionaries({"begin": st.just("<a>"), "content": items, "end": st.just("</a>")}),
                min_size=1,
                max_size=2,
            ),
        ),
        fields("dispatch", {"loop": flags, "excludes": st.lists(texts, max_size=1)}, rules=pairs),
        fields(
            "token_triggered_tags",
            {**once, "exclude_tokens": st.lists(tokens, max_size=1)},
            trigger_tokens=st.lists(tokens, max_size=2),
            tags=st.lists(tag, max_size=2),
        ),
        fields("token_dispatch", {"loop": flags}, rules=st.lists(st.tuples(tokens, items).map(list), max_size=2)),
    )


formats = st.recursive(leaves, combined, max_leaves=6)
#: What stands where something else is due.
junk = st.sampled_from([None, 1, "a", [], {}, {"type": "any_text"}, {"type": "no"}, 2**70, True])


@st.composite
def broken(draw: st.DrawFn) -> Any:
    """A tag in which something is missing, or is another thing."""
    tag = draw(formats)
    at = tag
    while True:
        inside = [key for key, value in (at.items() if isinstance(at, dict) else enumerate(at))]
        if not inside:
            return tag
        key = draw(st.sampled_from(inside))
        if isinstance(at[key], (dict, list)) and draw(st.integers(0, 2)):
            at = at[key]
            continue
        if isinstance(at, dict) and draw(st.booleans()):
            del at[key]
        else:
            at[key] = draw(junk)
        return tag


def followed(data: st.DataObject, tag: StructuralTag) -> None:
    """Masks hold what can be taken, and there is always a way on."""
    try:
        matcher = GrammarMatcher(COMPILER.compile_structural_tag(tag))
    except PunchcardError as error:
        assert str(error).strip(), "an error without a message"
        return
    bitmask = allocate_token_bitmask(1, INFO.vocab_size)
    try:
        for _ in range(STEPS):
            matcher.fill_next_token_bitmask(bitmask)
            allowed = [i for i in range(len(TOKENS)) if int(bitmask[0, i // 32]) >> (i % 32) & 1]
            assert allowed, "a dead end"
            for token in [*range(256, len(TOKENS)), *data.draw(st.lists(st.integers(0, 255), max_size=3))]:
                assert matcher.fork().accept_token(token) == (token in allowed), TOKENS[token]
            completion = matcher.find_completion_tokens()
            if completion is not None:
                rest = matcher.fork()
                assert all(rest.accept_token(token) for token in completion) and rest.is_accepting()
            ways = [token for token in allowed if token != END]
            if not ways:
                return
            assert matcher.accept_token(data.draw(st.sampled_from(ways)))
    except LimitError as error:
        assert error.hint


def read(value: Any) -> StructuralTag | None:
    try:
        return structural_tag(value)
    except PunchcardError as error:
        assert str(error).strip() and isinstance(error.fields["path"], str)
        return None


@PROFILE
@given(formats, st.data())
def test_random_tags(value: Any, data: st.DataObject) -> None:
    tag = read(value)
    if tag is not None:
        again = structural_tag(json.loads(json.dumps(tag.model_dump(mode="json"))))
        assert again == tag, "the JSON form reads back as another tag"
        followed(data, tag)


@PROFILE
@given(broken(), st.data())
def test_broken_tags(value: Any, data: st.DataObject) -> None:
    tag = read(value)
    if tag is not None:
        followed(data, tag)


@PROFILE
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "structures": st.lists(
                st.fixed_dictionaries({"begin": texts, "schema": schemas, "end": texts}), max_size=2
            ),
            "triggers": st.lists(texts, max_size=2),
            "type": st.sampled_from(["structural_tag", "no"]),
            "more": st.none(),
        },
    ),
    st.data(),
)
def test_the_older_form(value: Any, data: st.DataObject) -> None:
    tag = read(value)
    if tag is not None:
        followed(data, tag)


@PROFILE
@given(
    st.text(max_size=20)
    | junk
    | formats.map(json.dumps).flatmap(lambda text: st.integers(0, len(text)).map(lambda at: text[:at]))
)
def test_anything_as_a_tag(value: Any) -> None:
    read(value)
