//! Lark's library of common terminals.
//!
//! Each is one regular expression of Python's, written from what the terminal is documented to match. All of them say by
//! themselves where they end: a comment does not run over its closing mark, and a quote in a string must be escaped.

/// Names, and what they match.
const TERMINALS: [(&str, &str); 27] = [
    ("DIGIT", "[0-9]"),
    ("HEXDIGIT", "[0-9A-Fa-f]"),
    ("INT", "[0-9]+"),
    ("SIGNED_INT", "[+-]?[0-9]+"),
    ("DECIMAL", r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("_EXP", "[eE][+-]?[0-9]+"),
    ("FLOAT", r"[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("SIGNED_FLOAT", r"[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)"),
    ("NUMBER", r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("SIGNED_NUMBER", r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("_STRING_INNER", r"[^\n]*"),
    ("_STRING_ESC_INNER", r"([^\\\n]|\\[^\n])*"),
    ("ESCAPED_STRING", r#""([^"\\\n]|\\[^\n])*""#),
    ("LCASE_LETTER", "[a-z]"),
    ("UCASE_LETTER", "[A-Z]"),
    ("LETTER", "[A-Za-z]"),
    ("WORD", "[A-Za-z]+"),
    ("CNAME", "[A-Za-z_][A-Za-z0-9_]*"),
    ("WS_INLINE", r"[ \t]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("CR", r"\r"),
    ("LF", r"\n"),
    ("NEWLINE", r"(\r?\n)+"),
    ("SH_COMMENT", r"#[^\n]*"),
    ("CPP_COMMENT", r"//[^\n]*"),
    // Up to the first closing mark.
    ("C_COMMENT", r"/\*([^*]|\*+[^*/])*\*+/"),
    ("SQL_COMMENT", r"--[^\n]*"),
];

/// The regular expression of a common terminal.
pub(super) fn pattern(name: &str) -> Option<&'static str> {
    TERMINALS.iter().find(|(known, _)| *known == name).map(|(_, pattern)| *pattern)
}

/// The names of all common terminals.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TERMINALS.iter().map(|(name, _)| *name)
}
