//! Which known name was meant by an unknown one.

/// Names longer than this are not compared, as that takes time by the square of the length.
const LONGEST: usize = 60;

/// The known name that differs least from `name`, if it differs little.
pub(super) fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let most = name.len().div_ceil(3).min(3);
    let near = known.into_iter().filter(|other| other.len().abs_diff(name.len()) <= most && name.len() <= LONGEST);
    near.map(|other| (distance(&name, &other.to_lowercase()), other))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// Least number of characters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let known = ["expression", "NUMBER", "ws"];
        assert_eq!(closest("expresion", known), Some("expression"));
        assert_eq!(closest("number", known), Some("NUMBER"));
        assert_eq!(closest("statement", known), None);
        assert_eq!(closest(&"x".repeat(1000), known), None);
    }
}
