//! The metaschemas of the drafts, as published by json-schema.org, for schemas that refer to them.

use crate::json::{Json, Value};

const DOCUMENTS: &[(&str, &[(&str, &str)])] = &[
    (
        "json-schema.org/draft-04/",
        &[("http://json-schema.org/draft-04/schema", include_str!("../metaschemas/draft-04.json"))],
    ),
    (
        "json-schema.org/draft-06/",
        &[("http://json-schema.org/draft-06/schema", include_str!("../metaschemas/draft-06.json"))],
    ),
    (
        "json-schema.org/draft-07/",
        &[("http://json-schema.org/draft-07/schema", include_str!("../metaschemas/draft-07.json"))],
    ),
    (
        "json-schema.org/draft/2019-09/",
        &[
            ("https://json-schema.org/draft/2019-09/schema", include_str!("../metaschemas/2019-09/schema.json")),
            ("https://json-schema.org/draft/2019-09/meta/core", include_str!("../metaschemas/2019-09/core.json")),
            (
                "https://json-schema.org/draft/2019-09/meta/applicator",
                include_str!("../metaschemas/2019-09/applicator.json"),
            ),
            (
                "https://json-schema.org/draft/2019-09/meta/validation",
                include_str!("../metaschemas/2019-09/validation.json"),
            ),
            (
                "https://json-schema.org/draft/2019-09/meta/meta-data",
                include_str!("../metaschemas/2019-09/meta-data.json"),
            ),
            ("https://json-schema.org/draft/2019-09/meta/format", include_str!("../metaschemas/2019-09/format.json")),
            ("https://json-schema.org/draft/2019-09/meta/content", include_str!("../metaschemas/2019-09/content.json")),
        ],
    ),
    (
        "json-schema.org/draft/2020-12/",
        &[
            ("https://json-schema.org/draft/2020-12/schema", include_str!("../metaschemas/2020-12/schema.json")),
            ("https://json-schema.org/draft/2020-12/meta/core", include_str!("../metaschemas/2020-12/core.json")),
            (
                "https://json-schema.org/draft/2020-12/meta/applicator",
                include_str!("../metaschemas/2020-12/applicator.json"),
            ),
            (
                "https://json-schema.org/draft/2020-12/meta/unevaluated",
                include_str!("../metaschemas/2020-12/unevaluated.json"),
            ),
            (
                "https://json-schema.org/draft/2020-12/meta/validation",
                include_str!("../metaschemas/2020-12/validation.json"),
            ),
            (
                "https://json-schema.org/draft/2020-12/meta/meta-data",
                include_str!("../metaschemas/2020-12/meta-data.json"),
            ),
            (
                "https://json-schema.org/draft/2020-12/meta/format-annotation",
                include_str!("../metaschemas/2020-12/format-annotation.json"),
            ),
            (
                "https://json-schema.org/draft/2020-12/meta/format-assertion",
                include_str!("../metaschemas/2020-12/format-assertion.json"),
            ),
            ("https://json-schema.org/draft/2020-12/meta/content", include_str!("../metaschemas/2020-12/content.json")),
        ],
    ),
];

/// The metaschemas, as (URI, JSON text), that the documents read so far refer to.
pub(crate) fn referred_to(json: &Json) -> Vec<(&'static str, &'static str)> {
    let mut refers = [false; DOCUMENTS.len()];
    for value in json.values() {
        let Value::Object(members) = value else { continue };
        for (name, target) in members {
            if &**name == "$ref"
                && let Value::String(uri) = json.get(*target)
                && uri.contains("json-schema.org/")
            {
                refers.iter_mut().zip(DOCUMENTS).for_each(|(refers, (place, _))| *refers |= uri.contains(place));
            }
        }
    }
    let found = DOCUMENTS.iter().zip(refers).filter(|(_, refers)| *refers);
    found.flat_map(|((_, documents), _)| documents.iter().copied()).collect()
}
