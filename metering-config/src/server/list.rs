//! Lists in the configuration: an array in the file, or a comma-separated string, the only form a variable can hold.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Values in the given order. Written as `["a", "b"]` or `"a, b"`; a value cannot contain a comma.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct List<T>(Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or a comma-separated string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<List<T>, E> {
        if text.trim().is_empty() {
            return Ok(List::default());
        }
        text.split(',').map(|part| T::deserialize(StrDeserializer::new(part.trim()))).collect()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<List<T>, A::Error> {
        std::iter::from_fn(|| values.next_element().transpose()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Span;

    #[derive(Debug, Serialize, Deserialize)]
    struct Holder {
        spans: List<Span>,
    }

    fn spans(toml: &str) -> Option<Vec<u64>> {
        let holder: Holder = toml::from_str(toml).ok()?;
        Some(holder.spans.iter().map(|span| span.duration().as_secs()).collect())
    }

    #[test]
    fn arrays_and_texts_with_commas_are_lists_and_each_value_is_checked() {
        let table = [
            ("spans = []", Some(vec![])),
            ("spans = ''", Some(vec![])),
            ("spans = ' '", Some(vec![])),
            ("spans = '1s'", Some(vec![1])),
            ("spans = ['2s', '1s']", Some(vec![2, 1])),
            ("spans = '2s,1s'", Some(vec![2, 1])),
            ("spans = ' 2s , 1s '", Some(vec![2, 1])),
            ("spans = '2s,'", None),
            ("spans = '2s,,1s'", None),
            ("spans = ','", None),
            ("spans = '2s 1s, soon'", None),
            ("spans = ['1s', 'soon']", None),
            ("spans = [1]", None),
            ("spans = 1", None),
            ("spans = true", None),
        ];
        for (toml, expected) in table {
            assert_eq!(spans(toml), expected, "{toml}");
        }
    }

    #[test]
    fn list_is_serialized_as_an_array() {
        let holder: Holder = toml::from_str("spans = '2s, 1s'").unwrap();
        assert_eq!(toml::to_string(&holder).unwrap(), "spans = [\"2s\", \"1s\"]\n");
    }
}
