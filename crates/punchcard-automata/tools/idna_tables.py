"""Writes `src/formats/idna/tables.rs`: what IDNA 2008 and the Bidi rule ask of each code point.

    pip install unicodedata2 fonttools idna
    python tools/idna_tables.py > src/formats/idna/tables.rs

The derived property is computed from the Unicode properties, as RFC 5892 defines it. Code points that Unicode 14
(the one of Python 3.11) does not know are left out, so that a name is valid for any validator of the last years.
Joining types, which `unicodedata` does not hold, are read from the data of the `idna` package.
"""

from __future__ import annotations

import unicodedata as assigned
from collections import defaultdict

import unicodedata2 as ucd
from fontTools.unicodedata import script
from idna.idnadata import joining_types

# RFC 5892, section 2.6: code points whose value is not what the properties would give.
PVALID_EXCEPTIONS = {0x00DF, 0x03C2, 0x06FD, 0x06FE, 0x0F0B, 0x3007}
DISALLOWED_EXCEPTIONS = {0x0640, 0x07FA, 0x302E, 0x302F, 0x3031, 0x3032, 0x3033, 0x3034, 0x3035, 0x303B}
CONTEXT = {0x00B7: "MiddleDot", 0x0375: "Keraia", 0x05F3: "Geresh", 0x05F4: "Geresh", 0x30FB: "KatakanaDot"}
CONTEXT |= dict.fromkeys(range(1632, 1642), "ArabicDigit") | dict.fromkeys(range(1776, 1786), "ExtendedDigit")
CONTEXT |= {0x200C: "Zwnj", 0x200D: "Zwj"}

LETTERS_DIGITS = {"Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"}
IGNORABLE_BLOCKS = [(0x20D0, 0x20FF), (0x1D100, 0x1D1FF), (0x1D200, 0x1D24F)]
OLD_HANGUL_JAMO = [(0x1100, 0x11FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF)]
# The letters and marks among the default ignorable code points.
IGNORABLE = [(0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164)]
IGNORABLE += [(0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF)]

# Blocks of code points, smaller ones first. The block that holds a label's characters bounds its Punycode.
BLOCKS = [
    (0x370, 0x400), (0x3040, 0x3100), (0xE00, 0x1000), (0x400, 0x530), (0x80, 0x250), (0x530, 0x800),
    (0x900, 0xE00), (0xAC00, 0xD7B0), (0x4E00, 0xA000), (0x3000, 0xA000), (0x80, 0x10000), (0x80, 0x110000),
]  # fmt: skip


def among(c: int, ranges: list[tuple[int, int]]) -> bool:
    return any(lo <= c <= hi for lo, hi in ranges)


def kind(c: int) -> str | None:
    """PVALID or the contextual rule of a code point; None if it is disallowed or unassigned."""
    if c in PVALID_EXCEPTIONS:
        return "Valid"
    if c in DISALLOWED_EXCEPTIONS:
        return None
    if c in CONTEXT:
        return CONTEXT[c]
    char = chr(c)
    if assigned.category(char) == "Cn":
        return None
    stable = ucd.normalize("NFKC", ucd.normalize("NFKC", char).casefold())
    if stable != char or among(c, IGNORABLE + IGNORABLE_BLOCKS + OLD_HANGUL_JAMO):
        return None
    return "Valid" if ucd.category(char) in LETTERS_DIGITS else None


BIDI = {"L": "L", "R": "R", "AL": "R", "AN": "An", "EN": "En", "NSM": "Nsm"}
SCRIPTS = {"Grek": "Greek", "Hebr": "Hebrew", "Hira": "Japanese", "Kana": "Japanese", "Hani": "Japanese"}
JOINS = {"L": "Left", "R": "Right", "D": "Dual", "T": "Transparent"}
JOINING = {
    c: JOINS[letter]
    for letter, packed in joining_types.items()
    if letter in JOINS
    for span in packed
    for c in range(span >> 32, span & 0xFFFFFFFF)
}


