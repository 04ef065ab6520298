"""How answers end: complete by the model's choice, cut short by a budget, or cut off, and said so on all ways."""

from __future__ import annotations

import datetime
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest
from fake_chat import FakeChat
from fake_model import END, PIECES, FakeModel, speaker

import punchcard
from punchcard import Agent, Extractor, Grammar, GrammarCompiler, GrammarMatcher, batch, extract, tool
from punchcard.answering import StepChat
from punchcard.chat import Call, Reply, Request, Sampling
from punchcard.ending import Budgeted
from punchcard.errors import BudgetError, BudgetWarning, InputTypeError, PunchcardError
from punchcard.generation import Decoder

SAID = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}


def ended(grammar: Grammar, says: str, tokens: int, **options: Any) -> Reply:
    request = Request([{"role": "user", "content": "Go"}], answer=grammar)
    return StepChat(FakeModel(speaker(says))).respond(request, Sampling(max_new_tokens=tokens, **options))


def compiled(grammar: Grammar) -> punchcard.CompiledGrammar:
    return GrammarCompiler(FakeModel(speaker()).tokenizer_info).compile(grammar)


JSON = Grammar.from_json_schema


@pytest.mark.parametrize(
    ("grammar", "says", "tokens", "text", "finish"),
    [
        # What the grammar accepts is not complete where the model would go on.
        (JSON({"type": "integer"}), "522250", 4, "5222", "length"),
        (JSON({"type": "number"}), "3.14159", 4, "3.14", "length"),
        (Grammar.from_regex(r"\d+"), "522250", 4, "5222", "length"),
        (Grammar.from_regex(r"[a-z ]*"), "the quick brown fox", 7, "the qui", "length"),
        (Grammar.from_ebnf('root ::= item ("," item)*\nitem ::= [0-9]'), "1,2,3", 3, "1,2", "length"),
        # The model ends it with its last token.
        (JSON({"type": "integer"}), "5222", 4, "5222", "stop"),
        (Grammar.from_regex(r"\d+"), "52", 2, "52", "stop"),
        # Nothing else could follow.
        (Grammar.from_regex(r"\d{4}"), "522250", 4, "5222", "stop"),
        (JSON({"enum": ["yes", "no"]}), '"yes"', 5, '"yes"', "stop"),
        # There is room: the budget changes nothing.
        (JSON({"type": "integer"}), "522250", 60, "522250", "stop"),
        (JSON(SAID, whitespace="none"), '{"said":"hello"}', 16, '{"said":"hello"}', "stop"),
        # The budget completes what the model would have gone on with.
        (JSON(SAID, whitespace="none"), '{"said":"hello"}', 13, '{"said":"he"}', "budget"),
        (JSON({"type": "array", "items": {"type": "integer"}}, whitespace="none"), "[12,34]", 4, "[12]", "budget"),
        (JSON({"type": "string"}), '"a long text"', 5, '"a l"', "budget"),
        (Grammar.from_ebnf('root ::= "(" root ")" | "x"'), "((((x))))", 5, "((x))", "budget"),
    ],
)
def test_how_an_answer_ends(grammar: Grammar, says: str, tokens: int, text: str, finish: str) -> None:
    reply = ended(grammar, says, tokens)
    assert (reply.text, reply.finish) == (text, finish)
    # Whatever its end, an answer of a known length is one of the grammar.
    matcher = GrammarMatcher(compiled(grammar))
    assert matcher.accept_string(reply.text) and matcher.is_accepting()


def test_an_answer_with_room_is_the_same_with_and_without_a_budget() -> None:
    def noise(tokens: list[int]) -> Any:
        return np.random.default_rng(tokens).normal(size=len(PIECES)).astype(np.float32) + 4 * np.eye(len(PIECES))[34]

    grammar = compiled(JSON(SAID))
    plain, budgeted = (
        Decoder(FakeModel(noise), [0], max_new_tokens=900).constrained(matcher)
        for matcher in (GrammarMatcher(grammar), Budgeted(grammar, 900))
    )
    assert plain.tokens == budgeted.tokens and budgeted.ended == "stop"


def test_a_matcher_with_a_budget_of_its_own_says_that_it_was_used_up() -> None:
    grammar = compiled(JSON({"type": "integer"}))
    matcher = GrammarMatcher(grammar, token_budget=4)
    stretch = Decoder(FakeModel(lambda tokens: np.eye(len(PIECES), dtype=np.float32)[ord("7")]), [0]).constrained(
        matcher
    )
    assert (stretch.text, stretch.ended) == ("7777", "budget")


@pytest.mark.parametrize(
    ("pattern", "text", "complete"),
    [
        ("[0-9]+", "1000", False),
        ("[0-9]{4}", "1000", True),
        ("[0-9]{5}", "1000", False),
        ("a?", "", False),
        ("", "", True),
    ],
)
def test_a_loop_of_ones_own_can_ask_whether_a_text_is_complete(pattern: str, text: str, complete: bool) -> None:
    grammar = compiled(Grammar.from_regex(pattern))
    matcher = GrammarMatcher(grammar)
    assert not text or matcher.accept_string(text)
    assert punchcard.is_complete(matcher, grammar.vocab_size) is complete
    if matcher.is_accepting():
        assert matcher.accept_token(END) and punchcard.is_complete(matcher, grammar.vocab_size)


# Extraction


@pytest.mark.parametrize("schema", [{"type": "integer"}, {"type": "number"}, {"type": "integer", "minimum": 1}])
def test_an_extraction_that_could_go_on_is_an_error(schema: Any) -> None:
    with pytest.raises(PunchcardError, match="cut off after 4 tokens") as raised:
        extract("The population of Lyon is 522250.", schema, FakeModel(speaker("522250")), max_new_tokens=4)
    assert raised.value.fields["text"] == "5222"


