"""Schemas of any size, in several shapes, each with a document; and the other inputs that growth is measured on."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

# A job's pieces are texts with a label, or none; what is measured of a piece is kept under its label.
Piece = tuple[str | None, str]

TEXT = """
account address agent amount area author balance batch block branch budget buffer cache channel city class client
code color column contact count country currency customer date delay depth device email entry event factor field
file filter flag folder format group height host image index input item kernel label layer level limit link list
locale margin market member message method metric mode module name node note number offset option order owner
page parent path period phone point policy price priority product profile query queue range rate reason region
report result role route rule scale scope score section sender series service session shape shard size source
stage state status stock store street style subject table target task team term text title token topic total type
unit user value vendor version view volume weight width window worker zone
"""
WORDS = TEXT.split()
KINDS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "integer"},
    {"type": "boolean"},
    {"type": "number", "minimum": 0},
    {"type": "string", "enum": ["low", "medium", "high"]},
    {"type": "string", "maxLength": 64},
]
VALUES: list[Any] = ["some text", 42, True, 0.5, "medium", "at most 64"]


def names(count: int, seed: int = 0) -> list[str]:
    """Names as in configurations, such as `stock_limit_region`, all different."""
    rng, found = random.Random(seed), dict[str, None]()
    while len(found) < count:
        found["_".join(rng.choices(WORDS, k=rng.choice([1, 2, 2, 3, 3])))] = None
    return list(found)


def properties(count: int) -> tuple[Any, Any]:
    """One object with many properties, none required; the document has sixteen of them."""
    kinds = [i % len(KINDS) for i in range(count)]
    members = names(count)
    schema = {"type": "object", "properties": {n: KINDS[k] for n, k in zip(members, kinds, strict=True)}}
    chosen = range(0, count, max(1, count // 16))
    return schema, {members[i]: VALUES[kinds[i]] for i in chosen}


def nested(count: int) -> tuple[Any, Any]:
    """Objects in objects, chains of forty; the document goes to the end of the first one."""
    members, depth = names(64), 40
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    document: Any = {}
    for chain in range(max(1, count // depth)):
        inner: dict[str, Any] = {"type": "string"}
        value: Any = "the end"
        for level in range(depth):
            name = members[(chain + level) % 64]
            inner = {"type": "object", "properties": {name: inner, f"{name}_{chain}": {"type": "integer"}}}
            value = {name: value}
        schema["properties"][f"chain_{chain}"] = inner
        document = document or {"chain_0": value}
    return schema, document


def enum(count: int) -> tuple[Any, Any]:
    """An array of one of many texts; the document has twenty of them."""
    entries = names(count, seed=1)
    rng = random.Random(2)
    return {"type": "array", "items": {"enum": entries}}, [rng.choice(entries) for _ in range(20)]


def definitions(count: int) -> tuple[Any, Any]:
    """Many definitions, each of which refers to two others; the document goes from the first to the last."""
    members = names(64)
    parts = {}
    for i in range(count):
        inner: dict[str, Any] = {members[(i + k) % 64]: KINDS[(i + k) % len(KINDS)] for k in range(4)}
        for side, child in (("left", 2 * i + 1), ("right", 2 * i + 2)):
            if child < count:
                inner[side] = {"$ref": f"#/$defs/part_{child}"}
        parts[f"part_{i}"] = {"type": "object", "properties": inner}
    document: Any = {}
    node = count - 1
    while node:
        parent = (node - 1) // 2
        document = {members[(parent + 0) % 64]: VALUES[parent % len(KINDS)], "left" if node % 2 else "right": document}
        node = parent
    return {"$ref": "#/$defs/part_0", "$defs": parts}, document


SHAPES = {
    "many properties": properties,
    "deep nesting": nested,
    "one large enum": enum,
    "many $defs": definitions,
}


def sized(shape: str, size: int) -> tuple[str, str]:
    """A schema of about so many bytes, and a document, as JSON."""
    make, count = SHAPES[shape], 64
    for _ in range(3):  # bytes per part hardly change with the number of parts
        count = max(1, round(count * size / len(json.dumps(make(count)[0]))))
    schema, document = make(count)
    return json.dumps(schema), json.dumps(document)


ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "customer": {"type": "string", "minLength": 1},
        "email": {"type": "string", "format": "email"},
        "status": {"enum": ["new", "paid", "shipped", "returned"]},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "sku": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
                    "quantity": {"type": "integer", "minimum": 1, "maximum": 100},
                    "note": {"type": "string", "maxLength": 200},
                },
                "required": ["sku", "quantity"],
                "additionalProperties": False,
            },
        },
        "paid": {"type": "boolean"},
    },
    "required": ["id", "customer", "status", "items"],
    "additionalProperties": False,
}


def orders(seed: int = 0) -> Iterator[dict[str, Any]]:
    """Documents of `ORDER` without end."""
    rng = random.Random(seed)
    while True:
        yield {
            "id": rng.randrange(1, 10**6),
            "customer": " ".join(rng.choices(WORDS, k=3)).title(),
            "email": f"{rng.choice(WORDS)}@{rng.choice(WORDS)}.com",
            "status": rng.choice(["new", "paid", "shipped", "returned"]),
            "items": [
                {
                    "sku": "".join(rng.choices("ABCDEFGHJKLMNPRSTUVWXYZ", k=3)) + f"-{rng.randrange(10**4):04}",
                    "quantity": rng.randrange(1, 101),
                    "note": " ".join(rng.choices(WORDS, k=rng.randrange(2, 12))),
                }
                for _ in range(rng.randrange(1, 4))
            ],
            "paid": rng.random() < 0.5,
        }


def recursive(depth: int) -> tuple[str, list[Piece]]:
    """Objects within objects by reference; what is measured is the innermost one."""
    schema = {"type": "object", "properties": {"value": ORDER, "inner": {"$ref": "#"}}, "additionalProperties": False}
    order = json.dumps({"value": next(orders())})
    return json.dumps(schema), [(None, '{"inner": ' * depth), (str(depth), order), (None, "}" * depth)]


def tools(count: int) -> tuple[str, list[Piece]]:
    """Free text with calls of one of so many tools, as a structural tag; a call of the one in the middle."""
    members = names(max(64, count), seed=3)
    tags = [
        {
            "type": "tag",
            "begin": f'<tool_call>{{"name": "{name}", "arguments": ',
            "content": {
                "type": "json_schema",
                "json_schema": {
                    "type": "object",
                    "properties": {members[(i + k) % 64]: KINDS[k] for k in range(4)},
                    "additionalProperties": False,
                },
            },
            "end": "}</tool_call>",
        }
        for i, name in enumerate(members[:count])
    ]
    tag = {
        "type": "structural_tag",
        "format": {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags},
    }
    i = count // 2
    arguments = {members[(i + k) % 64]: VALUES[k] for k in range(4)}
    text = "Let me see what the right tool for this is. I shall call it now, with what you have told me so far. "
    call = f'<tool_call>{{"name": "{members[i]}", "arguments": {json.dumps(arguments)}}}</tool_call>'
    return json.dumps(tag), [("text", text), ("call", call)]
