//! How backends store the path of the requests that an entry of recent activity covers.

use serde::{Deserialize, Serialize};

/// The path of the requests that an entry of recent activity covers, as a backend stores it. Most requests are to
/// routes without parameters, whose path is not stored again. `S` is the text: `&str` or `Box<str>`.
///
/// ```
/// use metering_core::backend::StoredPath;
///
/// let path: StoredPath<&str> = StoredPath::of(Some("/price"), "/price");
/// assert_eq!(path, StoredPath::Template);
/// assert_eq!(path.get("/price"), Some("/price"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredPath<S> {
    /// The requests had different paths.
    Several,
    /// The same as the template of their route, which has no parameters.
    Template,
    /// The path.
    Other(S),
}

impl<S> StoredPath<S> {
    /// Encodes the path of requests to a route with this template.
    #[must_use]
    pub fn of<'p>(path: Option<&'p str>, template: &str) -> Self
    where
        S: From<&'p str>,
    {
        match path {
            None => Self::Several,
            Some(path) if path == template => Self::Template,
            Some(path) => Self::Other(path.into()),
        }
    }

    /// Decodes the path, given the route's template.
    #[must_use]
    pub fn get<T: From<S>>(self, template: T) -> Option<T> {
        match self {
            Self::Several => None,
            Self::Template => Some(template),
            Self::Other(path) => Some(path.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_the_template_is_not_stored_again() {
        for path in [None, Some("/a"), Some("/a/b"), Some("")] {
            assert_eq!(StoredPath::<&str>::of(path, "/a").get("/a"), path);
            assert_eq!(StoredPath::<Box<str>>::of(path, "/a").get(String::from("/a")).as_deref(), path);
        }
        assert_eq!(StoredPath::<&str>::of(Some("/a"), "/a"), StoredPath::Template);
    }
}
