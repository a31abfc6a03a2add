use std::collections::BTreeMap;

/// Lists the problems by name in one text.
pub(crate) fn list(fields: &BTreeMap<String, String>) -> String {
    let items: Vec<_> = fields.iter().map(|(name, problem)| format!("{name} {problem}")).collect();
    items.join("; ")
}