def test_an_extraction_is_complete_within_its_tokens_and_says_that_it_was_cut_short() -> None:
    with pytest.warns(BudgetWarning, match="cut short to fit 13 tokens") as caught:
        assert extract("x", SAID, FakeModel(speaker('{"said":"hello"}')), max_new_tokens=13) == {"said": "he"}
    assert caught[0].filename == __file__
    with pytest.warns(BudgetWarning) as caught:
        assert Extractor(SAID, FakeModel(speaker('{"said":"hello"}')), max_new_tokens=13).extract("x")
    assert caught[0].filename == __file__
    written = Extractor(SAID, FakeModel(speaker('{"said":"hello"}')), max_new_tokens=13).write("x")
    assert (written, written.finish) == ('{"said":"he"}', "budget")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert extract("x", SAID, FakeModel(speaker('{"said":"hello"}'))) == {"said": "hello"}


def test_an_extraction_for_which_there_are_too_few_tokens_says_how_many_it_takes() -> None:
    with pytest.raises(BudgetError, match="takes 11 tokens; there is room for 5") as raised:
        extract("x", SAID, FakeModel(speaker('{"said":"hello"}')), max_new_tokens=5)
    assert raised.value.fields["minimum"] == 11


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (["a", "b"], "punchcard.batch.extract"),
        (("a",), "punchcard.batch.extract"),
        (iter(["a"]), "punchcard.batch.extract"),
        (b"a", "decode"),
        ({"text": "a"}, "json.dumps"),
        (None, "Give a str"),
        (Path("a.txt"), "Give a str"),
    ],
)
def test_what_is_no_text_is_a_type_error_that_names_the_remedy(text: Any, remedy: str) -> None:
    model = FakeModel(speaker("1"))
    for ask in (lambda: extract(text, SAID, model), lambda: Extractor(SAID, model).extract(text)):
        with pytest.raises(TypeError, match=remedy) as raised:
            ask()
        assert isinstance(raised.value, InputTypeError) and isinstance(raised.value, PunchcardError)
    with pytest.raises(InputTypeError):
        Agent(model=model).run(text)


# Batches


def test_a_row_says_that_its_answer_was_cut_short(tmp_path: Path) -> None:
    model = FakeModel(speaker('{"said":"hello"}'))
    rows = list(batch.extract(["a", "b"], SAID, model=model, max_new_tokens=13, out=tmp_path / "out.jsonl"))
    assert rows[0] == {"index": 0, "output": {"said": "he"}, "finish": "budget"}
    rows = list(batch.extract(["a"], SAID, model=model))
    assert rows == [{"index": 0, "output": {"said": "hello"}}]
    (row,) = batch.extract(["a"], {"type": "integer"}, model=FakeModel(speaker("522250")), max_new_tokens=4)
    assert "cut off" in row["error"]["message"] and row["error"]["text"] == "5222"


# Agents


@tool
def pay(amount: int) -> int:
    """Pay."""
    paid.append(amount)
    return amount


paid: list[int] = []


def test_a_call_that_was_cut_short_is_not_executed() -> None:
    paid.clear()
    text = '<tool_call>\n{"name": "pay", "arguments": {"amount": 123456}}\n</tool_call>'
    least = len(text) - len("<tool_call>") + 1
    agent = Agent([pay], FakeModel(speaker(text)))
    result = agent.run("Pay", max_new_tokens=least - 3)
    assert result["finish"] == "budget" and not result["success"] and "cut off by its budget" in result["error"]
    assert result["function_calls"] == [{"name": "pay", "arguments": {"amount": 123}}] and paid == []
    assert agent.transcript.runs[0].turns[0].finish == "budget"
    agent.reset()
    result = agent.run("Pay", max_steps=1, max_new_tokens=least)
    assert (result["finish"], result["success"], paid) == ("calls", True, [123456])


def test_words_that_are_cut_off_are_told_so() -> None:
    for tools in ([], [pay]):
        result = Agent(tools, FakeModel(speaker("It is a long story."))).run("Tell", max_new_tokens=5)
        assert (result["text"], result["finish"]) == ("It is", "length") and "cut off after 5" in result["error"]
    result = Agent([pay], FakeModel(speaker("It is"))).run("Tell", max_new_tokens=5)
    assert (result["text"], result["finish"], result["success"]) == ("It is", "stop", True)


def test_a_runtime_elsewhere_may_say_budget_too() -> None:
    reply = Reply(calls=[Call("pay", {"amount": 1})], finish="budget")
    paid.clear()
    result = Agent([pay], FakeChat(reply)).run("Pay")
    assert result["finish"] == "budget" and paid == []


def test_a_result_is_json_whatever_tools_return() -> None:
    class Paid(pydantic.BaseModel):
        when: datetime.date

    returned: list[Any] = [
        Paid(when=datetime.date(2024, 5, 6)),
        {datetime.date(2024, 5, 6)},
        b"x",
        object(),
        float("inf"),
    ]
    for value in returned:

        @tool
        def ask() -> Any:
            """Ask."""
            return value  # noqa: B023

        seen: list[Any] = []
        hook = lambda call, outcome, seen=seen: seen.append(outcome.result)  # noqa: E731
        agent = Agent([ask], FakeChat(Call("ask"), "Done."), after_call=hook)
        result = agent.run("Ask")
        assert json.loads(json.dumps(result))["text"] == "Done." and seen == [value]
        json.dumps(agent.transcript.to_dict())
