"""What `instructions.py` measures: grammars of different kinds, texts of them, and a vocabulary made by rule.

Nothing here is drawn by chance or read from elsewhere, so the work is the same on every machine. A new case is one more
call of `case`; a changed one needs new figures (`instructions.py --update`).
"""

from __future__ import annotations

import itertools
import json
from typing import Any

CASES: list[dict[str, Any]] = []


def case(name: str, *texts: Any, schema: Any = None, options: dict[str, Any] | None = None, **grammar: Any) -> None:
    """Adds a case: texts or, under a schema, values; and the grammar as ``schema``, ``expr``, ``ebnf`` or ``lark``."""
    if schema is not None:
        grammar = {"expr": {"json_schema": {"schema": json.dumps(schema), "options": options or {}}}}
        texts = tuple(json.dumps(value, ensure_ascii=False) for value in texts)
    CASES.append({"name": name, **grammar, "texts": list(texts)})


def record(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


def vocabulary() -> dict[str, Any]:
    """32,000 tokens of the kinds that real tokenizers have, in the form that `TokenizerInfo.load` reads."""
    onsets = ["", *"bcdfghklmnprstvw", "ch", "st", "th", "tr", "pl"]
    vowels = [*"aeiou", "ea", "io", "ou"]
    codas = ["", *"nrstlmd", "ng", "ck"]
    syllables = ["".join(parts) for parts in itertools.product(onsets, vowels, codas)]
    marks = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        '"',
        "'",
        "(",
        ")",
        "=",
        "+",
        "-",
        "*",
        "/",
        "<",
        ">",
        ".",
        ";",
        "_",
        "#",
        "\\",
    ]
    known: dict[bytes, None] = {bytes([byte]): None for byte in range(256)}
    for width in (2, 3):
        known.update(dict.fromkeys("".join(parts).encode() for parts in itertools.product("0123456789", repeat=width)))
    for width in range(2, 33):
        known.update(dict.fromkeys([b" " * width, b"\n" + b" " * width, b"\t" * width]))
    for width in (2, 3):
        known.update(dict.fromkeys("".join(parts).encode() for parts in itertools.product(marks[:12], repeat=width)))
    known.update(dict.fromkeys((mark + " ").encode() for mark in marks))
    known.update(dict.fromkeys((" " + mark).encode() for mark in marks))
    known.update(
        dict.fromkeys(
            chr(c).encode() for block in ((0xA1, 0x250), (0x391, 0x460), (0x4E00, 0x5400)) for c in range(*block)
        )
    )
    for word in syllables:
        known.update(
            dict.fromkeys(form.encode() for form in (word, " " + word, word.capitalize(), ' "' + word, word + '"'))
        )
    for first, second in itertools.product(syllables[1::3], syllables[2::5]):
        if len(known) >= 31_999:
            break
        known[(" " if len(known) % 2 else "").encode() + (first + second).encode()] = None
    tokens = [*known, b"<|end|>"]
    end = len(tokens) - 1
    return {
        "format": "punchcard-tokenizer",
        "version": 1,
        "vocab_size": len(tokens),
        "eos_token_ids": [end],
        "special_token_ids": [end],
        "tokens": [token.decode("latin-1") for token in tokens],
    }


case(
    "object",
    {
        "name": "Marina Castello",
        "age": 41,
        "email": "marina@castello.example",
        "address": {"street": "12 Harbour Lane", "city": "Genova", "zip": "16128"},
        "tags": ["sailor", "captain"],
        "active": True,
    },
    {"name": "Bo", "age": 7},
    schema=record(
        {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "email": {"type": "string"},
            "address": record(
                {
                    "street": {"type": "string"},
                    "city": {"type": "string", "maxLength": 40},
                    "zip": {"type": "string"},
                },
                "street",
                "city",
                additionalProperties=False,
            ),
            "tags": {"type": "array", "items": {"type": "string"}},
            "active": {"type": "boolean"},
        },
        "name",
        "age",
        additionalProperties=False,
    ),
)

