//! The `format`s of JSON Schema as languages.
//!
//! Each format is one file, or shares one with its next of kin, and each is as exact to its RFC as it says at the top of
//! that file; `docs/formats.md` has all of it on one page. Where a format cannot be exact, it errs to the strict side: a
//! text of the language is always valid, and some odd valid text may be missing.
//!
//! Most are expressions. Leap seconds, host names and regular expressions, which need arithmetic or a stack, are
//! [machines](crate::machine). Nothing is expanded when a format is built; its states appear as texts reach them.
//!
//! ```
//! use punchcard_automata::{Languages, formats};
//!
//! let mut languages = Languages::new();
//! let date = formats::language("date", &mut languages).unwrap();
//! assert!(languages.matches(date, "2024-02-29"));
//! assert!(!languages.matches(date, "2023-02-29"));
//! assert!(formats::language("favourite-colour", &mut languages).is_none());
//! ```

mod date_time;
mod duration;
mod email;
mod hostname;
mod idna;
mod ip;
mod json_pointer;
mod parts;
mod regex;
mod uri;
mod uri_template;
mod uuid;

use crate::languages::{Language, Languages};

type Build = fn(&mut Languages) -> Language;

/// All formats, by name.
const FORMATS: [(&str, Build); 19] = [
    ("date", date_time::date),
    ("date-time", date_time::date_time),
    ("duration", duration::duration),
    ("email", |l| email::email(l, false)),
    ("hostname", hostname::hostname),
    ("idn-email", |l| email::email(l, true)),
    ("idn-hostname", hostname::idn_hostname),
    ("ipv4", ip::ipv4),
    ("ipv6", ip::ipv6),
    ("iri", |l| uri::absolute(l, true)),
    ("iri-reference", |l| uri::reference(l, true)),
    ("json-pointer", json_pointer::json_pointer),
    ("regex", regex::regex),
    ("relative-json-pointer", json_pointer::relative_json_pointer),
    ("time", date_time::time),
    ("uri", |l| uri::absolute(l, false)),
    ("uri-reference", |l| uri::reference(l, false)),
    ("uri-template", uri_template::uri_template),
    ("uuid", uuid::uuid),
];

/// The texts of a format, as strings after unescaping; `None` if the name is no format of drafts 4 to 2020-12, so that it
/// is an annotation and any text will do.
pub fn language(name: &str, languages: &mut Languages) -> Option<Language> {
    FORMATS.iter().find(|(known, _)| *known == name).map(|(_, build)| build(languages))
}

/// Whether the name is a format of drafts 4 to 2020-12.
pub fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// The names of all formats, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|&(name, _)| name)
}
