//! The dialects of JSON Schema.

/// A draft; later ones compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Draft {
    /// Draft 4 (2013).
    V4,
    /// Draft 6 (2017).
    V6,
    /// Draft 7 (2018).
    V7,
    /// 2019-09.
    V2019,
    /// 2020-12.
    V2020,
}

impl Draft {
    /// The draft of a `$schema` URI or of a short name such as `2020-12` or `7`.
    pub fn from_name(name: &str) -> Option<Draft> {
        let name = name.trim_end_matches('#').trim_end_matches('/');
        let name = name.strip_suffix("/schema").unwrap_or(name);
        let short = name
            .strip_prefix("https://json-schema.org/")
            .or_else(|| name.strip_prefix("http://json-schema.org/"))
            .unwrap_or(name);
        let short = short.strip_prefix("draft/").unwrap_or(short);
        let short = short.strip_prefix("draft-").or_else(|| short.strip_prefix("draft")).unwrap_or(short);
        Some(match short {
            "4" | "04" | "3" | "03" => Draft::V4,
            "6" | "06" | "5" | "05" => Draft::V6,
            "7" | "07" => Draft::V7,
            "2019-09" => Draft::V2019,
            "2020-12" | "schema" => Draft::V2020,
            _ => return None,
        })
    }

    /// The short name.
    pub fn name(self) -> &'static str {
        match self {
            Draft::V4 => "4",
            Draft::V6 => "6",
            Draft::V7 => "7",
            Draft::V2019 => "2019-09",
            Draft::V2020 => "2020-12",
        }
    }

    /// The keyword that names a schema.
    pub fn id_keyword(self) -> &'static str {
        if self == Draft::V4 { "id" } else { "$id" }
    }
}
