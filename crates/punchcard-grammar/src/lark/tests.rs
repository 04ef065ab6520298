//! What is read, and what each error says and where.

use super::*;
use crate::print;

#[test]
fn show() {
    for text in [
        r#"start: [A] ("b"i | "c".."e")+ "x"~2..3 A{2,} -> z
A: /[a-z]+/ & ~"if" | ~/x/ "y"
 | "z"?
%ignore " " | /\s/x
%ignore WS
%import common.INT -> WS
"#,
        "start: sep{\"a\", X}\nsep{x,s}: x (s x)*\nX: \"x\"",
        "start: <|a|> <[1-3,7]> <[^5]> <[*]> %json {\"type\": \"integer\"} %lark {\nstart: \"x\"\n%ignore \" \"\n}",
        "start[capture]: t \"b\" u v\nt[stop=\"</x>\"]: /.*/\nu[max_tokens=3, capture=\"q\"]: /.*/\nv[lazy]: /.*/ \"x\"\n%ignore \" \"",
        "start: A\nA: %regex {\"substring_words\": \"a b c\"}",
    ] {
        println!("{}\n", print(&parse(text, None).unwrap()));
    }
}