SPECIES = [
    "".join(parts)
    for parts in itertools.product(["al", "be", "co", "du", "fi", "ka"], ["ra", "min", "sel", "vo"], ["x", "ter", "da"])
]
case(
    "enum",
    {"species": "fivoter", "rank": 17},
    {"species": "kaselda", "rank": 3},
    schema=record({"species": {"enum": SPECIES}, "rank": {"enum": list(range(1, 60, 2))}}, "species", "rank"),
)

case(
    "pattern",
    {"version": "10.4.22-beta.1", "sku": "AB-2047-xq", "path": "/usr/share/doc/readme.txt"},
    schema=record(
        {
            "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+(-[a-z]+(\.\d+)?)?$"},
            "sku": {"type": "string", "pattern": r"^[A-Z]{2,3}-\d{4}-[a-z]{2}$", "maxLength": 16},
            "path": {"type": "string", "pattern": r"^(?!.*//)(/[\w.-]+)+$"},
        },
        "version",
        "sku",
        "path",
    ),
)

case(
    "format",
    {
        "when": "2024-02-29T08:30:06.25+01:00",
        "id": "123e4567-e89b-12d3-a456-426614174000",
        "host": "services-01.example.com",
        "mail": "maria+lists@mail.example.com",
        "link": "https://www.example.com/a/b?x=1#top",
        "from": "192.168.100.254",
    },
    schema=record(
        {
            name: {"type": "string", "format": format}
            for name, format in [
                ("when", "date-time"),
                ("id", "uuid"),
                ("host", "hostname"),
                ("mail", "email"),
                ("link", "uri"),
                ("from", "ipv4"),
            ]
        },
        *("when", "id", "host", "mail", "link", "from"),
    ),
)

case(
    "number",
    {"latitude": -41.28664, "share": 0.375, "count": 1250, "price": 19.95},
    schema=record(
        {
            "latitude": {"type": "number", "minimum": -90, "maximum": 90},
            "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "count": {"type": "integer", "minimum": 17, "maximum": 123456, "multipleOf": 5},
            "price": {"type": "number", "minimum": 0, "multipleOf": 0.01},
        },
        *("latitude", "share", "count", "price"),
    ),
)

POINT = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}
case(
    "one_of",
    {"shape": {"kind": "circle", "radius": 2.5}, "label": "c"},
    {"shape": {"kind": "polygon", "points": [[0, 1], [2, 3], [4, 0]]}, "label": "p"},
    {"shape": {"kind": "text", "value": "hello", "size": 12}, "label": "t"},
    schema=record(
        {
            "shape": {
                "oneOf": [
                    record({"kind": {"const": "circle"}, "radius": {"type": "number", "minimum": 0}}, "kind", "radius"),
                    record(
                        {"kind": {"const": "polygon"}, "points": {"type": "array", "minItems": 3, "items": POINT}},
                        "kind",
                        "points",
                    ),
                    record(
                        {"kind": {"const": "text"}, "value": {"type": "string"}, "size": {"type": "integer"}},
                        "kind",
                        "value",
                    ),
                ]
            },
            "label": {"type": "string"},
        },
        "shape",
    ),
)


def tree(depth: int) -> dict[str, Any]:
    return {"value": depth, "children": [tree(depth - 1), tree(depth - 2)] if depth > 1 else []}


