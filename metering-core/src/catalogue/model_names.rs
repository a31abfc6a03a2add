//! The models of a price: where a request names one, and which entry it has.

use std::collections::BTreeMap;

use crate::catalogue::pointer::Pointer;

/// Longer names have no entry, except their own.
const NAME_BYTES_MAX: usize = 256;

/// Where a request names its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ModelPlace {
    /// At this pointer in its JSON body.
    Json(Pointer),
    /// In this parameter of its path.
    Param(Box<str>),
}

/// The name that an upstream has for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UpstreamModel {
    /// Where a request names its model.
    pub(super) place: ModelPlace,
    /// The name, or its beginning.
    pub(super) name: Box<str>,
    /// If it begins so: how many bytes of the name in the request are replaced. The rest follows.
    pub(super) replaced: Option<usize>,
}

impl UpstreamModel {
    /// The name for a request of this model.
    pub(super) fn name_for(&self, requested: &str) -> String {
        let rest = self.replaced.and_then(|replaced| requested.get(replaced..)).unwrap_or_default();
        [&*self.name, rest].concat()
    }
}

/// The names of models and patterns, which are the beginning of a name and an asterisk. Each entry has the position that
/// it was added at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ModelNames {
    exact: BTreeMap<Box<str>, usize>,
    /// Without their asterisk, the longest first.
    prefixes: Vec<(Box<str>, usize)>,
}

impl ModelNames {
    /// Names and patterns in the order of the file, without duplicates.
    ///
    /// # Errors
    /// The problem with one of them.
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Result<Self, String> {
        let mut found = Self::default();
        for (position, name) in names.enumerate() {
            match name.strip_suffix('*') {
                _ if name.is_empty() => return Err("a model's name must not be empty".to_owned()),
                Some(prefix) if !prefix.contains('*') => found.prefixes.push((prefix.into(), position)),
                None if !name.contains('*') => {
                    found.exact.insert(name.into(), position);
                }
                _ => return Err(format!("{name}: an asterisk is only allowed at the end, as in gpt-5*")),
            }
        }
        found.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Ok(found)
    }

    /// The position of a model's entry: its own name, or else the longest pattern that matches its beginning. Patterns
    /// match plain names only: some proxies take `a,b` for two models. They match no name that an upstream which
    /// ignores case reads as one with another entry.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        if let Some(position) = self.exact.get(name) {
            return Some(*position);
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/@+".contains(&byte);
        let is_plain = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(plain);
        if !is_plain || self.exact.keys().any(|known| known.eq_ignore_ascii_case(name)) {
            return None;
        }
        let begins_like =
            |prefix: &str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        let longest = self.prefixes.iter().find(|(prefix, _)| begins_like(prefix))?.0.len();
        let found = self.prefixes.iter().find(|(prefix, _)| prefix.len() == longest && name.starts_with(&**prefix));
        found.map(|(_, position)| *position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_name_counts_before_the_longest_pattern() {
        let names = ["*", "gpt-5*", "gpt-5-mini*", "gpt-5-mini", "odd name,"];
        let found = ModelNames::new(names.into_iter()).unwrap();
        // name, entry
        let table = [
            ("gpt-5-mini", Some("gpt-5-mini")),
            ("gpt-5-mini-2026", Some("gpt-5-mini*")),
            ("gpt-5", Some("gpt-5*")),
            ("gpt-5:free", Some("gpt-5*")),
            ("gpt-4", Some("*")),
            ("GPT-4", Some("*")),
            // An upstream may ignore case.
            ("GPT-5", None),
            ("GPT-5-mini", None),
            ("gpt-5-MINI", None),
            ("gpt-5-Mini-2026", None),
            ("gpt-5-Nano", Some("gpt-5*")),
            ("openai/gpt-5@2026", Some("*")),
            ("odd name,", Some("odd name,")),
            ("gpt-5,dear", None),
            ("gpt-5 ", None),
            ("gpt-5é", None),
            ("", None),
        ];
        for (name, entry) in table {
            assert_eq!(found.find(name).map(|position| names[position]), entry, "{name:?}");
        }
        assert_eq!(found.find(&"a".repeat(257)), None);
        assert_eq!(ModelNames::new(["gpt-5"].into_iter()).unwrap().find("gpt-5-mini"), None);
        for wrong in ["", "a*b", "**"] {
            assert!(ModelNames::new([wrong].into_iter()).is_err(), "{wrong}");
        }
    }
}
