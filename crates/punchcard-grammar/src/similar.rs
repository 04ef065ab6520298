//! Which known name somebody may have meant.

/// The candidate that is nearest to `name` by edits, if one is near enough to be worth a hint.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names longer than this, and more candidates than that, are no typing errors but take long to compare.
    const MOST_CHARS: usize = 60;
    const MOST_CANDIDATES: usize = 10_000;
    let name: Vec<char> = name.chars().take(MOST_CHARS + 1).collect();
    if name.len() > MOST_CHARS {
        return None;
    }
    let near_enough = 1 + name.len() / 3;
    candidates
        .into_iter()
        .take(MOST_CANDIDATES)
        .filter(|candidate| candidate.len() <= 4 * MOST_CHARS)
        .map(|candidate| (distance(&name, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= near_enough && distance < candidate.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance, in which another case counts as no more than one edit of the whole name.
fn distance(name: &[char], other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    if name.iter().flat_map(|c| c.to_lowercase()).eq(other.iter().flat_map(|c| c.to_lowercase())) {
        return usize::from(name != other);
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in name.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let substituted = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_near_names_are_offered() {
        let names = ["expression", "term", "ws", "Object"];
        assert_eq!(nearest("expresion", names), Some("expression"));
        assert_eq!(nearest("object", names), Some("Object"));
        assert_eq!(nearest("number", names), None);
        assert_eq!(nearest("x", names), None);
        assert_eq!(nearest(&"x".repeat(100), names), None);
    }
}
