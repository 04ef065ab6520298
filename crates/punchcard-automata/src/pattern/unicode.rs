//! `\p{...}`: sets of characters by Unicode property.
//!
//! ECMA-262 knows exact names and aliases of General_Category (alone or after `gc=`), Script and Script_Extensions (always
//! after `sc=` or `scx=`) and of a fixed list of binary properties. The tables are those of regex-syntax (Unicode 16), which
//! compares names loosely, so the exact names are listed here. Outside of strict mode, a script may stand alone and names
//! may be written loosely (`\p{Greek}`, `\p{letter}`), as other engines have it: that is no valid ECMA-262, hence can
//! mean nothing else.

use crate::charset::CharSet;
use regex_syntax::hir::{Class, HirKind};

/// Why there is no such set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnknownProperty {
    pub message: String,
    pub hint: Option<String>,
}

/// General categories, each with its aliases.
pub(crate) const CATEGORIES: &[&str] = &[
    "Cased_Letter LC",
    "Close_Punctuation Pe",
    "Connector_Punctuation Pc",
    "Control Cc cntrl",
    "Currency_Symbol Sc",
    "Dash_Punctuation Pd",
    "Decimal_Number Nd digit",
    "Enclosing_Mark Me",
    "Final_Punctuation Pf",
    "Format Cf",
    "Initial_Punctuation Pi",
    "Letter L",
    "Letter_Number Nl",
    "Line_Separator Zl",
    "Lowercase_Letter Ll",
    "Mark M Combining_Mark",
    "Math_Symbol Sm",
    "Modifier_Letter Lm",
    "Modifier_Symbol Sk",
    "Nonspacing_Mark Mn",
    "Number N",
    "Open_Punctuation Ps",
    "Other C",
    "Other_Letter Lo",
    "Other_Number No",
    "Other_Punctuation Po",
    "Other_Symbol So",
    "Paragraph_Separator Zp",
    "Private_Use Co",
    "Punctuation P punct",
    "Separator Z",
    "Space_Separator Zs",
    "Spacing_Mark Mc",
    "Surrogate Cs",
    "Symbol S",
    "Titlecase_Letter Lt",
    "Unassigned Cn",
    "Uppercase_Letter Lu",
];

/// Binary properties, each with its aliases.
pub(crate) const BINARY: &[&str] = &[
    "ASCII",
    "ASCII_Hex_Digit AHex",
    "Alphabetic Alpha",
    "Any",
    "Assigned",
    "Bidi_Control Bidi_C",
    "Bidi_Mirrored Bidi_M",
    "Case_Ignorable CI",
    "Cased",
    "Changes_When_Casefolded CWCF",
    "Changes_When_Casemapped CWCM",
    "Changes_When_Lowercased CWL",
    "Changes_When_NFKC_Casefolded CWKCF",
    "Changes_When_Titlecased CWT",
    "Changes_When_Uppercased CWU",
    "Dash",
    "Default_Ignorable_Code_Point DI",
    "Deprecated Dep",
    "Diacritic Dia",
    "Emoji",
    "Emoji_Component EComp",
    "Emoji_Modifier EMod",
    "Emoji_Modifier_Base EBase",
    "Emoji_Presentation EPres",
    "Extended_Pictographic ExtPict",
    "Extender Ext",
    "Grapheme_Base Gr_Base",
    "Grapheme_Extend Gr_Ext",
    "Hex_Digit Hex",
    "IDS_Binary_Operator IDSB",
    "IDS_Trinary_Operator IDST",
    "ID_Continue IDC",
    "ID_Start IDS",
    "Ideographic Ideo",
    "Join_Control Join_C",
    "Logical_Order_Exception LOE",
    "Lowercase Lower",
    "Math",
    "Noncharacter_Code_Point NChar",
    "Pattern_Syntax Pat_Syn",
    "Pattern_White_Space Pat_WS",
    "Quotation_Mark QMark",
    "Radical",
    "Regional_Indicator RI",
    "Sentence_Terminal STerm",
    "Soft_Dotted SD",
    "Terminal_Punctuation Term",
    "Unified_Ideograph UIdeo",
    "Uppercase Upper",
    "Variation_Selector VS",
    "White_Space space",
    "XID_Continue XIDC",
    "XID_Start XIDS",
];

