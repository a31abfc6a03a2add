//! The segments of a route's template.

use crate::catalogue::route::Route;

/// A segment of a template.
///
/// ```
/// use metering_core::Catalogue;
/// use metering_core::catalogue::TemplateSegment;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/models/{model}:generateContent", "method": "POST", "metered": true,
///          "params": [{"name": "model", "in": "path", "type": "string"}]}]}"#,
/// )?;
/// let segments: Vec<_> = catalogue.routes()[0].segments().collect();
/// let verb = TemplateSegment::Param { name: "model", verb: Some("generateContent") };
/// assert_eq!(segments, [TemplateSegment::Literal("models"), verb]);
/// # Ok::<(), metering_core::catalogue::CatalogueError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateSegment<'t> {
    /// A text, in the normal form of paths.
    Literal(&'t str),
    /// A parameter, `{name}`, or one with a literal verb, `{name}:verb`. The last colon of a request's segment
    /// separates the verb, because values may have colons, as names of models do.
    Param {
        /// The name of the parameter.
        name: &'t str,
        /// The text after the colon.
        verb: Option<&'t str>,
    },
}

impl<'t> TemplateSegment<'t> {
    pub(crate) fn parse(segment: &'t str) -> Self {
        let named = segment.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        match named {
            Some((name, "")) => Self::Param { name, verb: None },
            Some((name, rest)) => match rest.strip_prefix(':') {
                Some(verb) if !verb.is_empty() && !verb.contains([':', '{', '}']) => {
                    Self::Param { name, verb: Some(verb) }
                }
                _ => Self::Literal(segment),
            },
            None => Self::Literal(segment),
        }
    }

    /// The segments of a template.
    pub(crate) fn of(template: &'t str) -> impl Iterator<Item = Self> {
        template[1..].split('/').map(Self::parse)
    }

    /// The name of a parameter.
    #[must_use]
    pub const fn param(self) -> Option<&'t str> {
        match self {
            Self::Literal(_) => None,
            Self::Param { name, .. } => Some(name),
        }
    }

    /// The value of the parameter in a request's segment, still encoded. `None` for a literal, and for a segment
    /// without the verb.
    #[must_use]
    pub fn value(self, segment: &str) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Param { verb: None, .. } => Some(segment),
            Self::Param { verb: Some(verb), .. } => segment.strip_suffix(verb)?.strip_suffix(':'),
        }
    }
}

impl Route {
    /// The segments of its template.
    pub fn segments(&self) -> impl Iterator<Item = TemplateSegment<'_>> {
        TemplateSegment::of(&self.template)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_may_be_followed_by_a_verb() {
        use TemplateSegment::{Literal, Param};
        let table = [
            ("models", Literal("models")),
            ("a:b", Literal("a:b")),
            ("{model}", Param { name: "model", verb: None }),
            ("{model}:run", Param { name: "model", verb: Some("run") }),
            ("{model}:", Literal("{model}:")),
            ("{model}run", Literal("{model}run")),
            ("{model}:a:b", Literal("{model}:a:b")),
            ("{a}:{b}", Literal("{a}:{b}")),
            ("a{b}", Literal("a{b}")),
        ];
        for (segment, parsed) in table {
            assert_eq!(TemplateSegment::parse(segment), parsed, "{segment}");
        }
        let run = TemplateSegment::parse("{model}:run");
        assert_eq!((run.value("a:b:run"), run.value("a:b"), run.value("run")), (Some("a:b"), None, None));
    }
}
