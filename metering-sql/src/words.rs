//! The words in braces, replaced by what differs between databases ([`Executor`](crate::Executor) lists them).

/// Replaces the words of a statement. A word that ends with a space has a parameter up to the closing brace, which becomes
/// `closing`.
#[must_use]
pub fn replaced(sql: &str, words: &[(&str, &str)], closing: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(2 * sql.len()), sql);
    while let Some((before, from_brace)) = rest.find('{').map(|at| rest.split_at(at)) {
        text.push_str(before);
        let Some((word, meaning)) = words.iter().find(|(word, _)| from_brace.starts_with(word)) else {
            // The database refuses it.
            rest = from_brace;
            break;
        };
        text.push_str(meaning);
        rest = &from_brace[word.len()..];
        if let Some((parameter, after)) = rest.split_once('}').filter(|_| word.ends_with(' ')) {
            text.extend([parameter, closing]);
            rest = after;
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn each_word_is_replaced() {
        let words = [("{is}", "IS"), ("{lock m}", ""), ("{in ", "IN (list("), ("{in_bytes ", "IN (bytes(")];
        let replaced = |sql: &str| replaced(sql, &words, "))");
        assert_eq!(replaced("a {is} ?1 AND b {in ?2} {lock m}"), "a IS ?1 AND b IN (list(?2)) ");
        assert_eq!(replaced("{in_bytes ?1} {in ?2}"), "IN (bytes(?1)) IN (list(?2))");
        assert_eq!(replaced("SELECT 1"), "SELECT 1");
        assert_eq!(replaced("{is} {unknown} {is}"), "IS {unknown} {is}");
    }
}