/// The set of `\p{name}` or `\p{name=value}`.
pub(super) fn property(name: &str, value: Option<&str>, strict: bool) -> Result<CharSet, UnknownProperty> {
    let is = |list: &[&str], name: &str| list.iter().any(|row| row.split(' ').any(|alias| alias == name));
    let unknown = |what: &str| UnknownProperty { message: format!("there is no Unicode {what}"), hint: None };
    match value {
        None => {
            if matches!(name, "Changes_When_NFKC_Casefolded" | "CWKCF") {
                return Err(UnknownProperty {
                    message: format!("the Unicode property {name} is not supported"),
                    hint: Some("Changes_When_Casefolded differs from it only in compatibility characters".into()),
                });
            }
            // No text has a surrogate, and the tables have no row for them.
            if matches!(name, "Surrogate" | "Cs") {
                return Ok(CharSet::default());
            }
            let exact = is(CATEGORIES, name) || is(BINARY, name);
            if !exact && (name.starts_with("Is") || name.starts_with("In")) {
                return Err(UnknownProperty {
                    message: format!("the property {name} is a script to some engines and a block to others"),
                    hint: Some("write \\p{Script=...} for a script, or the range of the block as a class".into()),
                });
            }
            let set = if exact || !strict { table(name) } else { None };
            set.ok_or_else(|| UnknownProperty {
                message: format!("there is no Unicode property or category {name:?}"),
                hint: Some("a script is written \\p{Script=Greek}, a category \\p{Letter} or \\p{Lu}".into()),
            })
        }
        Some(value) => match name {
            "General_Category" | "gc" => {
                if matches!(value, "Surrogate" | "Cs") {
                    return Ok(CharSet::default());
                }
                let set = if strict && !is(CATEGORIES, value) { None } else { table(&format!("gc={value}")) };
                set.ok_or_else(|| unknown(&format!("category {value:?}")))
            }
            "Script" | "sc" | "Script_Extensions" | "scx" => {
                let capitals = value.split('_').all(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
                let set = if strict && !capitals { None } else { table(&format!("{name}={value}")) };
                set.ok_or_else(|| unknown(&format!("script {value:?}")))
            }
            _ => Err(UnknownProperty {
                message: format!("{name:?} is no property that takes a value"),
                hint: Some("those are General_Category, Script and Script_Extensions".into()),
            }),
        },
    }
}

/// The characters of a property, as regex-syntax has it. `query` holds only letters, digits, `_` and one `=`.
pub(super) fn table(query: &str) -> Option<CharSet> {
    let hir = regex_syntax::parse(&format!("\\p{{{query}}}")).ok()?;
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            Some(class.ranges().iter().map(|r| (r.start() as u32, r.end() as u32)).collect())
        }
        // A class of one character.
        HirKind::Literal(literal) => std::str::from_utf8(&literal.0).ok()?.chars().next().map(CharSet::single),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_has_a_table() {
        for row in CATEGORIES.iter().chain(BINARY) {
            let mut sets = row.split(' ').map(|name| (name, property(name, None, true)));
            let Some((first, set)) = sets.next() else { continue };
            if first == "Changes_When_NFKC_Casefolded" {
                continue;
            }
            let set = set.unwrap_or_else(|e| panic!("{first}: {}", e.message));
            assert!(!set.is_empty() || first == "Surrogate", "{first}");
            assert!(sets.all(|(_, alias)| alias.as_ref() == Ok(&set)), "{row}");
        }
    }

    #[test]
    fn values_and_names() {
        let greek = property("Script", Some("Greek"), true).unwrap();
        assert!(greek.contains('α' as u32) && !greek.contains('a' as u32));
        assert_eq!(property("sc", Some("Grek"), true).unwrap(), greek);
        assert_eq!(property("Greek", None, false).unwrap(), greek);
        assert!(property("Greek", None, true).is_err() && property("letter", None, true).is_err());
        let wide = property("scx", Some("Grek"), true).unwrap();
        assert!(wide.contains(0x342) && !greek.contains(0x342));
        assert_eq!(property("gc", Some("Lu"), true), property("Uppercase_Letter", None, true));
        assert_eq!(property("Zl", None, true).unwrap(), CharSet::single('\u{2028}'));
        assert!(property("Any", None, true).unwrap() == CharSet::any());
        for (name, value) in [("IsGreek", None), ("Foo", None), ("sc", Some("Foo")), ("age", Some("3"))] {
            assert!(property(name, value, false).is_err(), "{name}");
        }
    }
}
