"""Compares the formats with other validators, on random texts and on small changes of good ones.

    cargo build --release -p punchcard-automata --examples
    pip install 'jsonschema[format]' jsonschema-rs rfc3986-validator rfc3987-syntax email-validator idna
    python tools/check_formats.py TARGET/release/examples [COUNT [SEED [FORMAT...]]]

Prints, for each format and validator, how many texts they judge differently, and some of them. A validator is no
authority: `docs/formats.md` says where the RFCs are on our side.
"""

from __future__ import annotations

import ipaddress
import json
import random
import subprocess
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import email_validator
import idna
import jsonpointer
import jsonschema_rs
from fqdn import FQDN
from isoduration import parse_duration
from rfc3339_validator import validate_rfc3339
from rfc3986_validator import validate_rfc3986
from rfc3987_syntax import is_valid_syntax
from uri_template import validate as validate_template

Check = Callable[[str], object]


def passes(check: Check, text: str) -> bool:
    """Whether a validator is content: neither an exception nor a false value (None counts as content)."""
    try:
        return check(text) is not False
    except Exception:
        return False


def jsonschema_rs_check(name: str) -> Check:
    return jsonschema_rs.Draft202012Validator({"format": name}, validate_formats=True).is_valid


def strict_ip(kind: Callable[[str], object]) -> Check:
    return lambda text: "%" not in text and kind(text) is not None


def mail(text: str) -> object:
    return email_validator.validate_email(
        text, check_deliverability=False, allow_quoted_local=True, allow_domain_literal=True, test_environment=True
    )


OTHERS: dict[str, dict[str, Check]] = {
    "date-time": {"rfc3339-validator": validate_rfc3339},
    "duration": {"isoduration": parse_duration},
    "email": {"email-validator": mail},
    "hostname": {"fqdn": lambda text: FQDN(text, min_labels=1).is_valid and not text.endswith(".")},
    "idn-hostname": {"idna": lambda text: idna.encode(text, uts46=False)},
    "ipv4": {"ipaddress": strict_ip(ipaddress.IPv4Address)},
    "ipv6": {"ipaddress": strict_ip(ipaddress.IPv6Address)},
    "iri": {"rfc3987-syntax": lambda text: is_valid_syntax("iri", text)},
    "iri-reference": {"rfc3987-syntax": lambda text: is_valid_syntax("iri_reference", text)},
    "json-pointer": {"jsonpointer": jsonpointer.JsonPointer},
    "uri": {"rfc3986-validator": lambda text: validate_rfc3986(text, rule="URI") is not None},
    "uri-reference": {"rfc3986-validator": lambda text: validate_rfc3986(text, rule="URI_reference") is not None},
    "uri-template": {"uri-template": validate_template},
    "uuid": {"uuid": lambda text: str(uuid.UUID(text)) == text.lower()},
}
NAMES = [*OTHERS, "date", "time", "idn-email", "regex", "relative-json-pointer"]
ODD = list("0123456789abcfxXzZT:-./@?#[]{}%+,~\\\"' \n\u00e9\u0660\u3002")


def changed(text: str, rng: random.Random) -> str:
    """The text with a character dropped, doubled, replaced, or swapped with the next."""
    if not text:
        return rng.choice(ODD)
    at = rng.randrange(len(text))
    c = rng.choice([*ODD, text[rng.randrange(len(text))]])
    return rng.choice(
        [
            text[:at] + text[at + 1 :],
            text[:at] + text[at] + text[at:],
            text[:at] + c + text[at + 1 :],
            text[:at] + c + text[at:],
            text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :],
        ]
    )


def main() -> None:
    examples, *rest = sys.argv[1:]
    count, seed, chosen = rest[0] if rest else "300", rest[1] if len(rest) > 1 else "1", rest[2:]
    run = subprocess.run(
        [Path(examples) / "format_samples", count, seed, *chosen], capture_output=True, text=True, check=True
    )
    samples = [tuple(json.loads(line)) for line in run.stdout.split("\n") if line]
    rng = random.Random(int(seed))
    texts = [(name, text) for name, text in samples]
    for name, text in samples:
        for _ in range(3):
            texts.append((name, changed(text, rng)))
    lines = "\n".join(json.dumps(pair) for pair in texts)
    run = subprocess.run([Path(examples) / "format_matches"], input=lines, capture_output=True, text=True, check=True)
    ours = [line == "true" for line in run.stdout.split()]

    differ: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    tried: dict[str, int] = defaultdict(int)
    for (name, text), mine in zip(texts, ours, strict=True):
        tried[name] += 1
        for other, check in {"jsonschema-rs": jsonschema_rs_check(name), **OTHERS.get(name, {})}.items():
            if passes(check, text) != mine:
                differ[name, other, mine].append(text)
    for name in NAMES:
        if not tried[name]:
            continue
        print(f"{name}: {tried[name]} texts")
        for (format_name, other, mine), odd in differ.items():
            if format_name == name:
                print(f"  {len(odd):5} {'ours only' if mine else f'{other} only'} ({other})")
                for text in sorted(set(odd), key=len)[:12]:
                    print("        ", ascii(text))


if __name__ == "__main__":
    main()