case(
    "recursion",
    tree(5),
    schema={
        "$ref": "#/$defs/node",
        "$defs": {
            "node": record(
                {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
                "value",
                "children",
                additionalProperties=False,
            )
        },
    },
)

case(
    "additional_properties",
    {"id": "job-7", "x-priority": 3, "environment": {"PATH": "/bin", "HOME": "/root", "LANG": "en"}, "x-retries": 12},
    schema=record(
        {
            "id": {"type": "string"},
            "environment": {
                "type": "object",
                "propertyNames": {"pattern": "^[A-Z_]+$"},
                "additionalProperties": {"type": "string"},
            },
        },
        "id",
        patternProperties={"^x-": {"type": "integer"}},
        additionalProperties=False,
    ),
    options={"property_order": "any"},
)

case(
    "any_value",
    {"anything": [1, 2.5, None, {"nested": "value"}], "more": {"deep": {"deeper": [True, False]}}},
    schema={"type": "object"},
)

case(
    "unique_array",
    {"days": ["monday", "friday", "sunday", "tuesday"], "numbers": [3, 1, 2, 19, 4]},
    schema=record(
        {
            "days": {
                "type": "array",
                "uniqueItems": True,
                "minItems": 2,
                "items": {"enum": [f"{day}day" for day in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")]},
            },
            "numbers": {
                "type": "array",
                "uniqueItems": True,
                "maxItems": 8,
                "items": {"type": "integer", "minimum": 0, "maximum": 20},
            },
        },
        "days",
        "numbers",
    ),
)

case(
    "conditions",
    {"country": "US", "code": "94107", "express": True, "phone": "555-0100"},
    {"country": "NL", "code": "1012 AB"},
    schema=record(
        {
            "country": {"enum": ["US", "NL", "DE"]},
            "code": {"type": "string"},
            "express": {"type": "boolean"},
            "phone": {"type": "string", "pattern": "^[0-9-]+$"},
        },
        "country",
        "code",
        additionalProperties=False,
        dependentRequired={"express": ["phone"]},
        allOf=[
            {
                "if": {"properties": {"country": {"const": country}}},
                "then": {"properties": {"code": {"pattern": pattern}}},
            }
            for country, pattern in [("US", "^[0-9]{5}(-[0-9]{4})?$"), ("NL", "^[0-9]{4} [A-Z]{2}$")]
        ],
    ),
)


def tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    frame = [
        {"text": f'{{"name": "{name}", "arguments": '},
        {"json_schema": {"schema": json.dumps(arguments)}},
        {"text": "}</tool_call>"},
    ]
    return {"named": {"kind": "tag", "name": name, "body": {"sequence": frame}}}


SEARCH = record(
    {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 50}},
    "query",
    additionalProperties=False,
)
LIGHT = record(
    {"room": {"enum": ["kitchen", "bedroom", "hall"]}, "on": {"type": "boolean"}},
    "room",
    "on",
    additionalProperties=False,
)
# What a structural tag with two triggered tools becomes.
TO_TRIGGER = {"shortest": {"sequence": [{"text_without": []}, {"text": "<tool_call>"}]}}
CALL = {"sequence": [TO_TRIGGER, {"choice": [tool("search", SEARCH), tool("set_light", LIGHT)]}]}
case(
    "tools",
    'I will look that up. <tool_call>{"name": "search", "arguments": {"query": "weather in Delft", "limit": 5}}'
    '</tool_call> The light: <tool_call>{"name": "set_light", "arguments": {"room": "hall", "on": true}}</tool_call>',
    expr={"sequence": [{"repeat": {"body": CALL, "min": 0}}, {"text_without": ["<tool_call>"]}]},
)

case(
    "ebnf",
    "1 + 2 * (x3 - 4.5) ^ -2 / f(y, 7)",
    ebnf="""
root    ::= sum
sum     ::= sum " " [-+] " " product | product
product ::= product " " [*/] " " power | power
power   ::= unary (" ^ " power)?
unary   ::= "-" unary | atom
atom    ::= number | name | name "(" (sum (", " sum)*)? ")" | "(" sum ")"
number  ::= [0-9]+ ("." [0-9]+)?
name    ::= [a-z] [a-z0-9_]*
""",
)

case(
    "lark",
    "if total > 10 {\n  let price = total * 2;\n  print(price);\n} else {\n  return 0;\n}",
    lark=r"""
start: statement+
statement: "if" expression block ["else" block]
         | "let" NAME "=" expression ";"
         | "return" expression ";"
         | expression ";"
block: "{" statement* "}"
?expression: expression ("<" | ">" | "==") sum | sum
?sum: sum ("+" | "-") product | product
?product: product ("*" | "/") atom | atom
?atom: NUMBER | NAME | NAME "(" [expression ("," expression)*] ")" | "(" expression ")"
NAME: /[a-z_][a-z0-9_]*/
NUMBER: /[0-9]+/
%ignore /[ \t\n]+/
""",
)

case(
    "regex",
    "2024-03-01 12:00:05 ERROR [db.pool] connection 17 lost: retry in 250ms",
    expr={
        "regex": {
            "pattern": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (DEBUG|INFO|WARN|ERROR) \[[a-z.]{1,40}\] [^\n]{1,200}",
        }
    },
)
