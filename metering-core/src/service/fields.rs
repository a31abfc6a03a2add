//! Reads the fields of a request and collects every problem, so one response reports them all.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use crate::error::Error;
use crate::store::{Page, StoreError};

/// The problems of a request, by field.
#[derive(Debug, Default)]
pub(super) struct Fields(BTreeMap<String, String>);

impl Fields {
    /// The value of a required field.
    pub(super) fn required<T>(&mut self, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.wrong(name, "is required");
        }
        value
    }

    /// A required text, parsed.
    pub(super) fn parsed<T>(&mut self, name: &str, text: Option<&str>) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        let text = self.required(name, text)?;
        text.parse().map_err(|problem: T::Err| self.wrong(name, problem)).ok()
    }

    /// An optional text, parsed if present.
    pub(super) fn optional<T>(&mut self, name: &str, text: Option<&str>) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        text?.parse().map_err(|problem: T::Err| self.wrong(name, problem)).ok()
    }

    /// Records a problem with a field.
    pub(super) fn wrong(&mut self, name: &str, problem: impl Display) {
        self.0.insert(name.to_owned(), problem.to_string());
    }

    pub(super) fn into_problems(self) -> BTreeMap<String, String> {
        self.0
    }

    /// The error with all problems. Call it when a value is missing or invalid.
    pub(super) fn into_error(self) -> Error {
        Error::ValidationFailed(self.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Checks that the field `name` is from 1 to `most`.
pub(super) fn within(name: &str, value: u32, most: u32) -> Result<u32, Error> {
    if (1..=most).contains(&value) {
        Ok(value)
    } else {
        Err(Error::field(name, format_args!("must be from 1 to {most}")))
    }
}

/// Turns an unknown cursor into an error of the field `after`.
pub(super) fn known_cursor<T>(page: Result<Page<T>, StoreError>) -> Result<Page<T>, Error> {
    match page {
        Err(StoreError::UnknownCursor) => Err(Error::field("after", "is not a value of next")),
        page => Ok(page?),
    }
}
