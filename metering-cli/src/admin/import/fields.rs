//! Reads records of the `accounts` format from CSV, JSON lines or a JSON array, one at a time.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use metering_import::RECORD_FIELDS;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// The largest record. A longer line is not a record, and would fill memory.
const MAX_RECORD_BYTES: u64 = 4 << 20;
/// The largest file that is read as a whole: a CSV file, whose quotes may span lines, or a JSON array.
const MAX_WHOLE_BYTES: u64 = 256 << 20;

/// The fields of a record as text. Fields without a value are missing.
pub(super) type Fields = BTreeMap<String, String>;

/// The place of a record in the file, and its fields or the problem with it.
pub(super) type LocatedFields = (String, Result<Fields, String>);

/// Reads records.
pub(super) enum Records {
    Csv(Box<csv::Reader<File>>, Vec<String>),
    Lines(BufReader<File>, u64),
    Array(std::vec::IntoIter<Box<RawValue>>, u64),
}

impl Records {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| Failure::Failed(format!("cannot read {}: {error}", path.display()));
        let file = File::open(path).map_err(cannot)?;
        let bytes = file.metadata().map_err(cannot)?.len();
        let mut file = BufReader::new(file);
        let first = loop {
            match file.fill_buf().map_err(cannot)?.first().copied() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => file.consume(1),
                other => break other,
            }
        };
        let too_large = || {
            Failure::Failed(format!(
                "{} has {} MiB, and as CSV or as an array at most {} are read; write one JSON object per line, or split \
                 the file: parts can be imported one after the other",
                path.display(),
                bytes >> 20,
                MAX_WHOLE_BYTES >> 20
            ))
        };
        match first {
            None => Err(Failure::Failed(format!("{} is empty; nothing was imported", path.display()))),
            Some(b'{') => Ok(Self::Lines(file, 0)),
            Some(_) if bytes > MAX_WHOLE_BYTES => Err(too_large()),
            Some(b'[') => {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(cannot)?;
                let array: Vec<Box<RawValue>> = serde_json::from_str(&text).map_err(|error| {
                    Failure::Failed(format!("{} is no JSON array: {error}; nothing was imported", path.display()))
                })?;
                Ok(Self::Array(array.into_iter(), 0))
            }
            Some(_) => Self::csv(path),
        }
    }

    fn csv(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: csv::Error| {
            Failure::Failed(format!("cannot read {} as CSV: {error}; nothing was imported", path.display()))
        };
        let mut reader = csv::Reader::from_path(path).map_err(cannot)?;
        let headings: Vec<String> = reader
            .headers()
            .map_err(cannot)?
            .iter()
            .map(|name| name.trim_start_matches('\u{FEFF}').to_owned())
            .collect();
        let mut seen = HashSet::new();
        for name in &headings {
            if !RECORD_FIELDS.contains(&name.as_str()) {
                return Err(Failure::Failed(format!(
                    "{}: the column {name:?} is not known; docs/moving-in.md lists the columns; nothing was imported",
                    path.display()
                )));
            }
            if !seen.insert(name) {
                return Err(Failure::Failed(format!("{}: the column {name} occurs twice", path.display())));
            }
        }
        Ok(Self::Csv(Box::new(reader), headings))
    }

    /// The next record: its place in the file, and its fields or the problem with it. An error ends the import.
    pub(super) fn next(&mut self) -> Result<Option<LocatedFields>, Failure> {
        match self {
            Self::Csv(reader, headings) => {
                let mut row = csv::StringRecord::new();
                let line = reader.position().line();
                match reader.read_record(&mut row) {
                    Ok(false) => Ok(None),
                    Ok(true) => {
                        let line = row.position().map_or(line, csv::Position::line);
                        Ok(Some((format!("line {line}"), Ok(fields_of_row(headings, &row)))))
                    }
                    Err(error) if matches!(error.kind(), csv::ErrorKind::Io(_)) => Err(failed(&error)),
                    Err(error) => Ok(Some((format!("line {line}"), Err(error.to_string())))),
                }
            }
            Self::Lines(file, number) => next_line(file, number),
            Self::Array(values, number) => {
                *number += 1;
                Ok(values.next().map(|value| (format!("record {number}"), fields_of_object(value.get()))))
            }
        }
    }
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::Failed(format!("cannot read the file: {error}; run the command again to continue"))
}

fn next_line(file: &mut BufReader<File>, number: &mut u64) -> Result<Option<LocatedFields>, Failure> {
    loop {
        *number += 1;
        let mut line = Vec::new();
        let read =
            file.by_ref().take(MAX_RECORD_BYTES + 1).read_until(b'\n', &mut line).map_err(|error| failed(&error))?;
        if read == 0 {
            return Ok(None);
        }
        if line.len() as u64 > MAX_RECORD_BYTES {
            return Err(Failure::Failed(format!(
                "line {number} has more than {} MiB, so it is no record; records before it were imported",
                MAX_RECORD_BYTES >> 20
            )));
        }
        let Ok(text) = std::str::from_utf8(&line) else {
            return Ok(Some((format!("line {number}"), Err("is not UTF-8".to_owned()))));
        };
        if !text.trim().is_empty() {
            return Ok(Some((format!("line {number}"), fields_of_object(text))));
        }
    }
}

/// Numbers stay text, so that no digit of an amount is lost.
fn fields_of_object(text: &str) -> Result<Fields, String> {
    let object: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut fields = Fields::new();
    for (name, value) in object {
        let raw = value.get();
        let value = match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw).map_err(|error| error.to_string())?,
            _ if raw == "null" => continue,
            _ => raw.to_owned(),
        };
        fields.insert(name, value);
    }
    Ok(fields)
}

/// The export writes an apostrophe before text that a spreadsheet would take for a formula.
fn fields_of_row(headings: &[String], row: &csv::StringRecord) -> Fields {
    let cell = |(name, cell): (&String, &str)| {
        let text = cell.strip_prefix('\'').unwrap_or(cell);
        (!text.is_empty()).then(|| (name.clone(), text.to_owned()))
    };
    headings.iter().zip(row).filter_map(cell).collect()
}
