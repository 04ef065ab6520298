//! What CPython 3.11 said, to be said here too. `tools/check_python_patterns.py` compares many more.

use crate::languages::Languages;
use crate::pattern::{Dialect, Options, PatternError, parse};

fn read(flags: &str, pattern: &str) -> Result<super::super::Pattern, PatternError> {
    parse(pattern, &Options::with_flags(Dialect::Python, flags)?)
}

/// Flags, a pattern, texts that `re.fullmatch` matches and texts that it does not.
type Case = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

#[test]
fn texts_match_as_in_cpython() {
    #[rustfmt::skip]
    let cases: &[Case] = &[
        ("", "a.b", &["a\u{2028}b", "a\rb"], &["a\nb"]),
        ("s", "a.b", &["a\nb"], &[]),
        ("", "a$\n?", &["a", "a\n"], &["a\n\n"]),
        ("", "a\\Z\\n?", &["a"], &["a\n"]),
        ("m", "a$\nb", &["a\nb"], &[]),
        ("m", "a\n^b", &["a\nb"], &[]),
        ("m", "a$.b", &[], &["a\nb"]),
        ("ms", "a$.b", &["a\nb"], &["a\rb"]),
        ("", "\\d", &["5", "٣"], &["²", "五"]),
        ("a", "\\d", &["5"], &["٣"]),
        ("", "\\w", &["é", "五", "²", "Ⅷ", "_"], &["\u{301}", "-"]),
        ("a", "\\w", &["a"], &["é"]),
        ("", "\\s", &["\u{1c}", "\u{85}", "\u{3000}"], &["\u{feff}", "\u{200b}"]),
        ("a", "\\s", &["\u{b}"], &["\u{1c}", "\u{a0}"]),
        ("", "é\\bx|é\\b ", &["é "], &["éx"]),
        ("a", "é\\bx|é\\b ", &["éx"], &["é "]),
        ("", "\\B", &[], &[""]),
        ("", "a\\Ba", &["aa"], &[]),
        ("i", "straße", &["STRAßE", "STRAẞE"], &["STRASSE"]),
        ("i", "[k]", &["\u{212a}", "K"], &[]),
        ("i", "ſ", &["s", "S"], &[]),
        ("i", "ς", &["σ", "Σ"], &[]),
        ("i", "i", &["ı", "İ", "I"], &[]),
        ("ia", "[ks]", &["K"], &["\u{212a}", "ſ"]),
        ("i", "é", &["É"], &[]),
        ("ia", "é", &[], &["É"]),
        ("i", "[^k]", &["x"], &["\u{212a}", "K"]),
        ("i", "[_-a]", &["A", "`"], &["B"]),
        ("", "a{,2}", &["", "aa"], &["aaa"]),
        ("", "a{,}", &["", "aaa"], &[]),
        ("", "a{}", &["a{}"], &["a"]),
        ("", "a{x", &["a{x"], &[]),
        ("", "x{2,1", &["x{2,1"], &[]),
        ("", " []a]+", &[" ]a"], &[]),
        ("", "[^]]", &["a"], &["]"]),
        ("", "[[a]]", &["[]", "a]"], &["a"]),
        ("", "[a-]", &["-"], &[]),
        ("", "[\\w-]", &["-", "é"], &[]),
        ("", "\\012\\0\\141\\x41\\u00e9\\U0001F600\\a\\f\\v", &["\n\u{0}aAé😀\u{7}\u{c}\u{b}"], &[]),
        ("", "[\\b\\1]", &["\u{8}", "\u{1}"], &[]),
        ("", "\\08", &["\u{0}8"], &[]),
        ("x", "a b # c\n [ #]", &["ab ", "ab#"], &["a b "]),
        ("", "(?x) a b", &["ab"], &[]),
        ("", "(?x:a b) c", &["ab c"], &["abc"]),
        ("", "(?i)a(?-i:b)", &["Ab"], &["AB"]),
        ("", "(?#c)(?i)a(?#\\))b", &["AB"], &[]),
        ("", "(?P<n>a)(?P<m>b)", &["ab"], &[]),
        ("", "(?>ab)c", &["abc"], &[]),
        ("", "a{2}+b", &["aab"], &[]),
        ("", "(?=a)*b", &["b"], &[]),
        ("", "(?:^)*a", &["a"], &[]),
        ("", "(?<=a)b|ab(?<=a.)", &["ab"], &["b"]),
        ("x", "a#\\\nb\nc", &["ac"], &["abc"]),
    ];
    for &(flags, pattern, yes, no) in cases {
        let mut languages = Languages::new();
        let read = read(flags, pattern).unwrap_or_else(|error| panic!("{pattern:?}: {error}"));
        let language = read.full(&mut languages).unwrap_or_else(|error| panic!("{pattern:?}: {error}"));
        for text in yes {
            assert!(languages.matches(language, text), "{pattern:?} matches {text:?}");
        }
        for text in no {
            assert!(!languages.matches(language, text), "{pattern:?} does not match {text:?}");
        }
    }
}

#[test]
fn what_cpython_refuses_is_refused() {
    let patterns = [
        "a**",
        "*a",
        "^*",
        "a|*",
        "(?:a",
        "a)",
        "[a",
        "[]",
        "[b-a]",
        "[\\d-a]",
        "a{2,1}",
        "\\q",
        "\\xg",
        "\\u12",
        "\\U00110000",
        "\\400",
        "[\\8]",
        "[\\Z]",
        "\\",
        "(?<n>a)",
        "(?P<1>a)",
        "(?P<n>a)(?P<n>b)",
        "a(?i)b",
        "(?i-:a)",
        "(?-i)a",
        "(?au:a)",
        "(?i-i:a)",
        "(?-a:b)",
        "(?L)a",
        "(?z)a",
        "(?#a",
        "a{4294967296}",
        "\\p{L}",
        "\\z",
    ];
    for pattern in patterns {
        assert!(read("", pattern).is_err(), "{pattern}");
    }
    assert!(read("au", "a").is_err() && read("L", "a").is_err());
    assert!(Options::with_flags(Dialect::Ecma, "a").is_err() && Options::with_flags(Dialect::Ecma, "imsxu").is_ok());
}

#[test]
fn what_is_not_regular_or_not_known_is_refused_by_name() {
    let cases = [
        ("(a)\\1", 3, "back-reference"),
        ("(?P<n>a)(?P=n)", 8, "back-reference"),
        ("(a)?(?(1)b|c)", 4, "conditional"),
        ("(?>a*)a", 0, "atomic"),
        ("a*+a", 2, "possessive"),
        ("(?:a|ab){2}+", 11, "possessive"),
        ("\\N{DIGIT ONE}", 0, "names of characters"),
    ];
    for (pattern, offset, message) in cases {
        let error = read("", pattern).expect_err(pattern);
        assert!(error.message.contains(message) && error.hint.is_some(), "{pattern}: {error}");
        assert_eq!(error.offset, offset, "{pattern}");
    }
}

#[test]
fn limits_are_errors() {
    assert!(read("", &("(".repeat(100_000) + &")".repeat(100_000))).is_err());
    assert!(read("", &"(a*".repeat(300)).is_err());
    assert!(read("", "(?:a{1000}){1000000000}").is_err());
    assert!(read("", &"a".repeat(100_001)).is_err());
}
