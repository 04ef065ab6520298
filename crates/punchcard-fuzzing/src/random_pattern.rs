//! Random patterns, of parts that meet: few letters, assertions beside and within each other, counts small and huge.

use crate::Choices;

/// A pattern, and what may be asked about it.
pub(crate) struct Pattern {
    pub(crate) source: String,
    /// Whether ECMA-262 and Python agree on what it means for texts of [`LETTERS`].
    pub(crate) is_common: bool,
    /// Whether a matcher that tries one way after the other is quick on short texts.
    pub(crate) is_quick: bool,
    depth: usize,
    least_parts: usize,
}

/// Of what texts are made that patterns are tried on.
pub(crate) const LETTERS: [&str; 8] = ["a", "b", "a", "é", "1", " ", "A", "\n"];

const PLAIN: [&str; 8] = ["a", "b", "ab", "[ab]", "[^a]", "[a-b1]", "é", "A"];
const ATOMS: [&str; 28] = [
    ".",
    r"\d",
    r"\D",
    r"\w",
    r"\W",
    r"\s",
    r"\S",
    "[^]",
    "[]",
    r"\n",
    r"\x61",
    r"\u0061",
    r"\u{61}",
    r"\p{L}",
    r"\P{Lu}",
    r"\p{Script=Greek}",
    r"[\w-]",
    r"[^\W_]",
    r"[a-é]",
    r"\cA",
    r"\0",
    r"\/",
    r"\-",
    "[[a]",
    r"[\]]",
    "😀",
    r"[\u{1F600}-😂]",
    r"\ud83d\ude00",
];
const EDGES: [&str; 10] = ["^", "$", r"\b", r"\B", "^", "$", r"\A", r"\Z", r"\z", r"\b"];
const COUNTS: [&str; 12] = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,3}", "{2,}", "{0}", "{1,3}?"];
const LARGE: [&str; 6] = ["{50}", "{0,50}", "{100,}", "{999,1001}", "{2147483647}", "{0,4294967295}"];
const LOOKS: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];
const ODD: [&str; 12] =
    [r"\1", r"(?<n>a)\k<n>", "(?i:a)", "(?P<n>b)", "(?i)a", "(?>a+)", "a++", "(?(1)a|b)", "(?#c)", "{", "(", r"\"];

/// A pattern.
pub(crate) fn pattern(choices: &mut Choices<'_>) -> Pattern {
    let mut out = Pattern { source: String::new(), is_common: true, is_quick: true, depth: 0, least_parts: 1 };
    out.alternatives(choices);
    out
}

/// A pattern that another engine can be asked about.
pub(crate) fn quick_pattern(choices: &mut Choices<'_>) -> String {
    choices
        .pick(&[
            "a", "^a", "b$", "^ab?$", "[ab]", "^[a-b]+$", "^.{2}$", "é", "^a|b$", "(?!a)", "^(?=a).b", r"\d", "^$", "",
        ])
        .into()
}

impl Pattern {
    fn alternatives(&mut self, choices: &mut Choices<'_>) {
        self.depth += 1;
        for i in 0..1 + choices.below(4).saturating_sub(1) {
            if i > 0 {
                self.source.push('|');
            }
            for _ in 0..self.least_parts + choices.below(3) {
                self.part(choices);
            }
        }
        self.depth -= 1;
    }

    fn part(&mut self, choices: &mut Choices<'_>) {
        let kinds = if self.depth > 4 { 8 } else { 20 };
        match choices.below(kinds) {
            0..5 => self.source.push_str(choices.pick(&PLAIN)),
            5..7 => {
                self.is_common = false;
                self.source.push_str(choices.pick(&ATOMS));
            }
            7 => {
                self.is_common = false;
                self.source.push_str(choices.pick(&EDGES));
            }
            8..13 => {
                let is_group = choices.once_in(2);
                if is_group {
                    self.group(choices, "(?:");
                } else {
                    self.source.push_str(choices.pick(&PLAIN[..4]));
                    if self.source.ends_with("ab") {
                        self.source.pop();
                    }
                }
                // A second way to read the same text for each round makes such matchers slow.
                self.is_quick &= !is_group;
                self.source.push_str(choices.pick(&COUNTS));
            }
            13 => {
                self.is_quick = false;
                self.group(choices, "(?:");
                self.source.push_str(choices.pick(&LARGE));
            }
            14..16 => self.group(choices, "("),
            16..19 => {
                let look = choices.pick(&LOOKS);
                // Python wants to know how long what is before is.
                self.is_common &= !look.contains('<');
                self.group(choices, look);
            }
            _ => {
                (self.is_common, self.is_quick) = (false, false);
                self.source.push_str(choices.pick(&ODD));
            }
        }
    }

    fn group(&mut self, choices: &mut Choices<'_>, open: &str) {
        self.source.push_str(open);
        self.alternatives(choices);
        self.source.push(')');
    }
}