def compositions(valid: dict[int, str]) -> dict[int, frozenset[int]]:
    """For each first character, the second ones with which it composes: such pairs are never in NFC."""
    pairs: dict[int, set[int]] = defaultdict(set)
    for c in range(0x110000):
        parts = ucd.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (int(p, 16) for p in parts)
            if first in valid and second in valid and ucd.normalize("NFC", chr(first) + chr(second)) == chr(c):
                pairs[first].add(second)
    return {first: frozenset(seconds) for first, seconds in pairs.items()}


def main() -> None:
    valid = {c: k for c in range(0x80, 0x110000) if (k := kind(c))}
    valid |= {ord(c): "Valid" for c in "0123456789abcdefghijklmnopqrstuvwxyz"}
    pairs = compositions(valid)
    starters = sorted(set(pairs.values()), key=sorted)
    seconds = {m for group in starters for m in group}
    marks = sorted({tuple(i for i, group in enumerate(starters) if m in group) for m in seconds})
    mark_of = {m: tuple(i for i, group in enumerate(starters) if m in group) for m in seconds}

    features: dict[tuple[object, ...], int] = {}
    ranges: list[list[int]] = []
    for c in sorted(valid):
        char = chr(c)
        if c < 0x80:
            continue
        record = (
            valid[c],
            BIDI.get(ucd.bidirectional(char), "Neutral"),
            SCRIPTS.get(script(char), "Other"),
            JOINING.get(c, "None"),
            ucd.category(char).startswith("M"),
            ucd.combining(char),
            1 + starters.index(pairs[c]) if c in pairs else 0,
            1 + marks.index(mark_of[c]) if c in mark_of else 0,
            next(i for i, (low, high) in enumerate(BLOCKS) if low <= c < high),
        )
        number = features.setdefault(record, len(features))
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == number:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, number])

    print("//! Written by `tools/idna_tables.py`; do not edit.")
    print(f"//! Unicode {ucd.unidata_version}, code points assigned in {assigned.unidata_version}.\n")
    print("#![cfg_attr(rustfmt, rustfmt_skip)]\n")
    print("use super::classes::{Bidi::*, Class, Join, Kind::*, Script::*};\n")
    print("/// Inclusive ranges of code points from U+0080 on, sorted, and the index of their class.")
    print(f"pub(super) static RANGES: [(u32, u32, u8); {len(ranges)}] = [")
    cells = [f"({lo:#x},{hi:#x},{n})," for lo, hi, n in ranges]
    for i in range(0, len(cells), 6):
        print("    " + " ".join(cells[i : i + 6]))
    print("];\n")
    assert len(features) < 256, len(features)
    print("/// The classes: characters of one class are alike in every rule.")
    print(f"pub(super) static CLASSES: [Class; {len(features)}] = [")
    for k, b, s, j, mark, ccc, starter, second, window in features:
        print(f"    Class::new({k}, {b}, {s}, Join::{j}, {str(mark).lower()}, {ccc}, {starter}, {second}, {window}),")
    print("];\n")
    print("/// Blocks of code points (the end is excluded), smaller ones first; the last one holds all.")
    print(f"pub(super) static BLOCKS: [(u32, u32); {len(BLOCKS)}] = [")
    print("    " + " ".join(f"({low:#x}, {high:#x})," for low, high in BLOCKS))
    print("];\n")
    print("/// By the starter group of an ASCII letter (`a` to `z`).")
    letters = [1 + starters.index(pairs[c]) if c in pairs else 0 for c in range(97, 123)]
    print(f"pub(super) static ASCII_STARTERS: [u8; 26] = {letters};\n")
    print("/// Which starter groups compose with the characters of a mark group (both counted from one).")
    print(f"pub(super) static COMPOSES: [&[u8]; {len(marks)}] = [")
    for groups in marks:
        print(f"    &{[1 + g for g in groups]},")
    print("];")


if __name__ == "__main__":
    main()
