//! What is read, and what each error says and where.

use super::{Lexer, common};
use crate::error::GrammarError;
use crate::expr::{Expr, Grammar, RegexSyntax};
use crate::print;

/// What terminals are where they stand is told apart in tests of its own.
fn parse(text: &str, start: Option<&str>) -> Result<Grammar, GrammarError> {
    super::parse(text, start, Lexer::DynamicComplete)
}

#[test]
fn terminals_go_as_far_as_they_can() {
    let start = |text: &str| {
        let mut grammar = super::parse(text, None, Lexer::Dynamic).expect(text);
        let (start, rule) = (grammar.rules.remove("start"), grammar.rules.remove("A"));
        print(&Grammar { start: start.expect(text), rules: Default::default() })
            + &rule.map_or(String::new(), |a| print(&Grammar { start: a, rules: Default::default() }))
    };
    for (text, expected) in [
        ("start: A \"x\"\nA: /a+/", "@longest(A) \"x\""),
        ("start: /a+/ \"x\"", "@longest(@regex(\"a+\", python)) \"x\""),
        ("start: /a+?b/", "@longest(@shortest(@regex(\"a+?b\", python)))"),
        ("start: A\nA: \"<\" /.*?/ \">\"", "@shortest("),
        ("start: A\nA[max_tokens=3]: /a+/", "@max_tokens(3, @longest("),
    ] {
        let printed = start(text);
        assert!(printed.contains(expected), "{text}\n{printed}");
    }
    for (pattern, lazy) in [
        ("a*?", true),
        ("a??", true),
        ("a{2,}?", true),
        ("(?:a)?", false),
        ("[*?]?", false),
        (r"\*?", false),
        ("(?i)a+", false),
    ] {
        assert_eq!(super::scope::repeats_lazily(pattern), lazy, "{pattern}");
    }
}

/// The grammar in normal spelling.
fn read(text: &str) -> String {
    print(&parse(text, None).unwrap_or_else(|error| panic!("{text}\n{error}")))
}

/// The body of the rule `start`, which `text` is, in normal spelling.
fn body(text: &str) -> String {
    let printed = read(&format!("start: {text}\na: \"a\"\nb: \"b\"\nX: \"x\"\nY: \"y\""));
    let line = printed.lines().find_map(|line| line.strip_prefix("start ::= "));
    line.unwrap_or_default().trim_end().to_string()
}

fn error(text: &str) -> GrammarError {
    parse(text, None).expect_err(text)
}

