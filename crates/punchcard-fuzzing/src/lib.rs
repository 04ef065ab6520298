//! What must hold of whatever is fed to a parser or compiler.
//!
//! Each target is a function of bytes: it makes an input of them, compiles it with tight limits for a small vocabulary,
//! follows some texts, and panics where a promise is broken. A fuzzer finds the bytes (`fuzz/`), and the tests of this
//! crate replay those that were worth keeping.
//!
//! Bytes that begin with [`RANDOM`] choose a random input of the kind, by [`Choices`]; all others are the input itself, so
//! that a file of a corpus can be read and written by hand.

mod choices;
mod expressions;
mod follow;
#[cfg(feature = "local")]
mod gguf;
mod notations;
mod patterns;
mod random_pattern;
mod random_schema;
mod recogniser;
mod schemas;
mod validator;
mod values;
mod vocabularies;

pub use choices::Choices;

/// The first byte of inputs that are made by chance. No UTF-8 text begins with it.
pub const RANDOM: u8 = 0xFF;

/// A parser or compiler.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Checks one input; panics if a promise is broken.
    pub check: fn(&[u8]),
    /// What the bytes of a random input make.
    pub show: fn(&mut Choices<'_>) -> String,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "json_schema", check: schemas::check, show: |choices| random_schema::schema(choices).to_string() },
    Target {
        name: "ecma_pattern",
        check: patterns::check_ecma,
        show: |choices| random_pattern::pattern(choices).source,
    },
    Target {
        name: "python_pattern",
        check: patterns::check_python,
        show: |choices| random_pattern::pattern(choices).source,
    },
    Target { name: "ebnf", check: notations::check_ebnf, show: notations::ebnf },
    Target { name: "lark", check: notations::check_lark, show: notations::lark },
    Target {
        name: "serialized",
        check: expressions::check,
        show: |choices| punchcard_grammar::print(&expressions::grammar(choices)),
    },
    #[cfg(feature = "local")]
    Target { name: "gguf", check: gguf::check, show: |choices| gguf::altered(choices).escape_ascii().to_string() },
];

/// The target of a name.
///
/// Panics if there is none.
pub fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("there is no target {name:?}"))
}

/// Checks one input of a target.
///
/// Panics if a promise is broken, or there is no such target.
pub fn check(name: &str, data: &[u8]) {
    (target(name).check)(data);
}

/// An input in words.
pub fn show(name: &str, data: &[u8]) -> String {
    match data.split_first() {
        Some((&RANDOM, rest)) => (target(name).show)(&mut Choices::new(rest)),
        _ => String::from_utf8_lossy(data).into_owned(),
    }
}
