//! What is read, and what each error says and where.

use super::*;
use crate::{normal_form, print};
use proptest::prelude::*;

/// The grammar in normal spelling.
fn read(text: &str) -> String {
    print(&parse(text, None).unwrap_or_else(|error| panic!("{text}\n{error}")))
}

/// The body of the one rule, in normal spelling.
fn body(text: &str) -> String {
    let printed = read(&format!("root ::= {text}"));
    printed.strip_prefix("root ::= ").unwrap_or_default().trim_end().to_string()
}

fn error(text: &str) -> GrammarError {
    parse(text, None).expect_err(text)
}

#[test]
fn expressions_of_all_notations() {
    let cases = [
        // Literals and their escapes.
        (r#""a\n\t\r\\\"\[\]\x41\u00e9\U0001F600""#, r#""a\n\t\r\\\"[]Aé😀""#),
        (r#""\uD83D\uDE00""#, r#""😀""#),
        (r#""\x00\x7f\u200b""#, r#""\x00\x7F\u200B""#),
        (r"'a\n'", r#""a\\n""#),
        (r#"'say "hi"'"#, r#""say \"hi\"""#),
        (r#""a\-b\_\.\@\ ""#, r#""a-b_.@ ""#),
        ("\"\"", "\"\""),
        ("()", "\"\""),
        // Classes.
        (r#"[^"\\\x7F\x00-\x1F]"#, r#"[^\x00-\x1F"\\\x7F]"#),
        ("[a-z0-9_]", "[0-9_a-z]"),
        ("[-a]", r"[\-a]"),
        ("[a-]", r"[\-a]"),
        (r"[\-\]\^a]", r"[\-\]\^a]"),
        ("[+#]?", r"[\x23+]?"),
        (r"[\d_]", "[0-9_]"),
        (r"[^\s]", r"[^\t-\r ]"),
        ("[ぁ-ゟ]", "[ぁ-ゟ]"),
        (".", "."),
        (r"[^\x00-\U0010FFFF]", "@nothing"),
        // W3C.
        ("#x41 | #x9", "\"A\" | \"\\t\""),
        ("[#x41-#x5A#x61]", "[A-Za]"),
        ("[^#x20-#x3F]", "[^ -?]"),
        ("[#x10000-#x10FFFF]", "[^\\x00-\\uFFFF]"),
        ("[a-z]* - ('xml' | 'XML')", r#"[a-z]* - ("xml" | "XML")"#),
        ("[a-z]-'x'-'y'", r#"[a-z] - "x" - "y""#),
        ("'a' /* one\n * two */ 'b' (* three *)", "\"a\" \"b\""),
        ("'a' [ wfc: Well-formedness ] 'b'", "\"a\" \"b\""),
        // Repetitions.
        ("\"a\"{2}", "\"a\"{2}"),
        ("\"a\"{2,}", "\"a\"{2,}"),
        ("\"a\" { 2 , 3 }", "\"a\"{2,3}"),
        ("\"a\"{,3}", "\"a\"{0,3}"),
        ("\"a\"{2,-1}", "\"a\"{2,}"),
        ("\"a\"{0,100000}", "\"a\"{0,100000}"),
        ("\"a\"*?", "(\"a\"*)?"),
        // Sequences, choices and groups.
        ("\"a\" \"b\" | \"c\"", "\"a\" \"b\" | \"c\""),
        ("((\"a\" \"b\") \"c\" | (\"d\" | \"e\"))", "\"a\" \"b\" \"c\" | \"d\" | \"e\""),
        ("(\"a\" | \"b\") \"c\"", "(\"a\" | \"b\") \"c\""),
        ("| \" \"", "\"\" | \" \""),
        ("\"a\" |", "\"a\" | \"\""),
        ("(\n \"a\" # one\n\n | \"b\"\n)\n+", "(\"a\" | \"b\")+"),
        ("\"a\"\n  \"b\"\n  | \"c\"\n", "\"a\" \"b\" | \"c\""),
        ("\"a\";", "\"a\""),
        // Tokens.
        ("<think> !</think>* <[7]>", "@token(\"<think>\") @token_except(\"</think>\")* @token(7)"),
        ("Token(1, 2) ExcludeToken(3)", "@token(1, 2) @token_except(3)"),
        // Extensions.
        ("@nothing", "@nothing"),
        ("@and(. \"a\" | \"b\", @not(\"c\"), \"d\")", "@and(. \"a\" | \"b\", @not(\"c\"), \"d\")"),
        ("@and()", "@and()"),
        ("@and(\"a\")", "@and(\"a\")"),
        ("@shortest(.* \"x\")", "@shortest(.* \"x\")"),
        ("@text_without( 'a' , \"b\")", "@text_without(\"a\", \"b\")"),
        (r#"@regex("\\d+", "i", python)"#, r#"@regex('\d+', "i", python)"#),
        ("@regex('[a-z]', ecma)", "@regex(\"[a-z]\")"),
        ("Regex(\"[a-z]\")", "@regex(\"[a-z]\")"),
        (r#"@json_schema({"b": [1, "}"], "a": 2})"#, r#"@json_schema({"b": [1, "}"], "a": 2})"#),
        ("@json_schema(true, {\"profile\": \"spec\"})", "@json_schema(true, {\"profile\":\"spec\"})"),
        ("@json_schema(\"not JSON\")", "@json_schema(\"not JSON\")"),
        ("@schema_string({}, without \"</a>\" \"b\")", "@schema_string({}, without \"</a>\" \"b\")"),
        ("@schema_string({},{\"x\":1},without \"b\")", "@schema_string({}, {\"x\":1}, without \"b\")"),
        ("@token(1, \"<|end|>\")", "@token(1, \"<|end|>\")"),
        ("@max_tokens(10, \"a\" | \"b\")", "@max_tokens(10, \"a\" | \"b\")"),
        ("@named(\"tag\", \"x\", \"a\")", "@named(\"tag\", \"x\", \"a\")"),
    ];
    for (text, expected) in cases {
        assert_eq!(body(text), expected, "{text}");
    }
}

#[test]
fn rules_end_where_the_next_begins() {
    let one_line = "root ::= a b a ::= \"a\" b ::= \"b\"";
    assert_eq!(read(one_line), "root ::= a b\na ::= \"a\"\nb ::= \"b\"\n");
    assert_eq!(read("root\n::=\na # ::= no\nb\na::=\"a\"\n\n\nb   :=   \"b\""), read(one_line));
    assert_eq!(read("\u{FEFF}# x1\r\nroot = a b;\r\na = 'a';\r\nb = 'b';"), read(one_line));
    assert_eq!(read("[1]  root ::= a b\n[2a] a ::= 'a'\n[30] b ::= 'b'"), read(one_line));
    // A class at the end of a rule is no number of a production if it is not alone on the line before a name.
    assert_eq!(read("root ::= a [1]\na ::= \"a\""), "root ::= a [1]\na ::= \"a\"\n");
    assert_eq!(read("ws ::=\nroot ::= ws"), "root ::= ws\nws ::= \"\"\n");
}

#[test]
fn names() {
    let rules =
        "root ::= a-b a_b a.b 1 Über\na-b ::= \"1\"\na_b ::= \"2\"\na.b ::= \"3\"\n1 ::= \"4\"\nÜber ::= \"5\"\n";
    assert_eq!(read(rules), rules);
    assert_eq!(read("root ::= a.*\na ::= \"a\""), "root ::= a .*\na ::= \"a\"\n");
    assert_eq!(read("root ::= a- \"b\"\na ::= . "), "root ::= a - \"b\"\na ::= .\n");
    // XGrammar's functions are rules where there are such rules.
    assert_eq!(read("root ::= Token(\"a\")\nToken ::= \"t\""), "root ::= Token \"a\"\nToken ::= \"t\"\n");
    assert_eq!(
        read("root[max_tokens=8, capture=\"x\"] ::= a\na[capture] ::= \"a\""),
        "root ::= @named(\"capture\", \"x\", @max_tokens(8, a))\na ::= @named(\"capture\", \"a\", \"a\")\n"
    );
}

#[test]
fn the_start() {
    let start = |text: &str, start| parse(text, start).map(|grammar| grammar.start);
    let rule = |name: &str| Ok(Expr::Rule(name.into()));
    assert_eq!(start("a ::= \"a\"\nroot ::= a", None), rule("root"));
    assert_eq!(start("a ::= \"a\"\nb ::= a", None), rule("a"));
    assert_eq!(start("a ::= \"a\"\nroot ::= a", Some("a")), rule("a"));
    let error = start("value ::= \"a\"", Some("vlaue")).expect_err("no such rule");
    assert_eq!(error.to_string(), "There is no rule \"vlaue\" to start with. Did you mean \"value\"?");
}

#[test]
fn errors_say_what_and_where() {
    let cases = [
        ("", (0, 0), "no rules"),
        ("# only a comment", (0, 0), "no rules"),
        ("root ::= expresion\nexpression ::= \"a\"", (1, 10), "There is no rule \"expresion\""),
        ("root ::= \"a\"\na ::= \"b\"\nroot ::= \"c\"", (3, 1), "defined twice, first on line 1"),
        ("root ::= \"a", (1, 10), "literal is not closed"),
        ("root ::= \"a\nb\"", (1, 10), "literal is not closed"),
        ("root ::= 'a", (1, 10), "literal is not closed"),
        ("root ::= \"a\" [a-z", (1, 14), "class is not closed"),
        ("root ::= [z-a]", (1, 11), "range z-a is out of order"),
        ("root ::= [\\d-a]", (1, 11), "from a character to a character"),
        ("root ::= []", (1, 10), "class is empty"),
        ("root ::= [^]", (1, 10), "class is empty"),
        ("root ::=\n  (\"a\" | \"b\"\nx ::= \"c\"", (2, 3), "parenthesis is not closed"),
        ("root ::= (((\"a\")", (1, 11), "parenthesis is not closed"),
        ("root ::= \"a\")", (1, 13), "closing parenthesis"),
        ("root ::= \"a\"]", (1, 13), "closing bracket"),
        ("root ::= \"a\"{3,2}", (1, 13), "out of order"),
        ("root ::= \"a\"{,}", (1, 13), "no bounds"),
        ("root ::= \"a\"{x}", (1, 13), "brace begins a repetition"),
        ("root ::= \"a\"{1,2", (1, 13), "repetition is not closed"),
        ("root ::= \"a\"{99999999999}", (1, 14), "too large"),
        ("root ::= * \"a\"", (1, 10), "nothing to repeat"),
        ("root ::= \"é\" ? | +", (1, 18), "nothing to repeat"),
        ("root ::= \"a\\q\"", (1, 12), "no escape \\q"),
        ("root ::= \"\\x4\"", (1, 11), "needs 2 hexadecimal digits"),
        ("root ::= \"\\uD800\"", (1, 11), "surrogate"),
        ("root ::= \"\\uD800\\u0041\"", (1, 11), "surrogate"),
        ("root ::= \"\\U00110000\"", (1, 11), "no such character"),
        ("root ::= #x110000", (1, 10), "no such character"),
        ("root ::= #xD800", (1, 10), "surrogate"),
        ("root ::= \"a\" /* b", (1, 14), "comment is not closed"),
        ("root ::= \"a\" - ", (1, 16), "text ends"),
        ("root ::= \"a\", \"b\"", (1, 13), "comma"),
        ("root : \"a\"", (1, 1), "a rule should begin"),
        ("root ::= a : b", (1, 12), "without a name"),
        ("root ::= /a/", (1, 10), "slash"),
        ("root ::= “a”", (1, 10), "typographic"),
        ("root ::= (=\"a\")", (1, 10), "look-ahead"),
        ("root ::= TagDispatch((\"a\", b))", (1, 10), "TagDispatch is not supported"),
        ("<root> ::= \"a\"", (1, 1), "a rule should begin"),
        ("root ::= <a b>", (1, 10), "token is not closed"),
        ("root ::= <[x]>", (1, 10), "no token id"),
        ("root ::= @nott(\"a\")", (1, 10), "no @nott"),
        ("root ::= @not", (1, 10), "needs arguments"),
        ("root ::= @not(\"a\"", (1, 14), "parenthesis is not closed"),
        ("root ::= @not(\"a\", \"b\")", (1, 18), "comma"),
        ("root ::= @max_tokens(a, \"b\")", (1, 22), "a number of tokens"),
        ("root ::= @regex(a)", (1, 17), "a literal"),
        ("root ::= @regex(\"a\", perl)", (1, 22), "dialect"),
        ("root ::= @json_schema({\"a\": })", (1, 29), "no JSON"),
        ("root ::= @json_schema({\n\"a\": ])", (2, 6), "no JSON"),
        ("root ::= @json_schema(x)", (1, 23), "JSON should come"),
        ("root ::= @token(x)", (1, 17), "token id"),
        // A backslash of W3C or of GBNF?
        ("echar ::= '\\' [tbnrf\\\"']", (1, 21), "means two things"),
    ];
    for (text, place, message) in cases {
        let error = error(text);
        assert!(error.to_string().contains(message), "{text}\n{error}");
        let spot = error.spot.map_or((0, 0), |spot| (spot.line, spot.column));
        assert_eq!(spot, place, "{text}\n{message}");
    }
    let spot = error("root ::=\n  [z-a] \"b\"\n").spot.expect("a place");
    assert_eq!(spot.excerpt, "  [z-a] \"b\"");
}

#[test]
fn hints_name_the_remedy() {
    let cases = [
        ("root ::= expresion\nexpression ::= \"a\"", "Did you mean \"expression\"?"),
        ("root ::= a-b\na ::= .\nb ::= .", "Where a difference is meant, write spaces around the '-'"),
        ("root ::= a.b\na ::= .\nb ::= .", "Where any character is meant, write spaces around the '.'"),
        ("root ::= @jsonschema({})", "Did you mean @json_schema?"),
        ("root ::= x", "Define it: x ::= ..."),
    ];
    for (text, hint) in cases {
        assert_eq!(error(text).hint, hint, "{text}");
    }
}

#[test]
fn nesting_is_read_or_refused() {
    let nested =
        |open: &str, depth, close: &str| format!("root ::= {}\"a\"{}", open.repeat(depth), close.repeat(depth));
    assert_eq!(read(&nested("(", 500, ")")), "root ::= \"a\"\n");
    assert_eq!(error(&nested("(", 501, ")")).spot.map(|spot| spot.column), Some(510));
    assert!(parse(&nested("(", 1_000_000, ")"), None).is_err());
    assert!(parse(&nested("@not(", 500, ")"), None).is_ok());
    assert!(parse(&nested("", 1_000_000, "*"), None).is_err());
    assert!(parse(&nested("(\"b\" | \"c\" ", 400, "*)"), None).is_err());
    let deep = format!("root ::= @json_schema({}{})", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse(&deep, None).is_ok());
    assert_eq!(error("root ::= @json_schema([[)").spot.map(|spot| spot.column), Some(25));
}

#[test]
fn long_texts_take_time_in_proportion() {
    let parts = [
        "root ::= ".to_string() + &"a ".repeat(300_000) + "\na ::= \"a\"",
        "root ::= ".to_string() + &"\"a\" | ".repeat(300_000),
        "root ::= ".to_string() + &"\"a\" - ".repeat(300_000) + "\"b\"",
        "root ::= [".to_string() + &"ab".repeat(500_000) + "]",
        "root ::= ".to_string() + &"[a] ".repeat(300_000),
        "root ::= ".to_string() + &"a[a] ".repeat(300_000) + "\na ::= \"a\"",
        "root ::= ".to_string() + &"a # comment\n".repeat(100_000) + "\na ::= \"a\"",
        (0..100_000).map(|i| format!("rule{i} ::= \"a\" rule{i}\n")).collect(),
        "root ::= ".to_string() + &"Token(1) ".repeat(100_000),
        "root ::= ".to_string() + &"[ wfc: ".repeat(100_000),
    ];
    let started = std::time::Instant::now();
    for text in parts {
        let _ = parse(&text, None);
    }
    // Quadratic time would be minutes.
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever is read can be printed and read again; whatever is not is an error, and no panic.
    #[test]
    fn any_text_is_read_or_refused(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12),
        noise in "\\PC{0,2}",
    ) {
        let text = format!("root ::= {} {noise}", pieces.concat());
        if let Ok(grammar) = parse(&text, None) {
            let printed = print(&grammar);
            prop_assert_eq!(parse(&printed, None), Ok(normal_form(&grammar)), "{}\n{}", text, printed);
        }
    }
}

const PIECES: &[&str] = &[
    "a",
    " ",
    "\n",
    "a ::= ",
    "b := ",
    "\"a\"",
    "\"",
    "'",
    "'x'",
    "[a-z]",
    "[",
    "]",
    "^",
    "\\",
    "\\n",
    "\\u00e9",
    "\\uD800",
    "é",
    "😀",
    "(",
    ")",
    "|",
    "*",
    "+",
    "?",
    "{2}",
    "{2,",
    "}",
    "-",
    ".",
    "#x41",
    "#",
    "# c\n",
    "/*",
    "*/",
    "(*",
    "*)",
    "<",
    ">",
    "<[7]>",
    "!<t>",
    "@not(",
    "@and(",
    "@token(",
    "@regex(",
    "@json_schema(",
    "@schema_string(",
    "without",
    "{}",
    "true",
    ",",
    ";",
    "=",
    "@nothing",
    "[1] ",
    "[wfc:",
    "a[capture] ::= ",
    "Token(",
    "1",
    "99999999999",
    "\u{FEFF}",
    "\r\n",
];

#[test]
fn grammars_as_people_have_them() {
    // In the ways of llama.cpp, of the XML specification and of SPARQL's.
    let gbnf = r#"
        # chess, in part
        root ::= (
            # a comment in a group
            "1. " move " " move "\n"
            ([1-9] [0-9]? ". " move " " move "\n")+
        )
        move ::= (pawn | nonpawn | castle) [+#]?
        nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
        pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
        castle ::= "O-O" "-O"?
        char ::= [^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4})
        space ::= | " " | "\n" [ \t]{0,20}"#;
    assert_eq!(parse(gbnf, None).map(|grammar| grammar.rules.len()), Ok(7));
    let xml = "
        [2]   Char      ::=   #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF]  /* any Unicode character */
        [3]   S         ::=   (#x20 | #x9 | #xD | #xA)+
        [14]  CharData  ::=   [^<&]* - ([^<&]* ']]>' [^<&]*)
        [15]  Comment   ::=   '<!--' ((Char - '-') | ('-' (Char - '-')))* '-->'
        [17]  PITarget  ::=   Name - (('X' | 'x') ('M' | 'm') ('L' | 'l'))
        [39]  element   ::=   EmptyElemTag | STag content ETag  [ WFC: Element Type Match ]
                              [ VC: Element Valid ]
        [40]  STag      ::=   '<' Name (S Attribute)* S? '>'
        [4]   NameStartChar ::= \":\" | [A-Z] | \"_\" | [#xC0-#xD6]
        [5]   Name      ::=   NameStartChar*
        EmptyElemTag ::= '' content ::= '' ETag ::= '' Attribute ::= ''";
    let grammar = parse(xml, None).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((grammar.start, grammar.rules.len()), (Expr::Rule("Char".into()), 13));
    assert!(read(xml).contains("Comment ::= \"<!--\" (Char - \"-\" | \"-\" (Char - \"-\"))* \"-->\"\n"));
}

#[test]
fn names_with_hyphens_at_their_edges_are_rules_where_lines_begin_with_them() {
    let cases = [
        ("root ::= number- \"x\"\nnumber- ::= [0-9]", "root ::= number_ \"x\"\nnumber_ ::= [0-9]\n"),
        ("root ::= \"{\" -kv \"}\"\n-kv ::= \"a\"", "root ::= \"{\" _kv \"}\"\n_kv ::= \"a\"\n"),
        (
            "root ::= a--\"x\" (-b-)\n  a-- ::= \"y\"\n-b- ::= \"z\"",
            "root ::= a__ \"x\" _b_\na__ ::= \"y\"\n_b_ ::= \"z\"\n",
        ),
        // Other hyphens are what they were.
        ("root ::= a- - b\na- ::= [a-z]\nb ::= \"x\"", "root ::= a_ - b\na_ ::= [a-z]\nb ::= \"x\"\n"),
        ("root ::= a -\"b\"\na ::= [a-z]", "root ::= a - \"b\"\na ::= [a-z]\n"),
    ];
    for (text, printed) in cases {
        let grammar = parse(text, None).expect(text);
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&crate::print(&grammar)), sorted(printed), "{text}");
    }
    assert!(parse("root ::= number- \"x\"", None).is_err());
}
