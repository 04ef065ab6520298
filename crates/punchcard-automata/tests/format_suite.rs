//! The format tests of the JSON Schema Test Suite, if it is at hand.
//!
//! `JSON_SCHEMA_TEST_SUITE` names the suite as a folder or as a `.tar.gz`; without it, the archive is looked for beside the
//! repository. Only the formats are tried here, text by text, without any schema around them.

use punchcard_automata::{Languages, formats};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Valid texts that are known to be refused, by format: their A-label is just within 63 characters, which the upper bound
/// on it cannot tell.
const TOO_STRICT: [(&str, &str); 4] = [
    ("idn-hostname", "παράδειγμαπαράδειγμαπαράδειγμαπαράδειγμαπαράδειγμαπα.com"),
    ("idn-hostname", "παράδειγμαπαράδειγμαπαράδειγμαπαράδειγμαπαράδειγμαπα。com"),
    ("idn-hostname", "παράδειγμαπαράδειγμαπαράδειγμαπαράδειγμαπαράδειγμαπα．com"),
    ("idn-hostname", "παράδειγμαπαράδειγμαπαράδειγμαπαράδειγμαπαράδειγμαπα｡com"),
];

/// The suite's folder, unpacked if need be.
fn suite() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/json-schema-test-suite.tar.gz");
    let path = std::env::var_os("JSON_SCHEMA_TEST_SUITE").map_or(beside, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    if !path.is_file() {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json-schema-test-suite");
    std::fs::create_dir_all(&folder).ok()?;
    let unpacked = Command::new("tar").arg("-xzf").arg(&path).arg("-C").arg(&folder).status().ok()?.success();
    unpacked.then_some(folder)
}

#[test]
fn json_schema_test_suite() {
    let Some(suite) = suite() else {
        eprintln!("skipped: no JSON Schema Test Suite (set JSON_SCHEMA_TEST_SUITE)");
        return;
    };
    let mut languages = Languages::new();
    let (mut tried, mut wrong) = (0, Vec::new());
    for draft in ["draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"] {
        let folder = suite.join("tests").join(draft).join("optional/format");
        for file in std::fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            let groups: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            for group in groups.as_array().unwrap() {
                let Some(format) = group["schema"]["format"].as_str() else { continue };
                let Some(language) = formats::language(format, &mut languages) else {
                    assert_eq!(format, "unknown", "{}", path.display());
                    continue;
                };
                for test in group["tests"].as_array().unwrap() {
                    let (Some(text), valid) = (test["data"].as_str(), &test["valid"]) else { continue };
                    tried += 1;
                    let expected = *valid == Value::Bool(true) && !TOO_STRICT.contains(&(format, text));
                    if languages.matches(language, text) != expected {
                        wrong.push(format!("{draft} {format} {text:?}: {}", test["description"]));
                    }
                }
            }
        }
    }
    assert!(tried > 1000, "only {tried} tests in {}", suite.display());
    assert!(wrong.is_empty(), "{} of {tried} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