#[test]
fn bodies() {
    let cases = [
        (r#""a" b X"#, r#""a" b X"#),
        (r#""a" | b -> name | X"#, r#""a" | b | X"#),
        (r#"("a" b)? [X] a* b+"#, r#"("a" b)? X? a* b+"#),
        ("a ~ 2 b~1..3 X~0", "a{2} b{1,3} X{0}"),
        ("a{2} b{1,3} X{2,} Y{,3}", "a{2} b{1,3} X{2,} Y{0,3}"),
        (r#""a".."z" "é".."é""#, "[a-z] [é]"),
        (r#""A.b"i"#, r#"@regex("A\\.b", "i", python)"#),
        (r"/[a-z\/]+/ims", r#"@regex("[a-z/]+", "ims", python)"#),
        (r"/a/u /b/xx", r#"@regex("a", python) @regex("b", "x", python)"#),
        ("(a\n  b\n | X)", "a b | X"),
        ("a\n  // why\n  | b   # because\n\n  | X", "a | b | X"),
        ("a \\\n b", "a b"),
        ("| a", "\"\" | a"),
        ("", "\"\""),
        ("X & ~Y", "X - Y"),
        ("a X & ~(Y|\"z\"i)", ""),
    ];
    for (text, expected) in cases.iter().filter(|(_, expected)| !expected.is_empty()) {
        let found = body(text);
        let plain = |text: &str| text.replace('\'', "\"").replace("\\\\", "\\");
        assert_eq!(plain(&found), plain(expected), "{text}");
    }
}

#[test]
fn strings_have_the_escapes_of_lark() {
    let text = |source: &str| match parse(&format!("start: {source}"), None).expect(source).rules.remove("start") {
        Some(Expr::Text(text)) => text,
        other => panic!("{source}: {other:?}"),
    };
    assert_eq!(text(r#""\n\t\r\f\\\"""#), "\n\t\r\u{c}\\\"");
    assert_eq!(text(r#""\x41\u00e9\U0001F600""#), "Aé😀");
    assert_eq!(text(r#""\d\.\/\b""#), r"\d\.\/\b");
    assert_eq!(text(r#""'//#%""#), "'//#%");
}

#[test]
fn names_and_marks_of_rules() {
    let printed =
        read("?start.2: _x | !y\n!_x.-1: A\n?!y: A_B-1\nA.3: \"a\"\nA_B-1: \"b\"".replace(" | !y", " | y").as_str());
    assert!(printed.starts_with("root ::= start\n"), "{printed}");
    assert_eq!(parse("top: \"x\"", Some("top")).map(|grammar| grammar.start), Ok(Expr::Rule("top".into())));
    assert_eq!(parse("TOP: \"x\"", Some("TOP")).map(|grammar| grammar.start), Ok(Expr::Rule("TOP".into())));
}

#[test]
fn rules_that_nothing_needs_are_left_out() {
    let grammar = parse("start: a\na: \"x\"\nb: \"y\"\n%import common (WS, INT)", None).expect("a grammar");
    assert_eq!(grammar.rules.keys().collect::<Vec<_>>(), ["a", "start"]);
}

#[test]
fn ignored_terminals_follow_terminals_in_rules() {
    let printed = read("start: A \"b\" c /d/\nc: A+\nA: B \"x\"\nB: \"y\"\n%ignore \" \" | B\n%ignore /#.*/");
    for line in [
        "root ::= _ignore start",
        r##"_ignore ::= (@longest(" " | B) | @longest(@regex("#.*", python)))*"##,
        r#"start ::= A _ignore "b" _ignore c @regex("d", python) _ignore"#,
        "c ::= (A _ignore)+",
        r#"A ::= B "x""#,
    ] {
        assert!(printed.lines().any(|found| found == line), "{line}\n{printed}");
    }
    let terminal = parse("A: \"a\"\n%ignore \" \"", Some("A")).map(|grammar| grammar.start);
    let [ignore, a] = ["%ignore", "A"].map(|name| Expr::Rule(name.to_string()));
    assert_eq!(terminal, Ok(Expr::Sequence(vec![ignore.clone(), a, ignore])));
}

#[test]
fn definitions_are_overridden_and_extended() {
    assert!(
        read("start: \"a\"\n%override start: \"b\"\n%extend start: \"c\" | \"d\"")
            .contains(r#"start ::= "b" | "c" | "d""#)
    );
    assert!(read("start: WS\n%import common.WS\n%extend WS: \"~\"").contains(r#"python) | "~""#));
}

#[test]
fn every_common_terminal_is_a_pattern() {
    for name in common::names() {
        let grammar = parse(&format!("%import common.{name} -> X\nstart: X"), None).expect(name);
        let Some(Expr::Regex { pattern, syntax: RegexSyntax::Python, .. }) = grammar.rules.get("X") else {
            panic!("{name}")
        };
        assert!(!pattern.is_empty());
    }
    let both = read("%import common (INT, WS)\nstart: INT\n%ignore WS");
    assert!(both.contains("INT ::= @regex(\"[0-9]+\", python)"), "{both}");
}

#[test]
fn common_terminals_match_what_they_are_documented_to() {
    use punchcard_automata::{Languages, pattern};
    let cases: [(&str, &[&str], &[&str]); 9] = [
        ("ESCAPED_STRING", &[r#""""#, r#""a\"b""#, r#""\\""#], &[r#""a" b""#, r#""\""#, "\"\n\"", ""]),
        ("NUMBER", &["1", "1.", ".5", "1.5e-3", "2E4"], &[".", "-1", "e5", ""]),
        ("SIGNED_NUMBER", &["-1", "+.5", "7"], &["--1", "+"]),
        ("FLOAT", &["1.", "1e5", ".5e+1"], &["1", "."]),
        ("C_COMMENT", &["/**/", "/* a\n * b **/"], &["/* */ */", "/*/"]),
        ("CPP_COMMENT", &["//", "// a"], &["// a\n", "/"]),
        ("CNAME", &["_a1"], &["1a", ""]),
        ("NEWLINE", &["\n", "\r\n\n"], &["\r", ""]),
        ("_STRING_ESC_INNER", &["", r"a\\", r"\x"], &[r"a\", r"\\\"]),
    ];
    for (name, accepted, refused) in cases {
        let source = common::pattern(name).expect(name);
        let mut languages = Languages::new();
        let language =
            pattern::parse(source, &pattern::Options::default()).expect(name).full(&mut languages).expect(name);
        accepted.iter().for_each(|text| assert!(languages.matches(language, text), "{name} {text:?}"));
        refused.iter().for_each(|text| assert!(!languages.matches(language, text), "{name} {text:?}"));
    }
}

#[test]
fn templates_become_rules_by_arguments() {
    let rules = |text: &str| parse(text, None).expect(text).rules.into_keys().collect::<Vec<_>>();
    assert_eq!(
        rules("start: s{X} s{X} s{\"x\"} s{\"x\"i}\ns{a}: a*\nX: \"x\""),
        ["X", "start", "s{\"x\"i}", "s{\"x\"}", "s{X}"]
    );
    // Recursive with the same arguments; a template as an argument; a template within an argument.
    assert_eq!(rules("start: s{\"a\"}\ns{y}: y s{y} | \"c\""), ["start", "s{\"a\"}"]);
    assert_eq!(rules("start: w{s,\"a\"}\nw{t,x}: t{x}\ns{y}: y"), ["start", "s{\"a\"}", "w{s,\"a\"}"]);
    assert_eq!(rules("start: s{s{\"a\"}}\ns{y}: y"), ["start", "s{\"a\"}", "s{s{\"a\"}}"]);
    let long = rules(&format!("start: s{{\"{}\"}}\ns{{y}}: y", "x".repeat(100)));
    assert_eq!(long, ["start", "s{#0}"]);
}

#[test]
fn additions_of_llguidance() {
    let grammar = parse(
        "%llguidance {}\nstart: <|a|> <[1-3,7]> <[^5]> <[*]> %json {\"type\": \"integer\"} %lark {\n start: \"x\"\n}",
        None,
    );
    let inner = Grammar { start: Expr::Rule("start".into()), rules: [("start".into(), Expr::Text("x".into()))].into() };
    let token = |ids: &[u32], names: &[&str], except| Expr::Token {
        ids: ids.to_vec(),
        names: names.iter().map(|name| name.to_string()).collect(),
        except,
    };
    let expected = Expr::Sequence(vec![
        token(&[], &["<|a|>"], false),
        token(&[1, 2, 3, 7], &[], false),
        token(&[5], &[], true),
        token(&[], &[], true),
        Expr::JsonSchema { schema: "{\"type\": \"integer\"}".into(), options: Default::default() },
        Expr::Grammar(Box::new(inner)),
    ]);
    assert_eq!(grammar.expect("a grammar").rules.remove("start"), Some(expected));
}

#[test]
fn attributes() {
    let cases = [
        ("start[lazy]: /.*/ \"x\"", r#"start ::= @shortest(@regex(".*", python) "x") _ignore"#),
        ("start[stop=\"</x>\"]: /.*/", r#"start ::= @shortest(@regex(".*", python) "</x>") _ignore"#),
        ("start[suffix=/b+/]: /.*/", r#"start ::= @shortest(@regex(".*", python) @regex("b+", python)) _ignore"#),
        ("start[capture]: \"a\"", r#"start ::= @named("capture", "start", "a") _ignore"#),
        ("start[capture=\"q\"]: \"a\" \"b\"", r#"start ::= @named("capture", "q", "a" _ignore "b" _ignore)"#),
        ("start[max_tokens=10]: /.*/", r#"start ::= @max_tokens(10, @regex(".*", python)) _ignore"#),
        ("start: T\nT[stop=\"x\"].2: \"a\"*", r#"T ::= @shortest("a"* "x")"#),
    ];
    for (text, line) in cases {
        let printed = read(&format!("{text}\n%ignore \" \""));
        assert!(printed.lines().any(|found| found == line), "{line}\n{printed}");
    }
}

#[test]
fn substrings_are_runs_of_chunks() {
    use punchcard_automata::{Language, Languages};
    fn language(expr: &Expr, languages: &mut Languages) -> Language {
        match expr {
            Expr::Text(text) => languages.literal(text),
            Expr::Sequence(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| language(part, languages)).collect();
                languages.sequence(parts)
            }
            Expr::Choice(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| language(part, languages)).collect();
                languages.union(parts)
            }
            other => panic!("{other:?}"),
        }
    }
    let runs = |source: &str, accepted: &[&str], refused: &[&str]| {
        let grammar = parse(&format!("start: A\nA: %regex {source}"), None).expect(source);
        let mut languages = Languages::new();
        let runs = language(&grammar.rules["A"], &mut languages);
        accepted.iter().for_each(|text| assert!(languages.matches(runs, text), "{text:?}"));
        refused.iter().for_each(|text| assert!(!languages.matches(runs, text), "{text:?}"));
    };
    let chunks = r#"{"substring_chunks": ["abc", "de", "fg"]}"#;
    runs(chunks, &["", "abc", "de", "fg", "abcde", "defg", "abcdefg"], &["ab", "cde", "abcfg", "deabc"]);
    runs(r#"{"substring_words": "foo bar. baz"}"#, &["foo bar", " bar.", "baz"], &["fo", "bar baz"]);
    runs(r#"{"substring_chars": "ab c"}"#, &["b c", "a"], &["ac"]);
}

#[test]
fn errors_say_where_and_what_to_do() {
    let cases: &[(&str, &str)] = &[
        ("", "line 1, column 1: There is no rule \"start\" to begin with. Define it, or say with which rule to begin"),
        ("strat: \"a\"", "line 1, column 1: There is no rule \"start\" to begin with. Did you mean \"strat\"?"),
        ("start{x}: x", "line 1, column 1: \"start\" has parameters"),
        (
            "start: foo bar\nfoo: \"a\"\nbaz: \"a\"",
            "line 1, column 12: The rule \"bar\" is not defined. Did you mean \"baz\"?",
        ),
        ("start: WS", "line 1, column 8: The terminal \"WS\" is not defined. Write %import common.WS"),
        (
            "start: \"a\"\n\nstart: \"b\"",
            "line 3, column 1: \"start\" is defined a second time; the first is on line 1",
        ),
        ("%override start: \"a\"", "line 1, column 11: \"start\" is overridden, but not defined before"),
        ("%extend start: \"a\"", "line 1, column 9: \"start\" is extended, but not defined before"),
        (
            "start{a}: a\n%extend start{b}: b",
            "line 2, column 9: An extension has the parameters of what it extends. They are {a}",
        ),
        ("start: \"a\"\n%extend start[lazy]: \"b\"", "line 2, column 9: An extension has no attributes of its own"),
        // Unclosed.
        ("start: \"a\n", "line 1, column 8: This string is not closed"),
        ("start: /a", "line 1, column 8: This regular expression is not closed"),
        ("start: /a\nb: /b/", "line 1, column 8: This regular expression goes over the end of its line"),
        ("start: (\"a\" | \"b\"", "line 1, column 8: `(` is not closed. Put `)` at its end"),
        ("start: [\"a\"", "line 1, column 8: `[` is not closed"),
        ("start: %lark { start: \"a\"", "line 1, column 14: The grammar after %lark is not closed"),
        ("start: %json {\"a\": 1", "line 1, column 20: This is no JSON: EOF"),
        (
            "start: %json {\n  \"a\": 1,\n}",
            "line 3, column 1: This is no JSON: key must be a string. JSON has no comments and no trailing commas",
        ),
        ("start: %json 1", "line 1, column 14: %json is followed by a JSON object in braces"),
        ("start: \"a\")", "line 1, column 11: Here is `)`, where the end of the line is expected. It closes nothing"),
        ("start: (\"a\"]", "line 1, column 12: Here is `]`, where `)` is expected"),
        // Characters and literals.
        ("start: 'a'", "line 1, column 8: The character '\\'' means nothing here. Strings stand in double quotes"),
        ("start: \"a\";", "line 1, column 11: The character ';' means nothing here. A definition ends with its line"),
        ("start: @other", "line 1, column 8: The character '@' means nothing here. Write the other grammar in place"),
        ("start: é", "line 1, column 8: The character 'é' means nothing here. Names are made of ASCII letters"),
        ("start: \"\\u12\"", "line 1, column 9: \\u is followed by 4 hexadecimal digits"),
        ("start: \"\\ud800\"", "line 1, column 9: \\u is followed by 4 hexadecimal digits of a Unicode character"),
        ("start: /a/l", "line 1, column 11: The flag `l` hangs on the locale of the machine. Leave it out"),
        ("start: /a/ig", "line 1, column 12: There is no flag 'g' of regular expressions"),
        ("start: /\\//\nA: /a\\/(b/", "line 2, column 8: "),
        ("start: /(a)\\1/", "line 1, column 12: "),
        ("start: \"ab\"..\"c\"", "line 1, column 8: A range begins with one character"),
        ("start: \"a\"..\"cd\"", "line 1, column 13: A range ends with one character"),
        (
            "start: \"z\"..\"a\"",
            "line 1, column 8: The range from 'z' to 'a' is empty. Write the smaller character first",
        ),
        ("start: \"a\"..\"c\"i", "line 1, column 8: A range of characters has no flags"),
        (
            "fooBar: \"a\"",
            "line 1, column 1: The name \"fooBar\" mixes cases. Write \"foobar\" for a rule, \"FOOBAR\" for a terminal",
        ),
        ("_1: \"a\"", "line 1, column 1: The name \"_1\" has no letter"),
        // Operators.
        (
            "start: \"a\"~3..2",
            "line 1, column 8: No text is repeated at least 3 and at most 2 times. Write the smaller",
        ),
        (
            "start: \"a\"+?",
            "line 1, column 12: Here is `?`, where something to match is expected. One operator follows",
        ),
        ("start: * \"a\"", "line 1, column 8: Here is `*`, where the end of the line is expected"),
        ("start: \"a\"~99999999999", "line 1, column 12: 99999999999 is no count"),
        ("start: \"a\"~99999999999999999999", "line 1, column 12: The number 99999999999999999999 is too large"),
        ("start \"a\"", "line 1, column 7: Here is a string, where `:` after \"start\" is expected"),
        (
            "start = \"a\"",
            "line 1, column 7: Here is `=`, where `:` after \"start\" is expected. A definition is written",
        ),
        ("start: \"a\"\n  \"b\"", "line 2, column 3: Here is a string, where a definition is expected"),
        // Terminals.
        (
            "start: A\nA: B\nB: \"x\" A?",
            "line 3, column 8: The terminal \"A\" contains itself: A -> B -> A. Only rules may be",
        ),
        ("start: A\nA: b\nb: \"x\"", "line 2, column 4: The rule \"b\" stands in a terminal"),
        ("start: A\nA: <|x|>", "line 2, column 4: The token <|x|> stands in a terminal"),
        ("start: A\nA: %json {}", "line 2, column 4: Inline JSON stands in a terminal"),
        ("start: ~a\na: \"x\"", "line 1, column 9: The rule \"a\" stands in a terminal"),
        ("start: A\nA{x}: x", "line 2, column 2: Terminals have no parameters. Make it a rule, in lower case"),
        ("start: A\nA[max_tokens=3]: \"x\"\nB: A", "line 3, column 4: \"A\" has max_tokens or capture"),
        // Templates.
        ("start: s{\"a\"}\ns{x,y}: x y", "line 1, column 8: \"s\" takes 2 arguments, not 1. Write s{x, y}"),
        ("start: s\ns{x}: x", "line 1, column 8: \"s\" takes 1 arguments, not 0"),
        ("start: s{\"a\"}\ns: \"x\"", "line 1, column 8: \"s\" takes 0 arguments, not 1. Write s"),
        ("start: s{(\"a\")}\ns{x}: x", "line 1, column 10: An argument is a name, a string"),
        ("start: s{\"a\"}\ns{x}: x{\"b\"}", "line 2, column 7: \"a\" takes no arguments"),
        ("start: s{\"a\"}\ns{x,x}: x", "line 2, column 5: There are two parameters \"x\". Rename one"),
        ("start: s{\"a\"}\ns{x}: x s{p{x}}\np{y}: y", "line 2, column 9: \"s\" makes rules without end"),
        ("start: s{\"a\"}\ns{x}: x s{p{x,x}}\np{y,z}: y", "makes rules without end"),
        // Directives.
        ("%import common.WORDS", "line 1, column 16: The common library has no \"WORDS\". Did you mean \"WORD\"?"),
        (
            "%import common (INT, FOO_BAR_BAZ)",
            "line 1, column 22: The common library has no \"FOO_BAR_BAZ\". It has DIGIT",
        ),
        (
            "%import python.NAME",
            "line 1, column 9: There is no library \"python\" to import from. Of lark's own grammars",
        ),
        (
            "%import mine.NAME",
            "line 1, column 9: There is no library \"mine\" to import from. Only %import common.NAME",
        ),
        ("%import .mine.NAME", "line 1, column 9: Grammars are not read from files"),
        ("%import common.INT -> int", "line 1, column 23: A terminal is imported under the name of a terminal"),
        ("%import common", "line 1, column 15: Here is the end of the grammar, where `.` and a name"),
        (
            "%declare INDENT",
            "line 1, column 1: A terminal that is only declared matches nothing. Define it; if a special token",
        ),
        ("%ignroe \" \"", "line 1, column 1: There is no directive %ignroe. Did you mean %ignore?"),
        ("%json {}", "line 1, column 1: %json stands inside of a rule"),
        (
            "%llguidance {\"no_forcing\": true}",
            "line 1, column 13: The option \"no_forcing\" is not supported. Leave it out",
        ),
        ("start: A\nA: %regex {\"pattern\": \"x\"}", "line 2, column 11: %regex does not know \"pattern\""),
        ("start: A\nA: %regex {}", "line 2, column 11: %regex has one member, not 0"),
        (
            "start: A\nA: %regex {\"substring_chunks\": [1]}",
            "line 2, column 11: The value of \"substring_chunks\" is of another type",
        ),
        // Special tokens.
        ("start: <>", "line 1, column 8: `<` begins the name of a special token, and there is none"),
        ("start: <|a|", "line 1, column 8: `<` begins the name of a special token, and there is none"),
        ("start: <[a]>", "line 1, column 8: \"a\" is no token id"),
        ("start: <[5-3]>", "line 1, column 8: The range of token ids 5-3 is empty"),
        ("start: <[0-4294967295]>", "line 1, column 8: These are more than 1048576 token ids"),
        // Attributes.
        (
            "start[temperature=0.7]: \"a\"",
            "line 1, column 7: The attribute \"temperature\" is not supported. A grammar says",
        ),
        ("start[stop_capture=\"a\"]: \"a\"", "line 1, column 7: The attribute \"stop_capture\" is not supported"),
        ("start[lazzy]: \"a\"", "line 1, column 7: There is no attribute \"lazzy\". Did you mean \"lazy\"?"),
        ("start[stop=\"\"]: \"a\"", "line 1, column 12: An empty `stop` is the end of the output in llguidance"),
        ("start[stop=\"a\", suffix=\"b\"]: \"a\"", "line 1, column 17: A rule has one `stop` or `suffix`"),
        ("start[lazy]: a\na: \"x\"", "line 1, column 14: The rule \"a\" stands in a terminal"),
        ("start: s{\"a\"}\ns[lazy]{x}: x", "Here is `{`, where `:` after \"s\" is expected"),
        ("start: s{\"a\"}\ns{x}[lazy]: x", "line 2, column 1: A template cannot be `lazy`"),
        ("start: %lark {\n begin: \"a\"\n}", "line 1, column 8: There is no rule \"start\" to begin with"),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let found = error(text).to_string();
        let matches = if expected.starts_with("line") { found.starts_with(expected) } else { found.contains(expected) };
        if !matches {
            wrong.push(format!("{text}\n  found     {found}\n  expected  {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn large_and_deep_grammars_end_quickly() {
    let rules: String = (0..50_000).map(|i| format!("r{i}: \"x\" r{}\nT{i}: \"x\" T{}?\n", i + 1, i + 1)).collect();
    let text = format!("start: r0 T0\n{rules}r50000: \"y\"\nT50000: \"y\"");
    assert_eq!(parse(&text, None).expect("a grammar").rules.len(), 100_003);
    for (open, close) in [("(", ")"), ("[", "]"), ("~", ""), ("s{", "}"), ("%lark {start: ", "}")] {
        let text = format!("start: {}\"a\"{}\ns{{x}}: x", open.repeat(100_000), close.repeat(100_000));
        assert!(error(&text).to_string().contains("nest"), "{open}");
        let text = format!("start: {}\"a\" \"b\"{}\ns{{x}}: x", open.repeat(90), close.repeat(90));
        let deep = if open.starts_with("s{") { text.replace(" \"b\"", "") } else { text };
        parse(&deep, None).unwrap_or_else(|error| panic!("{open} {error}"));
    }
    let deep = format!("start: {}\"a\"{}", "(\"b\" | \"c\" (".repeat(240), ")*)".repeat(240));
    parse(&deep, None).expect("within the limits of expressions");
    let deeper = format!("start: {}\"a\"{}", "(\"b\" | \"c\" ~(".repeat(160), "))".repeat(160));
    parse(&deeper, None).expect("within the limits of expressions");
    for text in ["<", "%", "\\", "\"\\", "/\\", "-", "start[", "start{", "%import", "%json", "~", "\u{feff}start: ~"] {
        error(text);
    }
}
