//! A JSON document, parsed so that every other parser reads the same: valid UTF-8, no name twice in an object, no
//! number beyond a double. It keeps the order of its members, which language models are sensitive to.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Number, Value};

use crate::catalogue::object::reason;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Document {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Document>),
    Object(Vec<(String, Document)>),
}

impl Document {
    /// Parses a whole body. serde_json refuses invalid UTF-8 and lone surrogates, numbers beyond a double, more than
    /// 128 levels, and anything after the value.
    pub(super) fn parse(body: &[u8]) -> Result<Self, String> {
        if body.is_empty() {
            return Err("is missing: send a JSON object".to_owned());
        }
        serde_json::from_slice(body).map_err(|error| {
            let place = format!(" at line {}, column {}", error.line(), error.column());
            format!("is not JSON that all parsers read alike: {}{place}", reason(&error))
        })
    }

    /// The same as a [`Value`], which orders members differently.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
            Self::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(members) => {
                Value::Object(members.iter().map(|(name, value)| (name.clone(), value.to_value())).collect())
            }
        }
    }

    /// Its JSON text.
    pub(super) fn to_json(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| error.to_string())
    }
}

impl From<&Value> for Document {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(members) => {
                Self::Object(members.iter().map(|(name, value)| (name.clone(), value.into())).collect())
            }
        }
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(members) => serializer.collect_map(members.iter().map(|(name, value)| (name, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(Document::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Document, E> {
        // JSON Schema counts 1.0 and 5e1 as integers, but some parsers do not, and would use their default.
        if let Ok(whole) = value.to_string().parse::<i64>() {
            return self.visit_i64(whole);
        }
        Number::from_f64(value).map(Document::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(Document::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Document, E> {
        Ok(Document::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Document, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Document::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let (mut members, mut names) = (Vec::new(), HashSet::new());
        while let Some((name, value)) = map.next_entry::<String, Document>()? {
            if !names.insert(name.clone()) {
                let name: String = name.chars().take(64).collect();
                return Err(serde::de::Error::custom(format_args!("{name:?} appears twice in its object")));
            }
            members.push((name, value));
        }
        Ok(Document::Object(members))
    }
}
