//! JSON whose objects keep the order of their members, and whose other values stay text: presets are merged in it, and no
//! number of a catalogue passes through a float.

use serde_json::Value;

use super::object::{Object, reason};

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tree {
    Object(Vec<(String, Tree)>),
    /// Anything else, as its text.
    Text(String),
}

impl Tree {
    /// Reads a value at `location`, which is empty for a whole document.
    ///
    /// # Errors
    /// When the text is not JSON, is nested too deep, or has a name twice in an object.
    pub(super) fn parse(json: &str, location: &str) -> Result<Self, String> {
        // Limits the depth: the rest is recursive.
        let _: Value = serde_json::from_str(json).map_err(|error| format!("{location}: {}", reason(&error)))?;
        Self::read(json.trim(), location)
    }

    fn read(json: &str, location: &str) -> Result<Self, String> {
        if !json.starts_with('{') {
            return Ok(Self::Text(json.to_owned()));
        }
        let prefix = if location.is_empty() { String::new() } else { format!("{location}.") };
        let object = Object::read(json, prefix)?;
        let member = |(name, value): (&str, &serde_json::value::RawValue)| {
            Ok::<_, String>((name.to_owned(), Self::read(value.get(), &object.location_of(name))?))
        };
        object.members().map(member).collect::<Result<_, _>>().map(Self::Object)
    }

    /// A JSON string.
    pub(super) fn of_str(text: &str) -> Self {
        Self::Text(Value::from(text).to_string())
    }

    /// A list of JSON texts.
    pub(super) fn of_list<'t>(items: impl IntoIterator<Item = &'t str>) -> Self {
        Self::Text(format!("[{}]", items.into_iter().collect::<Vec<_>>().join(",")))
    }

    /// Its JSON text.
    pub(super) fn to_json(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Object(members) => {
                let member = |(name, value): &(String, Self)| format!("{}:{}", Value::from(&**name), value.to_json());
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Text(text) if text == "null")
    }

    /// The text of a JSON string.
    pub(super) fn as_string(&self) -> Option<String> {
        match self {
            Self::Text(text) => serde_json::from_str(text).ok(),
            Self::Object(_) => None,
        }
    }

    pub(super) fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            Self::Text(_) => &[],
        }
    }

    /// A member with a value other than `null`.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let member = self.members().iter().find(|(known, _)| known == name).map(|(_, value)| value);
        member.filter(|value| !value.is_null())
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self {
            Self::Object(members) => members.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value),
            Self::Text(_) => None,
        }
    }

    /// Removes a member.
    pub(super) fn take(&mut self, name: &str) -> Option<Self> {
        let Self::Object(members) = self else { return None };
        let position = members.iter().position(|(known, _)| known == name)?;
        Some(members.remove(position).1)
    }

    /// Sets a member of an object.
    pub(super) fn set(&mut self, name: &str, value: Self) {
        if let Some(member) = self.get_mut(name) {
            *member = value;
        } else if let Self::Object(members) = self {
            members.push((name.to_owned(), value));
        }
    }

    /// Applies a JSON merge patch (RFC 7396): objects are merged, `null` removes a member, any other value replaces the
    /// old one. A new member keeps its nulls.
    pub(super) fn merge(&mut self, patch: Self) {
        match (self, patch) {
            (Self::Object(members), Self::Object(changes)) => {
                for (name, change) in changes {
                    let known = members.iter().position(|(known, _)| *known == name);
                    match known {
                        Some(position) if change.is_null() => drop(members.remove(position)),
                        Some(position) => members[position].1.merge(change),
                        None if change.is_null() => {}
                        None => members.push((name, change)),
                    }
                }
            }
            (this, patch) => *this = patch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_merge_as_rfc_7396_says_and_numbers_keep_their_digits() {
        // value, patch, result
        let table = [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b","b":1}"#, r#"{"a":null}"#, r#"{"b":1}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"c":0.10,"b":1e-7}}"#, r#"{"a":{"b":1e-7,"c":0.10}}"#),
            (r#"{"a":1}"#, r#"{"b":{"when":{"/x":null}}}"#, r#"{"a":1,"b":{"when":{"/x":null}}}"#),
        ];
        for (value, patch, result) in table {
            let mut merged = Tree::parse(value, "").unwrap();
            merged.merge(Tree::parse(patch, "").unwrap());
            assert_eq!(merged.to_json(), result);
        }
        assert!(Tree::parse(r#"{"a": {"b": 1, "b": 2}}"#, "").unwrap_err().contains("b appears twice"));
        assert!(Tree::parse(&format!("{}1{}", "[".repeat(500), "]".repeat(500)), "x").is_err());
    }
}
