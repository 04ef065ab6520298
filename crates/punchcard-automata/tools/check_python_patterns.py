"""Compares Python patterns with CPython's own `re.fullmatch`: random patterns and texts, and every character with case.

    cargo build --release -p punchcard-automata --example pattern_matches
    cd crates/punchcard-automata/tools
    python check_python_patterns.py ../../../target/release/examples/pattern_matches [COUNT [SEED]]

Prints each difference and how many patterns were compared. Patterns that both refuse, and those that only Punchcard
refuses with a reason that is in `docs/grammars.md`, are no difference.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator

warnings.simplefilter("ignore")

CHARS = [
    "a",
    "b",
    "A",
    "_",
    "1",
    "\n",
    " ",
    "-",
    "]",
    "{",
    "\u00e9",
    "\u017f",
    "s",
    "S",
    "k",
    "\u212a",
    "\u0660",
    "\u2028",
    "\x1c",
]
ATOMS = [
    *"abAskS1_ ,",
    *(re.escape(c) for c in "]{}-\n."),
    "\u017f",
    "\u212a",
    "\u00e9",
    ".",
    r"\d",
    r"\D",
    r"\s",
    r"\S",
    r"\w",
    r"\W",
    r"\n",
    r"\x61",
    r"\141",
    r"\0",
    r"\u0061",
    r"\U00000061",
    r"\a",
    "{",
    "}",
    "]",
    "{,",
    "{}",
    "{a",
    "#",
    r"\#",
    r"\ ",
    r"\07",
    r"\_",
    r"\A",
    r"\Z",
    r"\b",
    r"\B",
    "^",
    "$",
    "()",
    "(?:)",
]
MEMBERS = [
    *"abAskS1_-]^[{ #&|~\n",
    r"\d",
    r"\s",
    r"\w",
    r"\W",
    r"\n",
    r"\]",
    r"\-",
    r"\b",
    r"\141",
    r"\0",
    "a-s",
    "A-Z",
    "1-a",
    "\u017f",
    "\u0130-\u0180",
]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "{,}", "*?", "+?", "??", "{1,2}?", "{2}+", "*+", "{0}"]
OPENINGS = [
    "(",
    "(?:",
    "(?P<n>",
    "(?=",
    "(?!",
    "(?<=",
    "(?<!",
    "(?i:",
    "(?-i:",
    "(?s-m:",
    "(?m:",
    "(?x:",
    "(?a:",
    "(?u:",
    "(?>",
    "(?#",
]
# What is refused though CPython reads it.
REFUSED = ("back-reference", "conditional", "possessive", "atomic", "names of characters")
# What is read though CPython refuses it.
ADMITTED = ("look-behind requires fixed-width", "redefinition of group")


Case = tuple[str, str, list[str]]


def pattern(rng: random.Random, depth: int = 0) -> str:
    out = rng.choice(["(?i)", "(?x)", "(?ms)", "(?a)", "(?#c)"]) if depth == 0 and rng.random() < 0.2 else ""
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
        kind = rng.random()
        if kind < 0.5 or depth > 2:
            out += rng.choice(ATOMS)
        elif kind < 0.65:
            out += "[" + rng.choice(["", "", "^"]) + "".join(rng.choices(MEMBERS, k=rng.randint(1, 3))) + "]"
        elif kind < 0.95:
            out += rng.choice(OPENINGS) + pattern(rng, depth + 1) + ")"
        else:
            out += "|"
        if rng.random() < 0.35:
            out += rng.choice(QUANTIFIERS)
    return out


def cases(count: int, seed: int) -> Iterator[Case]:
    rng = random.Random(seed)
    short = ["", *CHARS, *(a + b for a in CHARS for b in CHARS)]
    for _ in range(count):
        texts = (
            rng.sample(short, 60)
            + ["".join(rng.choices(CHARS, k=rng.randint(3, 5))) for _ in range(60)]
            + ["", "a", "\n", "a\n"]
        )
        yield (
            "".join(rng.sample("imsx", rng.choice([0, 0, 0, 1, 1, 2]))) + rng.choice(["", "", "", "a"]),
            pattern(rng),
            texts,
        )


def cased() -> Iterator[Case]:
    """One letter or class of each character with case, and all of them as texts."""
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and chr(c).lower() != chr(c).upper()]
    for c in every:
        yield "i", re.escape(c), every
    everything = [chr(c) for c in range(0x33000) if not 0xD800 <= c < 0xE000]
    for item in [
        r"\d",
        r"\s",
        r"\w",
        r"\b.\b",
        "[\\w\u017f]",
        "[^\\Wk]",
        "[\u0100-\u024f]",
        "[^\u0370-\u1fff]",
        r"[\da]",
        ".",
    ]:
        for flags in ["", "i", "a", "ia"]:
            yield flags, item, everything


def main() -> None:
    binary, count, seed = sys.argv[1], int((sys.argv[2:] or ["2000"])[0]), int((sys.argv[3:] or ["0"])[0])
    todo = [*cased(), *cases(count, seed)]
    lines = "".join(json.dumps(["python", flags, source, texts]) + "\n" for flags, source, texts in todo)
    answers = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    compared = differences = 0
    for (flags, source, texts), answer in zip(todo, answers, strict=True):
        try:
            compiled = re.compile(source, sum(getattr(re, flag.upper()) for flag in flags))
        except (re.error, OverflowError, ValueError) as error:
            expected = None
            reason = str(error)
        else:
            expected, reason = [compiled.fullmatch(text) is not None for text in texts], ""
        if answer.startswith("error"):
            if expected is not None and not any(why in answer for why in REFUSED):
                print("REFUSED", flags, repr(source), answer)
                differences += 1
        elif expected is None:
            if not any(why in reason for why in ADMITTED):
                print("ADMITTED", flags, repr(source), reason)
                differences += 1
        else:
            compared += 1
            wrong = [
                text for text, ours, theirs in zip(texts, answer, expected, strict=True) if (ours == "1") != theirs
            ]
            if wrong:
                print(
                    "DIFFERS",
                    repr(flags),
                    repr(source),
                    [ascii(text) for text in wrong[:6]],
                    "CPython:",
                    compiled.fullmatch(wrong[0]) is not None,
                )
                differences += 1
    print(f"{compared} patterns compared, {differences} differences")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
