//! The names in an expression of PromQL.

use std::collections::BTreeSet;

/// Words that are neither metrics nor labels, even without a parenthesis after them.
const KEYWORDS: [&str; 11] =
    ["and", "bool", "by", "group_left", "group_right", "ignoring", "offset", "on", "or", "unless", "without"];

/// The metrics and labels that an expression names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) metrics: BTreeSet<String>,
    pub(super) labels: BTreeSet<String>,
}

impl Names {
    pub(super) fn of(expression: &str) -> Self {
        let mut names = Self::default();
        // Whether the parenthesis that opens next, or is open, lists labels.
        let (mut lists_labels, mut in_list, mut in_braces) = (false, false, false);
        let mut rest = expression;
        while let Some(first) = rest.chars().next() {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            let length = match first {
                '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                c if is_name(c) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            let (token, after) = rest.split_at(length);
            rest = after;
            match first {
                '{' | '}' => in_braces = first == '{',
                '(' => in_list = std::mem::take(&mut lists_labels),
                ')' => in_list = false,
                c if c.is_ascii_digit() || !is_name(c) => {}
                _ if in_braces || in_list => {
                    names.labels.insert(token.to_owned());
                }
                _ if KEYWORDS.contains(&token) => lists_labels = token != "bool" && token != "offset",
                _ if after.trim_start().starts_with('(') => {}
                // An aggregation whose labels come first.
                _ if ["by", "without"].iter().any(|word| after.trim_start().starts_with(word)) => {}
                _ => {
                    names.metrics.insert(token.to_owned());
                }
            }
        }
        names
    }
}

#[test]
fn metrics_and_labels_are_told_from_the_rest() {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    // expression, metrics, labels
    let table: [(_, &[&str], &[&str]); 4] = [
        ("up == 0", &["up"], &[]),
        (
            "sum by (job, le) (rate(a_bucket{surface=\"x(y)\", status=~\"5..\"}[5m])) > 0.1",
            &["a_bucket"],
            &["job", "le", "surface", "status"],
        ),
        ("rate(a[10m]) / on (job) b{c=\"d\"} and 3 > time() - 14 * 86400", &["a", "b"], &["job", "c"]),
        ("sum(misspelt) by (job)", &["misspelt"], &["job"]),
    ];
    for (expression, metrics, labels) in table {
        let names = Names { metrics: set(metrics), labels: set(labels) };
        assert_eq!(Names::of(expression), names, "{expression}");
    }
}
