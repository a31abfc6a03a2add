//! A JSON object that rejects unknown keys: a misspelt `credit_weight` would otherwise be a weight of 1.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::catalogue::nearest::nearest;
use crate::catalogue::problem::Problems;

/// How to handle unknown keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownKeys {
    /// For the operator's own file: a key without effect is a mistake.
    Refuse,
    /// For another server's catalogue, which may be newer.
    Ignore,
}

/// A JSON object with unparsed values, each key once. Values stay text, so no number passes through a float.
#[derive(Debug, Clone)]
pub(super) struct Object<'j> {
    members: Vec<(String, &'j RawValue)>,
    /// Its location, for messages: empty, or for example `params[0].`.
    location: String,
}

impl<'j> Object<'j> {
    /// Reads an object at `location`.
    pub(super) fn read(json: &'j str, location: impl Into<String>) -> Result<Self, String> {
        let location = location.into();
        let Members(members) = serde_json::from_str(json).map_err(|error| format!("{location}{}", reason(&error)))?;
        Ok(Self { members, location })
    }

    /// A member's value; `None` when it is missing or `null`.
    pub(super) fn get<T: Deserialize<'j>>(&self, key: &str) -> Result<Option<T>, String> {
        let Some((_, value)) = self.members.iter().find(|(name, _)| name == key) else { return Ok(None) };
        let value: Result<Option<T>, _> = serde_json::from_str(value.get());
        value.map_err(|error| format!("{}{key}: {}", self.location, reason(&error)))
    }

    /// The value of a required member.
    pub(super) fn require<T: Deserialize<'j>>(&self, key: &str) -> Result<T, String> {
        self.get(key)?.ok_or_else(|| format!("{}{key} is missing", self.location))
    }

    /// The objects of a list; empty when it is missing.
    pub(super) fn list(&self, key: &str) -> Result<Vec<Object<'j>>, Problems> {
        let items: Vec<&'j RawValue> = self.get(key)?.unwrap_or_default();
        let read =
            |(index, item): (usize, &&'j RawValue)| Self::read(item.get(), format!("{}{key}[{index}].", self.location));
        let mut problems = Problems::default();
        let objects = problems.all(items.iter().enumerate().map(read));
        problems.or(|| objects)
    }

    /// A nested object.
    pub(super) fn object(&self, key: &str) -> Result<Option<Object<'j>>, String> {
        let Some(value) = self.get::<&'j RawValue>(key)?.filter(|value| value.get() != "null") else { return Ok(None) };
        Self::read(value.get(), format!("{}{key}.", self.location)).map(Some)
    }

    /// All members, in the file's order.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &'j RawValue)> {
        self.members.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Where a member is, for messages.
    pub(super) fn location_of(&self, key: &str) -> String {
        format!("{}{key}", self.location)
    }

    /// Whether the object has this key with a value other than `null`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.members.iter().any(|(name, value)| name == key && value.get() != "null")
    }

    /// Rejects all other keys. `x-...` is for the operator's own use, `$...` for JSON tools.
    pub(super) fn only(&self, known: &[&str], unknown: UnknownKeys) -> Result<(), Problems> {
        let free = |name: &str| name.starts_with("x-") || name.starts_with('$') || known.contains(&name);
        let mut problems = Problems::default();
        let refused = self.members.iter().filter(|(name, _)| unknown == UnknownKeys::Refuse && !free(name));
        for (name, _) in refused {
            let hint = match nearest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("known keys are {}; keys that start with x- are free to use", known.join(", ")),
            };
            problems.add(format!("unknown key {}{name}; {hint}", self.location));
        }
        problems.or(|| Some(()))
    }
}

/// A field that only documents. In another server's catalogue, one that cannot be read counts as missing.
pub(super) fn documentation<T, E>(field: Result<Option<T>, E>, unknown: UnknownKeys) -> Result<Option<T>, E> {
    match (field, unknown) {
        (Err(_), UnknownKeys::Ignore) => Ok(None),
        (field, _) => field,
    }
}

/// A member's text; `None` when it is missing or `null`.
pub(super) fn member<'j>(object: &Object<'j>, key: &str) -> Result<Option<&'j RawValue>, String> {
    Ok(object.get::<&RawValue>(key)?.filter(|value| value.get() != "null"))
}

/// One of a few words.
pub(super) fn choice<T: Copy>(price: &Object<'_>, key: &str, choices: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(word) = price.get::<String>(key)? else { return Ok(None) };
    let known = choices.iter().find(|(name, _)| *name == word).map(|(_, choice)| *choice);
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    known.map(Some).ok_or_else(|| format!("{}: must be one of {}, not {word}", price.location_of(key), names()))
}

/// A string, or a list of them; empty when it is missing.
pub(super) fn texts(object: &Object<'_>, key: &str) -> Result<Vec<String>, String> {
    match member(object, key)? {
        None => Ok(Vec::new()),
        Some(value) if value.get().starts_with('[') => object.require(key),
        Some(_) => Ok(vec![object.require(key)?]),
    }
}

/// The error message without its position, which is relative to a fragment of the file.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

/// The members of an object; a duplicate key is an error.
struct Members<'j>(Vec<(String, &'j RawValue)>);

impl<'de: 'j, 'j> Deserialize<'de> for Members<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

struct MembersVisitor<'j>(PhantomData<&'j ()>);

impl<'de: 'j, 'j> Visitor<'de> for MembersVisitor<'j> {
    type Value = Members<'j>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'j>, A::Error> {
        let mut members: Vec<(String, &'j RawValue)> = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
            if members.iter().any(|(known, _)| *known == key) {
                return Err(serde::de::Error::custom(format_args!("key {key} appears twice")));
            }
            members.push((key, value));
        }
        Ok(Members(members))
    }
}
