//! What patterns match, what is refused and what stays cheap: tables of cases.

use punchcard_automata::pattern::{Options, Pattern, PatternError, parse};
use punchcard_automata::{Language, Languages};

fn read(source: &str) -> Result<Pattern, PatternError> {
    parse(source, &Options::default())
}

fn search(source: &str, languages: &mut Languages) -> Language {
    read(source).and_then(|p| p.search(languages)).unwrap_or_else(|e| panic!("{source:?}: {e}"))
}

fn full(source: &str, languages: &mut Languages) -> Language {
    read(source).and_then(|p| p.full(languages)).unwrap_or_else(|e| panic!("{source:?}: {e}"))
}

/// A pattern, texts in which it is found, and texts in which it is not.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

const SEARCHES: &[Case] = &[
    // Anchors, or none.
    ("", &["", "x"], &[]),
    ("abc", &["abc", "xabcx"], &["", "ab", "aabbcc"]),
    ("^abc", &["abc", "abcd"], &["xabc", "ab"]),
    ("abc$", &["abc", "xabc"], &["abcx", "ab"]),
    ("^(a|b)$", &["a", "b"], &["", "ab", "c"]),
    ("^a|b$", &["a", "axx", "b", "xxb"], &["xa", "bx", ""]),
    ("(^a$)|(^b$)", &["a", "b"], &["ab", ""]),
    ("^$|^https://[a-z]+$", &["", "https://ab"], &["x", "http://ab", " ", "https://"]),
    ("(?:^|,)x(?:,|$)", &["x", "x,y", "y,x", "y,x,z"], &["xy", "yx", "y,xz", ""]),
    ("^", &["", "a"], &[]),
    ("$", &["", "a"], &[]),
    ("^^a$$", &["a"], &["aa"]),
    ("a^b", &[], &["ab", "a^b", "b", ""]),
    ("a$b", &[], &["ab", "a$b", ""]),
    ("a?^b", &["b", "bx"], &["ab", "xb"]),
    ("a$b?", &["a", "xa"], &["ab"]),
    ("(^a|b)+$", &["a", "abb", "b", "xb"], &["aa", "ba", ""]),
    ("(a|$)*b", &["b", "aab"], &["", "a"]),
    // Literals and alternatives.
    ("^(GET|POST|PUT)$", &["GET", "PUT"], &["GE", "GETS", ""]),
    (r"^C\+\+|C#|a\|b$", &["C++", "C++x", "xC#x", "a|b"], &["C", "C+", "a"]),
    ("^(x|)y(|z)$", &["y", "xy", "xyz", "yz"], &["x", "xx", ""]),
    ("^()$", &[""], &["x"]),
    ("^a||b$", &["", "anything"], &[]),
    // Repetition.
    ("^a+?b()c{0,1}$", &["ab", "aaab", "abc"], &["b", "a", "abcc"]),
    ("^a{2}$", &["aa"], &["a", "aaa"]),
    ("^a{2,}$", &["aa", "aaaa"], &["a", ""]),
    ("^a{0}$", &[""], &["a"]),
    ("^(a{2}){3}$", &["aaaaaa"], &["aaaa", "aaaaa", "aaaaaaa"]),
    ("^(a{2,3}){2}$", &["aaaa", "aaaaa", "aaaaaa"], &["aaa", "aaaaaaa"]),
    ("^(a{3,4}){0,2}$", &["", "aaa", "aaaa", "aaaaaa", "aaaaaaaa"], &["a", "aaaaa", "aaaaaaaaa"]),
    ("^(a{3,}){0,2}$", &["", "aaa", "aaaaaaaa"], &["a", "aa"]),
    ("^a{0,99999999999}$", &["", "aaa"], &["b"]),
    ("^(?:a?){3}$", &["", "aaa"], &["aaaa"]),
    (r"^\d{3}-\d{4}$", &["555-1234"], &["555-123", "5551234"]),
    // Classes.
    (r"^\S\S$", &["[[", "a]", "é."], &["\u{a0}a", "a", "[ ", "a\n", " a"]),
    (r"\S", &["x", "  a ", "\n."], &["", "   ", "\n\t\u{feff}\u{3000}"]),
    ("^.+$", &["a b", "\t", "é😀"], &["", "a\nb", "a\rb", "a\u{2028}b", "a\u{2029}"]),
    ("^[😀-🙏]+$", &["😨", "😀🙏"], &["a", "😨a", "🙐", ""]),
    ("^[^a-c]$", &["d", "\n", "😀"], &["a", "c", ""]),
    ("^[]$", &[], &["", "[]", "a"]),
    ("^[^]$", &["a", "\n"], &["", "ab"]),
    (r"^[\w.-]+$", &["a-b.c_9"], &["é", " "]),
    (r"^[a\-z]$", &["a", "-", "z"], &["b", "\\"]),
    (r"^[\w-.]$", &["a", "-", "."], &["/"]),
    ("^[-a]$", &["-", "a"], &["b"]),
    ("^[a-]$", &["-", "a"], &["b"]),
    (r"^[\]\\^]$", &["]", "\\", "^"], &["["]),
    (r"^[\b]$", &["\u{8}"], &["b"]),
    (r"^[[:alpha:]]$", &["a]", ":]", "[]"], &["b", "a"]),
    (r"^\w\W$", &["a-", "_é"], &["é-", "ab"]),
    (r"^\d\D$", &["1a", "1٣"], &["٣a", "11"]),
    // Escapes.
    (r"^\t\n\v\f\r\0\x41\u0042\cA\cz$", &["\t\n\u{b}\u{c}\r\0AB\u{1}\u{1a}"], &["tnvfr"]),
    (r"^\u{1F600}\ud83d\ude00$", &["😀😀"], &["😀"]),
    (r"^[\ud83d\ude00-\ud83d\ude4f]$", &["😀", "🙏"], &["a"]),
    (r"^[\ud800-\udfff]$", &[], &["a", "😀"]),
    (r"^https?:\/\/[a-z0-9.\-]+$", &["http://a-b.c", "https://x"], &["ftp://x", "http://a_b", "http:/x"]),
    (r#"^\@\_\"\'\:\-\ \#\%\&\,\;\<\=\>\!\~\`$"#, &["@_\"':- #%&,;<=>!~`"], &[""]),
    (r"^(up\ndown|left\nright)$", &["up\ndown"], &["up\\ndown", "updown"]),
    ("^\"[\\\\/]\"$", &["\"\\\"", "\"/\""], &["\"\"", "\"x\""]),
    // Braces and brackets that stand for themselves.
    ("^{a}$", &["{a}"], &["a"]),
    (r"^\${x}$", &["${x}"], &["$x"]),
    ("^a{,}$", &["a{,}"], &["a", "aa"]),
    ("^a{1$", &["a{1"], &["a"]),
    ("^a]$", &["a]"], &["a"]),
    ("^{{.+}}$", &["{{x}}"], &["{x}"]),
    // Unicode properties.
    (r"^\p{Letter}cole$", &["École"], &["1cole"]),
    (r"^\p{L}+$", &["aéß漢"], &["a1"]),
    (r"^\p{digit}+$", &["42", "४२"], &["a", ""]),
    (r"^\P{Lu}$", &["a", "1"], &["A", "É"]),
    (r"^\p{Script=Greek}\p{sc=Grek}\p{scx=Greek}$", &["αβγ"], &["abc"]),
    (r"^\p{Emoji}$", &["😀", "1"], &["a"]),
    (r"^[\p{L}\p{N}_-]+$", &["é-4_x"], &["a b"]),
    (r"^[^\p{Lu}]$", &["a"], &["A"]),
    (r"^\p{Greek}$", &["α"], &["a"]),
    // Word boundaries.
    (r"\bcat\b", &["cat", "a cat!", "cat-nap"], &["cats", "concat", "_cat", ""]),
    (r"^\w+\b.$", &["ab!"], &["ab", "abc"]),
    (r"\Bat\b", &["cat", "a bat!"], &["at", " at"]),
    (r"^\b", &["a", "_"], &["", " a"]),
    (r"\b$", &["a"], &["", "a "]),
    (r"^\B$", &[""], &["a", " "]),
    (r"^.\b.$", &["a ", " a"], &["aa", "  "]),
    (r"^(\b\w+\b ?)+$", &["some words here"], &["a  b", ""]),
    (r"\bfoo\b.*\bbar\b", &["foo bar", "a foo, then bar."], &["foobar", "food bar"]),
    // Look-around.
    (r"^(?!tmp$)(?!\.)[a-z.]{1,8}$", &["tmpx", "abc", "a.b", "tm"], &["tmp", ".a", "", "abcdefghi"]),
    ("^(?=.*[0-9])(?=.*[a-z]).{3,}$", &["a1x", "xx9"], &["abc", "123", "a1"]),
    ("foo(?=bar)", &["foobar", "xfoobarx"], &["foo", "foobaz"]),
    ("foo(?!bar)", &["foo", "foobaz", "foobarfoo"], &["foobar", "fo"]),
    ("(?<=foo)bar", &["foobar"], &["bar", "fobar"]),
    ("(?<!foo)bar", &["bar", "xbar", "foobarbar"], &["foobar"]),
    ("^.*(?<!tmp)$", &["", "x", "tmpx"], &["tmp", "xtmp"]),
    ("^(?!foo).*(?<!bar)$", &["", "xfoo", "barx"], &["foox", "xbar", "foobar"]),
    ("^((?!mode)(?!Mode).)*$", &["", "abc", "mod"], &["mode", "xMode"]),
    ("^(?:(?!ab)[a-c])+$", &["ba", "aac"], &["ab", "cabc", ""]),
    ("^(?!^lucene).*", &["x"], &["lucene"]),
    ("(?<=^|,)a(?=,|$)", &["a", "b,a", "a,b"], &["ab", "ba"]),
    ("(?<=a(?=bc))b", &["abc"], &["ab", "bc"]),
    ("(?<=(?<!x)a)b", &["ab", "yab"], &["xab", "b"]),
    (r"(?<=\bre)do", &["redo", "a redo"], &["credo", "do"]),
    ("^(?=a(?=b(?=c)))", &["abcd"], &["abd"]),
    ("^(?:a(?=b)|b(?=a|$))*$", &["abab", "b", ""], &["aba", "abb"]),
    ("^(?=a)*b", &["b"], &["a"]),
    ("(?=)", &["", "a"], &[]),
    ("(?!)", &[], &["", "a"]),
    // Names, and flags within.
    ("^(?<year>[0-9]{4})-(?<month>[0-9]{2})$", &["2024-05"], &["2024"]),
    ("^(?:(?<n>a)|(?<n>b))$", &["a", "b"], &["ab"]),
    ("^(?P<n>a)$", &["a"], &["n"]),
    ("(?i)^abc$", &["aBC", "abc"], &["(?i)abc", "iabc"]),
    ("^a(?i:b)c$", &["abc", "aBc"], &["ABc", "aBC"]),
    ("^(?s-i:.)$", &["\n"], &["", "ab"]),
    ("(?im)^a$", &["A", "x\na\ny"], &["xa"]),
    ("(?x) ^ a b # both\n c $", &["abc"], &["a b"]),
    (r"\Aab\z", &["ab"], &["ab\n", "xab"]),
];

#[test]
fn found_in_texts() {
    for (source, yes, no) in SEARCHES {
        let mut languages = Languages::new();
        let found = search(source, &mut languages);
        for text in *yes {
            assert!(languages.matches(found, text), "{source:?} is found in {text:?}");
        }
        for text in *no {
            assert!(!languages.matches(found, text), "{source:?} is not found in {text:?}");
        }
        // The same pattern as a whole match between any two texts.
        if !source.starts_with("(?i") && !source.starts_with("(?x") {
            let around = full(&format!("[^]*(?:{source})[^]*"), &mut languages);
            for text in yes.iter().chain(*no) {
                assert_eq!(languages.matches(around, text), yes.contains(text), "{source:?} around {text:?}");
            }
        }
    }
}

#[test]
fn matches_whole_texts() {
    let cases: &[Case] = &[
        ("(x|)y(|z)", &["y", "xy", "xyz", "yz"], &["x", "xx", "yx", ""]),
        ("a|b", &["a", "b"], &["ab", ""]),
        (r"C\+\+|C#|a\|b|\(x\)", &["C++", "C#", "a|b", "(x)"], &["C", "CC", "a", "x", "C+"]),
        ("^a|b$", &["a", "b"], &["ax", "xb"]),
        (r"\bcat\b", &["cat"], &["a cat", ""]),
        ("a(?=b)", &[], &["a", "ab"]),
        ("(?<=a)b", &[], &["b", "ab"]),
        ("(?!.*a).*", &["", "b"], &["a", "ba"]),
    ];
    for (source, yes, no) in cases {
        let mut languages = Languages::new();
        let whole = full(source, &mut languages);
        for text in *yes {
            assert!(languages.matches(whole, text), "{source:?} matches {text:?}");
        }
        for text in *no {
            assert!(!languages.matches(whole, text), "{source:?} does not match {text:?}");
        }
    }
}

#[test]
fn flags() {
    let cases = [
        ("i", "^straße$", "STRAẞE", true),
        ("i", "^straße$", "STRASSE", false),
        ("i", "^k$", "\u{212A}", true),
        ("i", r"^\w$", "ſ", true),
        ("i", r"^\W$", "ſ", false),
        ("", r"^\w$", "ſ", false),
        ("i", r"^[^x]$", "X", false),
        ("i", r"^\p{Lu}$", "a", true),
        ("i", r"^[a-f]$", "D", true),
        ("i", "^İ$", "i", false),
        ("s", "^.$", "\n", true),
        ("", "^.$", "\n", false),
        ("m", "^b$", "a\nb\r\nc", true),
        ("", "^b$", "a\nb\r\nc", false),
        ("m", "^$", "a\n", true),
        ("x", " a [ ] b # c", "a b", true),
        ("x", r"a\ b", "a b", true),
    ];
    for (flags, source, text, expected) in cases {
        let options = Options {
            ignore_case: flags.contains('i'),
            multiline: flags.contains('m'),
            dot_all: flags.contains('s'),
            verbose: flags.contains('x'),
            ..Options::default()
        };
        let mut languages = Languages::new();
        let found = parse(source, &options).unwrap().search(&mut languages).unwrap();
        assert_eq!(languages.matches(found, text), expected, "/{source}/{flags} in {text:?}");
    }
}

/// A pattern, where it is refused, and a word of the reason.
const REFUSED: &[(&str, usize, &str)] = &[
    ("[a-", 0, "not closed"),
    ("(a", 0, "not closed"),
    ("a)", 1, "without an opening"),
    ("a**", 2, "nothing to repeat"),
    ("*a", 0, "nothing to repeat"),
    ("x{2}{3}", 4, "nothing to repeat"),
    ("a{3,1}", 1, "out of order"),
    ("[z-a]", 1, "out of order"),
    ("a\\", 1, "backslash"),
    ("(?<=x)*y", 6, "takes no quantifier"),
    ("^*", 1, "takes no quantifier"),
    (r"\b+", 2, "takes no quantifier"),
    (r"(a)\1", 3, "back-reference"),
    (r"(?<n>a)\k<n>", 7, "back-reference"),
    ("(?P<n>a)(?P=n)", 8, "back-reference"),
    ("(?<n>a)(?<n>b)", 7, "two groups"),
    ("(?<1>a)", 0, "identifier"),
    ("a++", 2, "possessive"),
    ("(?>a)", 0, "atomic"),
    ("a(?i)b", 1, "inline flags"),
    ("(?(1)a|b)", 0, "conditional"),
    ("(?#note)a", 0, "comment"),
    ("a(?R)", 1, "recursion"),
    (r"a\Z", 1, "\\Z"),
    (r"\h", 0, "\\h"),
    (r"\a", 0, "\\a"),
    (r"\Qa\E", 0, "\\Q"),
    (r"\07", 0, "octal"),
    (r"[\1]", 1, "octal"),
    (r"\x{41}", 0, "two hexadecimal"),
    (r"\u12", 0, "four hexadecimal"),
    (r"\u{110000}", 0, "10FFFF"),
    (r"\c1", 0, "letter"),
    (r"\pL", 0, "braces"),
    (r"\p{Foo}", 0, "Foo"),
    (r"\p{IsGreek}", 0, "block"),
    (r"\p{Script=Foo}", 0, "Foo"),
    (r"\p{L", 0, "not closed"),
    ("a{,5}", 1, "lower bound"),
    ("(?i", 0, "kind of group"),
];

#[test]
fn refused_with_place_and_reason() {
    for (source, offset, reason) in REFUSED {
        let error = read(source).expect_err(source);
        assert!(error.message.contains(reason), "{source:?}: {error}");
        assert_eq!(error.offset, *offset, "{source:?}: {error}");
    }
    let shown = read(r"é\Z").unwrap_err().to_string();
    assert_eq!(shown, r"the escape \Z is not ECMA-262 (at character 1); write $ for the end of the text");
}

#[test]
fn strict_mode_takes_unicode_mode_only() {
    let strict = Options { strict: true, ..Options::default() };
    for source in [
        r"\-",
        r"\@",
        "{",
        "}",
        "]",
        "a{",
        "a{1",
        r"[\w-.]",
        "(?=a)*",
        "(?i)a",
        "(?P<n>a)",
        r"\A",
        r"\p{Greek}",
        r"\p{letter}",
        r"\p{sc=greek}",
        "(?x:a)",
    ] {
        assert!(read(source).is_ok() && parse(source, &strict).is_err(), "{source:?}");
    }
    for source in [r"[\-]", r"\/", r"\^\$\\\.\*\+\?\(\)\[\]\{\}\|", r"\p{L}", "(?i:a)", "(?<n>a)", "[^]", "[{}]"] {
        assert!(parse(source, &strict).is_ok(), "{source:?}");
    }
}

#[test]
fn anchors_and_literals_leave_plain_expressions() {
    for source in [
        "^abc$",
        "^a|b$",
        "(^a$)|(^b$)",
        "^(?:a|b|cd)$",
        "^$|^a+$",
        "(?:^|,)x(?:,|$)",
        r"\bcat\b",
        r"^\w+\b",
        "foo(?=bar)",
        "(?<=foo)bar",
        "^(^a|b)*$",
        "^(a$|b)+",
        "^((a)|(b$))",
    ] {
        let mut languages = Languages::new();
        let found = search(source, &mut languages);
        assert!(languages.is_plain(found), "{source:?}");
    }
    // Intersections and complements, but nothing that has to be looked up as the text goes by.
    for source in
        [r"^(?!tmp$)(?!\.)[a-z.]{1,8}$", "^(?!foo).*(?<!bar)$", "(?<!foo)bar", "^(?=.*a)(?=.*b).*$", r"^.\b.$"]
    {
        let mut languages = Languages::new();
        let found = search(source, &mut languages);
        assert!(!languages.looks(found) || source.contains('b'), "{source:?}");
    }
}

#[test]
fn equal_patterns_are_equal_languages() {
    for (one, other) in [
        ("^(a|b)$", "^[ab]$"),
        ("^(?:GET|PUT)$", "^PUT$|^GET$"),
        ("a", "^[^]*a[^]*$"),
        ("^a", "^a[^]*$"),
        ("^(?:(?:ab)*)*$", "^(?:ab)*$"),
        ("^((a{1,2}){1,3}){2}$", "^a{2,12}$"),
        ("^a??$", "^a{0,1}$"),
        (r"^[\s\S]*$", ""),
    ] {
        let mut languages = Languages::new();
        assert_eq!(search(one, &mut languages), search(other, &mut languages), "{one:?} and {other:?}");
    }
    let mut languages = Languages::new();
    let list = full("PUT|GET|GET_ALL", &mut languages);
    assert_eq!(languages.as_texts(list), Some(vec!["GET", "GET_ALL", "PUT"]));
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let around = |open: &str, inner: &str, close: &str, n: usize| open.repeat(n) + inner + &close.repeat(n);
    let shallow = around("(", "a", ")", 200);
    let mut languages = Languages::new();
    let found = full(&shallow, &mut languages);
    assert!(languages.matches(found, "a") && !languages.matches(found, "aa"));
    for (open, close) in [("(", ")"), ("(?:", ")*"), ("(?=", ")"), ("(?<!", ")"), ("(a|", ")"), ("(?i:", ")")] {
        let error = read(&around(open, "a", close, 15_000)).unwrap_err();
        assert!(error.message.contains("deeper than 250"), "{error}");
    }
    assert!(read(&"(".repeat(99_999)).is_err() && read(&"[".repeat(99_999)).is_err());
    assert!(read(&"a".repeat(100_001)).unwrap_err().message.contains("limit is 100000"));
}

/// As deep as the limits allow, on a stack as small as threads have on some systems.
#[test]
fn nesting_within_the_limits_needs_little_stack() {
    let around = |open: &str, inner: &str, close: &str| open.repeat(240) + inner + &close.repeat(240);
    let sources = [
        around("(a|b", "c", "d)*"),
        around("(?:a?(?!b)", "c", "d?)+"),
        around("(?=a*", "b", ")"),
        around("(?<=", "b", "a*)"),
        "(?:(?<!x".repeat(120) + "b" + &"a?)y?)*".repeat(120),
        r"\b\w*".repeat(300),
        "(?<=a)b?".repeat(400),
        "a?".repeat(20_000),
        "[ab]".repeat(20_000),
        "(?=a)".repeat(20_000),
    ];
    let work = move || {
        for source in sources {
            let mut languages = Languages::new();
            let pattern = read(&source).unwrap_or_else(|e| panic!("{:.40}: {e}", source));
            for language in [pattern.search(&mut languages), pattern.full(&mut languages)] {
                let mut at = language.unwrap();
                for c in "abab".chars() {
                    at = languages.transitions(at).target(c as u32);
                }
            }
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn repetition_bombs_stay_counters() {
    for (source, yes, no) in [
        ("^(a?){1000}{0}$", "", "b"),
        ("^((a?){1000}){1000}$", "aaaa", "b"),
        ("^(((a{0,100}){0,100}){0,100})$", "aaaa", "ab"),
        ("^(a{0,5000}b){0,5000}$", "aabb", "ba"),
        ("^((a{1,100}b?){1,100}c?){1,100}$", "aabac", "b"),
        ("^(([a-z]{0,99}){0,99}x){9}$", "xxxxxxxxx", "xx"),
        ("^(a*)*$", "aaa", "b"),
        ("^((a|b)*)*c$", "abc", "ab"),
        ("(x+x+)+y", "xxy", "xx"),
        ("^(\\ba?\\b ?){500}$", "a", "b"),
        (".*a.{500}b.*", "b", "a"),
    ] {
        if source.contains("{1000}{0}") {
            assert!(read(source).is_err());
            continue;
        }
        let mut languages = Languages::new();
        let found = search(source, &mut languages);
        assert!(languages.len() < 10_000, "{source:?}: {} expressions", languages.len());
        if source != ".*a.{500}b.*" {
            assert!(languages.matches(found, yes), "{source:?} on {yes:?}");
        }
        assert!(!languages.matches(found, no), "{source:?} on {no:?}");
        for c in "aababcaaaaabxaaaab".chars().cycle().take(200) {
            let at = languages.transitions(found);
            languages.transitions(at.target(c as u32));
        }
        assert!(languages.len() < 50_000, "{source:?}: {} expressions", languages.len());
    }
    for source in ["(a{1000000000}){1000000000}", "(((\\b|a){1000}){1000}){1000}", "a{1073741825}"] {
        assert!(read(source).is_err(), "{source:?}");
    }
}

#[test]
fn conjunctions_are_decided_without_counting_everything() {
    // No text is in both; and of the last two, one is.
    let cases = [
        (r"^[a-z]+@[a-z]+\.[a-z]{2,3}$", "^((a{1,100}b?){1,100}c?){1,100}$", true),
        ("^([a-z]{1,50}[0-9]{0,50}){1,50}$", r"^([a-z0-9-]{1,63}\.){1,20}[a-z]{2,}$", true),
        ("^(?:a{1,9}b?){9,99}$", "^(?:a{2,9}b?){1,99}$", false),
    ];
    for (one, other, empty) in cases {
        let mut languages = Languages::new();
        languages.max_states = 100_000;
        let (one, other) = (search(one, &mut languages), search(other, &mut languages));
        let both = languages.and([one, other]);
        assert_eq!(languages.is_empty_language(both), Ok(empty));
    }
}

#[test]
fn a_search_that_takes_too_long_is_an_error() {
    let mut languages = Languages::new();
    languages.max_work = 100_000;
    let one = search("[^]{0,1000}a[^]{1000}b", &mut languages);
    let other = search("^((ab?){1,30}(ac?){1,30}(ad?){1,30}){1,30}$", &mut languages);
    let both = languages.and([one, other]);
    let error = languages.is_empty_language(both).unwrap_err();
    assert_eq!((error.limit, error.value), ("max_automaton_work", 100_000));
}
