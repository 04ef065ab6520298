"""The truth about support: reports, `punchcard check`, limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from test_json_schema import COMPILER, admits

from punchcard import Grammar, GrammarCompiler, GrammarMatcher, LimitError, Limits, PunchcardError
from punchcard.cli import main
from punchcard.errors import UnsupportedSchemaError

SCHEMA = {
    "title": "An order",
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 3, "multipleOf": 7},
        "tags": {"type": "array", "items": {"enum": ["x", "y"]}, "uniqueItems": True, "minItems": 2},
        "parent": {"$ref": "#/$defs/node"},
        "day": {"type": "string", "format": "date"},
        "color": {"format": "color"},
    },
    "required": ["id", "tags", "parent", "day"],
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next2"]}},
}
NESTED: dict[str, object] = {"type": "integer"}
for _ in range(10):
    NESTED = {"type": "array", "items": NESTED, "minItems": 1}
BACK_REFERENCE = {"type": "object", "properties": {"twice": {"type": "string", "pattern": r"^(a+)\1$"}}}


def test_a_report_names_every_keyword() -> None:
    report = Grammar.from_json_schema(SCHEMA).report
    became = {entry.pointer: (entry.status, entry.became) for entry in report.keywords}
    assert became["/title"][0] == "annotation"
    assert became["/properties/color/format"][0] == "annotation"
    assert became["/properties/tags/items/enum"] == ("enforced", "a set of 2 values")
    assert became["/properties/parent/$ref"][0] == became["/$defs/node/properties/next/$ref"][0] == "enforced"
    assert list(became)[:3] == ["/title", "/type", "/properties"]
    assert report.draft == "2020-12" and report.not_enforced == ()
    assert report.formulas > 0 and report.steps > 0 and report.language_states > 0 and report.alternatives == 1


def test_the_example_is_a_document_of_the_grammar() -> None:
    report = Grammar.from_json_schema(SCHEMA).report
    assert report.example is not None
    Draft202012Validator(SCHEMA).validate(json.loads(report.example))
    assert admits(SCHEMA, report.example)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": "array", "minItems": 3, "items": {"type": "string", "minLength": 2}},
        {"type": "array", "minItems": 3, "uniqueItems": True},
        {"type": "array", "contains": {"const": 5}, "minContains": 2, "prefixItems": [True, {"type": "null"}]},
        {"type": "object", "minProperties": 4, "properties": {"b": {"const": 1}}, "propertyNames": {"maxLength": 2}},
        {
            "type": "object",
            "required": ["z", "a"],
            "properties": {"a": {"const": 'quote"\\\n'}, "z": {"enum": [{"k": []}]}},
        },
        {
            "$ref": "#/$defs/t",
            "$defs": {
                "t": {
                    "type": "object",
                    "required": ["t"],
                    "properties": {
                        "t": {
                            "anyOf": [
                                {"$ref": "#/$defs/t"},
                                {"type": "array", "items": {"$ref": "#/$defs/t"}, "maxItems": 1},
                            ]
                        }
                    },
                }
            },
        },
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "minProperties": 2},
        {"type": "number", "exclusiveMinimum": 0.25, "not": {"multipleOf": 0.5}},
    ],
)
@pytest.mark.parametrize("profile", ["generate", "spec"])
def test_examples(schema: object, profile: str) -> None:
    example = Grammar.from_json_schema(schema, profile=profile).report.example  # type: ignore[arg-type]
    assert example is not None and admits(schema, example, profile=profile)
    Draft202012Validator(schema).validate(json.loads(example))  # type: ignore[arg-type]


def test_what_cannot_be_enforced_is_an_error_or_an_entry() -> None:
    with pytest.raises(UnsupportedSchemaError) as caught:
        COMPILER.compile_json_schema(BACK_REFERENCE)
    assert caught.value.pointer == "/properties/twice/pattern" and caught.value.keyword == "pattern"
    grammar = Grammar.from_json_schema(BACK_REFERENCE, on_unsupported="report")
    assert [entry.pointer for entry in grammar.report.not_enforced] == ["/properties/twice/pattern"]
    matcher = GrammarMatcher(COMPILER.compile(grammar))
    assert matcher.accept_string('{"twice": "b"}') and matcher.is_accepting()
    assert not GrammarMatcher(COMPILER.compile(grammar)).accept_string('{"twice": 1')


def test_check_prints_a_table_or_json(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(SCHEMA))
    bad.write_text(json.dumps(BACK_REFERENCE))
    run = CliRunner().invoke
    table = run(main, ["check", str(good)])
    assert table.exit_code == 0 and "/properties/day/format" in table.output and "everything" in table.output
    report = json.loads(run(main, ["check", str(good), "--json"]).output)
    assert report["not_enforced"] == [] and report["keywords"][0]["keyword"] == "title"
    refused = run(main, ["check", str(bad)])
    assert refused.exit_code == 2 and "/properties/twice/pattern" in refused.stderr
    allowed = json.loads(run(main, ["check", str(bad), "--json", "--allow-unsupported"]).output)
    assert allowed["not_enforced"] == ["/properties/twice/pattern"]


@pytest.mark.parametrize(
    ("limits", "schema"),
    [
        ({"max_bytes": 10}, {"type": "string"}),
        ({"max_depth": 3}, {"items": {"items": {"items": {"items": True}}}}),
        ({"max_automaton_states": 50}, {"type": "string", "pattern": "(a|b)*a(a|b){12}$", "maxLength": 40}),
        ({"max_search": 5}, NESTED),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_limits_are_named(limits: dict[str, int], schema: object) -> None:
    with pytest.raises(LimitError) as caught:
        GrammarMatcher(COMPILER.compile_json_schema(schema, limits=Limits(**limits))).accept_string('"' + "ab" * 20)
    assert [caught.value.fields["limit"]] == list(limits)
    COMPILER.compile_json_schema(schema)


def test_limits_of_what_texts_build() -> None:
    compiler = GrammarCompiler(COMPILER.tokenizer_info, limits=Limits(max_states=100))
    matcher = GrammarMatcher(compiler.compile_json_schema({}))
    with pytest.raises(LimitError) as caught:
        matcher.accept_string("[" * 200)
    assert caught.value.fields["limit"] == "max_states"


def test_unknown_options_are_refused() -> None:
    for options in ({"on_unsupported": "ignore"}, {"profile": "fast"}, {"draft": "5000"}):
        with pytest.raises(PunchcardError):
            COMPILER.compile_json_schema({}, **options)
