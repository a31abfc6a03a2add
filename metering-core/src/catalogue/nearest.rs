//! Finds the most likely intended name for a misspelt one.

/// Longer texts get no suggestion: the work grows with the product of the lengths.
const MAX_CHARS: usize = 256;

/// The candidate nearest to `word`, if it is near enough for `word` to be a typo of it.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let near = |candidate: &'c str| distance(word, candidate).map(|steps| (steps, candidate));
    candidates.into_iter().filter_map(near).min_by_key(|(steps, _)| *steps).map(|(_, candidate)| candidate)
}

/// The edit distance between two words, ignoring case; swapping two neighbours is one edit. `None` when it is more than
/// a third of the length.
pub(crate) fn distance(a: &str, b: &str) -> Option<usize> {
    let letters = |text: &str| text.chars().take(MAX_CHARS + 1).flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    let longest = a.len().max(b.len());
    let most = longest.div_ceil(3);
    if longest > MAX_CHARS || a.len().abs_diff(b.len()) > most {
        return None;
    }
    // Rows of the distance table: the second to last, the last, and the current one.
    let (mut before, mut last) = (vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<_>>());
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        (before, last) = (last, row);
    }
    let steps = last[b.len()];
    (steps <= most).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typo_is_distinguished_from_another_word() {
        let keys = ["path", "method", "metered", "credit_weight", "price"];
        // written, meant
        let table = [
            ("credit_wieght", Some("credit_weight")),
            ("creditWeight", Some("credit_weight")),
            ("Price", Some("price")),
            ("meterd", Some("metered")),
            ("colour", None),
            ("", None),
        ];
        for (written, meant) in table {
            assert_eq!(nearest(written, keys), meant, "{written}");
        }
        assert_eq!(distance(&"x".repeat(300), &"x".repeat(300)), None);
    }
}
