//! Reading the fields of a request: all that is wrong is gathered and named in one answer.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use crate::error::Error;

/// What is wrong with a request, by field.
#[derive(Debug, Default)]
pub(super) struct Fields(BTreeMap<String, String>);

impl Fields {
    /// The value of a field that must be there.
    pub(super) fn required<T>(&mut self, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.wrong(name, "is required");
        }
        value
    }

    /// A text that must be there and fit its type.
    pub(super) fn parsed<T>(&mut self, name: &str, text: Option<&str>) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        let text = self.required(name, text)?;
        text.parse().map_err(|problem: T::Err| self.wrong(name, problem)).ok()
    }

    /// A text that may be missing, and must fit its type otherwise.
    pub(super) fn optional<T>(&mut self, name: &str, text: Option<&str>) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        text?.parse().map_err(|problem: T::Err| self.wrong(name, problem)).ok()
    }

    /// Names what is wrong with a field.
    pub(super) fn wrong(&mut self, name: &str, problem: impl Display) {
        self.0.insert(name.to_owned(), problem.to_string());
    }

    pub(super) fn into_problems(self) -> BTreeMap<String, String> {
        self.0
    }

    /// The error that names all of it. To be asked for when a value is missing.
    pub(super) fn into_error(self) -> Error {
        Error::ValidationFailed(self.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
