//! Replaces `{{ name }}` in a text with values.
//!
//! Not minijinja: an operator's page may contain any braces, and a value must never be read as a template.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The values, by name.
#[derive(Debug, Default)]
pub(super) struct Variables(BTreeMap<&'static str, String>);

impl Variables {
    pub(super) fn new(values: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self(values.into_iter().collect())
    }

    /// The text with its values. Unknown names are left unchanged.
    pub(super) fn fill<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.0.is_empty() || !text.contains("{{") {
            return Cow::Borrowed(text);
        }
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            filled.push_str(before);
            let named = after.split_once("}}").and_then(|(name, after)| Some((self.0.get(name.trim())?, after)));
            let (value, after) = named.map_or(("{{", after), |(value, after)| (value.as_str(), after));
            filled.push_str(value);
            rest = after;
        }
        filled.push_str(rest);
        Cow::Owned(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_filled_once() {
        let variables = Variables::new([("brand", "{{ url }}".to_owned()), ("url", "https://a.example".to_owned())]);
        // text, filled
        let table = [
            ("plain", "plain"),
            ("{{ brand }} at {{url}}.", "{{ url }} at https://a.example."),
            ("{{ other }} {{ url }}", "{{ other }} https://a.example"),
            ("{{ {{ url }}", "{{ https://a.example"),
            ("{{ url", "{{ url"),
            ("} {{", "} {{"),
        ];
        for (text, filled) in table {
            assert_eq!(variables.fill(text), filled, "{text}");
        }
        assert_eq!(Variables::default().fill("{{ url }}"), "{{ url }}");
    }
}
