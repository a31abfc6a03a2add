//! A problem in a catalogue file. Reading collects every problem, so a file can be corrected in one pass.

use std::fmt;

/// Why a catalogue file is not valid: all of its problems, in the file's order.
///
/// ```
/// use metering_core::Catalogue;
///
/// let text = r#"{"market": "M", "endpoints": [
///     {"path": "/a", "method": "get", "metered": true},
///     {"path": "/b", "method": "GET", "metered": true, "credit_wieght": 72}]}"#;
/// let error = Catalogue::from_json(text).unwrap_err();
/// let problems: Vec<_> = error.problems().iter().map(ToString::to_string).collect();
/// assert_eq!(problems, [
///     "version is missing",
///     "endpoints[0], route get /a: the method must be an upper-case HTTP method",
///     "endpoints[1], route GET /b: unknown key credit_wieght; did you mean credit_weight?",
/// ]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueError {
    /// At least one.
    problems: Vec<CatalogueProblem>,
}

/// One problem of a catalogue file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueProblem {
    /// The route's place in the file, for example `endpoints[3]`; empty for the file itself.
    pub place: String,
    /// The route's method and path, if both can be read, for example `GET /price`.
    pub route: Option<String>,
    /// The problem. Names the key by its path within the route, for example `price.max`.
    pub problem: String,
}

impl CatalogueError {
    /// Everything that is wrong, in the file's order. At least one problem.
    #[must_use]
    pub fn problems(&self) -> &[CatalogueProblem] {
        &self.problems
    }

    /// Some problems, unless there are none.
    pub(super) fn unless_none(problems: Vec<CatalogueProblem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }
}

impl From<serde_json::Error> for CatalogueError {
    fn from(error: serde_json::Error) -> Self {
        Self { problems: vec![CatalogueProblem::of_file(error.to_string())] }
    }
}

impl std::error::Error for CatalogueError {}

impl CatalogueProblem {
    /// A problem of the file itself.
    pub(super) const fn of_file(problem: String) -> Self {
        Self { place: String::new(), route: None, problem }
    }
}

/// One problem on the same line; several on a line each.
impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = &self.problems[..] {
            return write!(f, "the route catalogue is not valid: {problem}");
        }
        write!(f, "the route catalogue has {} problems:", self.problems.len())?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n- {problem}"))
    }
}

impl fmt::Display for CatalogueProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, route, problem } = self;
        match route {
            Some(route) => write!(f, "{place}, route {route}: {problem}"),
            None if place.is_empty() => f.write_str(problem),
            None => write!(f, "{place}: {problem}"),
        }
    }
}

/// The problems found so far in a part of the file.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    /// Records a problem.
    pub(super) fn add(&mut self, problem: impl Into<String>) {
        self.0.push(problem.into());
    }

    /// The value, or `None` after recording its problems.
    pub(super) fn keep<T>(&mut self, result: Result<T, impl Into<Self>>) -> Option<T> {
        result.map_err(|problems| self.0.append(&mut problems.into().0)).ok()
    }

    /// All values, or `None` after recording every problem.
    pub(super) fn all<T, P: Into<Self>>(&mut self, results: impl IntoIterator<Item = Result<T, P>>) -> Option<Vec<T>> {
        let kept: Vec<Option<T>> = results.into_iter().map(|result| self.keep(result)).collect();
        kept.into_iter().collect()
    }

    /// The value if there are no problems. `value` is `None` only if a problem was recorded.
    pub(super) fn or<T>(self, value: impl FnOnce() -> Option<T>) -> Result<T, Self> {
        if !self.0.is_empty() {
            return Err(self);
        }
        value().ok_or(self)
    }

    /// The recorded problems, in order.
    pub(super) fn into_texts(self) -> Vec<String> {
        self.0
    }
}

impl From<String> for Problems {
    fn from(problem: String) -> Self {
        Self(vec![problem])
    }
}
