//! Says which texts patterns match as a whole, for comparisons with other engines: see `tools/check_python_patterns.py`.
//!
//! Each line of the input is `["python", "flags", "pattern", ["text", ...]]` in JSON; the answer is a line with a digit for
//! each text, 1 if it matches, or `error: ...`.

use punchcard_automata::Languages;
use punchcard_automata::pattern::{Dialect, Options, parse};
use std::io::{BufRead, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for line in std::io::stdin().lock().lines() {
        let (dialect, flags, pattern, texts): (String, String, String, Vec<String>) = serde_json::from_str(&line?)?;
        let dialect = if dialect == "python" { Dialect::Python } else { Dialect::Ecma };
        let mut languages = Languages::new();
        let language = Options::with_flags(dialect, &flags)
            .and_then(|options| parse(&pattern, &options))
            .and_then(|pattern| pattern.full(&mut languages));
        match language {
            Ok(language) => {
                let digits = texts.iter().map(|text| if languages.matches(language, text) { '1' } else { '0' });
                writeln!(out, "{}", digits.collect::<String>())?;
            }
            Err(error) => writeln!(out, "error: {}", error.to_string().replace('\n', " "))?,
        }
    }
    Ok(())
}
