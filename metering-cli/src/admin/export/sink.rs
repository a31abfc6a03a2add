//! Writes rows as CSV or JSON lines.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::columns::{Column, Exported, Value};
use crate::failure::Failure;

/// An export being written.
pub(crate) enum Sink<'a> {
    Csv(Box<csv::Writer<&'a mut dyn Write>>),
    JsonLines(&'a mut dyn Write),
}

impl<'a> Sink<'a> {
    /// Writes the headings first, so that an empty export has them too.
    pub(crate) fn csv<T>(out: &'a mut dyn Write, columns: &[Column<T>]) -> Result<Self, Failure> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(columns.iter().map(|(heading, _)| heading))?;
        Ok(Self::Csv(Box::new(writer)))
    }

    pub(crate) fn json_lines(out: &'a mut dyn Write) -> Self {
        Self::JsonLines(out)
    }

    pub(crate) fn write<T: Exported>(&mut self, item: &T) -> Result<(), Failure> {
        match self {
            Self::Csv(writer) => Ok(writer.write_record(T::COLUMNS.iter().map(|(_, value)| csv_cell(value(item))))?),
            Self::JsonLines(out) => {
                serde_json::to_writer(&mut **out, &Object(item)).map_err(io::Error::from)?;
                Ok(writeln!(out)?)
            }
        }
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Csv(mut writer) => writer.flush(),
            Self::JsonLines(out) => out.flush(),
        }
    }
}

fn csv_cell(value: Value) -> String {
    match value {
        Value::Text(text) => without_formula(&text).into_owned(),
        Value::Signed(number) => number.to_string(),
        Value::Unsigned(number) => number.to_string(),
        Value::Credits(amount) => amount.to_string(),
        // It begins with a bracket, so spreadsheets do not read it as a formula.
        Value::Json(text) => text,
        Value::Absent => String::new(),
    }
}

/// Escapes text that a spreadsheet would treat as a formula (OWASP, CSV injection) with a leading apostrophe. Text that
/// starts with an apostrophe gets one too, so that the escaping can be undone.
fn without_formula(text: &str) -> Cow<'_, str> {
    const FORMULA_STARTS: [char; 12] = ['=', '+', '-', '@', '\'', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    if text.starts_with(FORMULA_STARTS) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

struct Object<'a, T>(&'a T);

impl<T: Exported> Serialize for Object<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(T::COLUMNS.len()))?;
        for (heading, value) in T::COLUMNS {
            map.serialize_entry(heading, &value(self.0))?;
        }
        map.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Signed(number) => serializer.serialize_i64(*number),
            Self::Unsigned(number) => serializer.serialize_u64(*number),
            Self::Credits(amount) => amount.serialize(serializer),
            Self::Json(text) => {
                let raw: &RawValue = serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
            Self::Absent => serializer.serialize_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_text_is_never_a_formula_and_round_trips() {
        let table = [
            ("plain@example.com", "plain@example.com"),
            ("=cmd@example.com", "'=cmd@example.com"),
            ("+1@example.com", "'+1@example.com"),
            ("-agent", "'-agent"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("＝1", "'＝1"),
            ("'quoted", "''quoted"),
            ("a=b", "a=b"),
            ("", ""),
        ];
        for (text, cell) in table {
            assert_eq!(without_formula(text), cell);
            assert_eq!(cell.strip_prefix('\'').unwrap_or(cell), text);
        }
    }

    #[test]
    fn a_negative_amount_stays_a_number() {
        assert_eq!(csv_cell(Value::Credits("-2.5".parse().unwrap())), "-2.5");
        assert_eq!(csv_cell(Value::Signed(-1)), "-1");
    }
}
