//! The parameters in the path and the query of a call: read by the server, written by clients, described in the OpenAPI
//! document.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use url::form_urlencoded;

use super::text::Text;
use crate::Error;

/// Characters that need not be encoded in a path or a query (RFC 3986, 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The parameters of a call. The macro `parameters!` implements it.
pub trait Parameters: Sized + Send + 'static {
    /// Reads them.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`] for the first that is not valid.
    fn read(request: &RequestParameters<'_>) -> Result<Self, Error>;

    /// Adds them to a request's target.
    fn write(&self, target: &mut RequestTarget);

    /// Shows each to a visitor.
    fn each(visitor: &mut impl ParameterVisitor);
}

/// Is shown every parameter of a call.
pub trait ParameterVisitor {
    /// One parameter: its name, its meaning and an example.
    fn parameter<P: Parameter>(&mut self, name: &'static str, description: &'static str, example: Option<Value>);
}

/// A parameter.
pub trait Parameter: Sized {
    /// Reads it from its text, if there is one. `name` is its name in errors.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`].
    fn read(name: &str, text: Option<&str>) -> Result<Self, Error>;

    /// Its text, if it has one.
    fn write(&self) -> Option<Cow<'_, str>>;

    /// Whether it is required.
    #[cfg(feature = "openapi")]
    const IS_REQUIRED: bool;

    /// Its schema.
    #[cfg(feature = "openapi")]
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema>;
}

/// The parameters that came with a request.
#[derive(Debug)]
pub struct RequestParameters<'r> {
    names: Vec<&'static str>,
    path: &'r [String],
    query: &'r str,
}

impl<'r> RequestParameters<'r> {
    /// The parameters of a request for the path `template`: the decoded values in its path, in order, and its query.
    pub(super) fn at(template: &'static str, path: &'r [String], query: &'r str) -> Self {
        Self { names: places(template).collect(), path, query }
    }

    /// The parameter of this name.
    ///
    /// # Errors
    /// When it is given twice, missing, or not valid.
    pub fn read<P: Parameter>(&self, name: &str) -> Result<P, Error> {
        let place = self.names.iter().position(|place| *place == name);
        if let Some(text) = place.and_then(|index| self.path.get(index)) {
            return P::read(name, Some(text));
        }
        let pairs = form_urlencoded::parse(self.query.as_bytes());
        let mut values = pairs.filter(|(key, _)| key == name).map(|(_, value)| value);
        match (values.next(), values.next()) {
            (value, None) => P::read(name, value.as_deref()),
            (_, Some(_)) => Err(Error::field(name, "must be given once")),
        }
    }
}

/// The names in braces in a path.
fn places(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

/// Where a request for a call is sent: its path and query.
#[derive(Debug)]
pub struct RequestTarget {
    path: String,
    query: String,
}

impl RequestTarget {
    /// A path with names in braces, and no query.
    pub(super) fn new(template: &str) -> Self {
        Self { path: template.to_owned(), query: String::new() }
    }

    pub(super) fn into_text(self) -> String {
        self.path + &self.query
    }

    /// Adds a parameter.
    pub fn write(&mut self, name: &str, value: &impl Parameter) {
        let Some(text) = value.write() else { return };
        let encoded = utf8_percent_encode(&text, RESERVED);
        let place = format!("{{{name}}}");
        if self.path.contains(&place) {
            self.path = self.path.replace(&place, &encoded.to_string());
        } else {
            let separator = if self.query.is_empty() { '?' } else { '&' };
            self.query.push_str(&format!("{separator}{name}={encoded}"));
        }
    }
}

impl<T: Text> Parameter for T {
    #[cfg(feature = "openapi")]
    const IS_REQUIRED: bool = true;

    fn read(name: &str, text: Option<&str>) -> Result<Self, Error> {
        let text = text.ok_or_else(|| Error::field(name, "is required"))?;
        T::read(text).map_err(|problem| Error::field(name, problem))
    }

    fn write(&self) -> Option<Cow<'_, str>> {
        Some(Text::write(self))
    }

    #[cfg(feature = "openapi")]
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        T::described()
    }
}

impl<T: Text> Parameter for Option<T> {
    #[cfg(feature = "openapi")]
    const IS_REQUIRED: bool = false;

    fn read(name: &str, text: Option<&str>) -> Result<Self, Error> {
        text.map(|text| <T as Parameter>::read(name, Some(text))).transpose()
    }

    fn write(&self) -> Option<Cow<'_, str>> {
        self.as_ref().map(Text::write)
    }

    #[cfg(feature = "openapi")]
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        T::described()
    }
}

/// Declares types for a number from 1 to `MAX`, with a `DEFAULT`: `NAME: what becomes of a number outside the range`.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])* $name:ident: $outside:expr;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name<const DEFAULT: u32, const MAX: u32>(pub u32);

        impl<const DEFAULT: u32, const MAX: u32> Default for $name<DEFAULT, MAX> {
            fn default() -> Self {
                Self(DEFAULT)
            }
        }

        impl<const DEFAULT: u32, const MAX: u32> Parameter for $name<DEFAULT, MAX> {
            #[cfg(feature = "openapi")]
            const IS_REQUIRED: bool = false;

            fn read(name: &str, text: Option<&str>) -> Result<Self, Error> {
                let outside: fn(&str, &str, u32) -> Result<u32, Error> = $outside;
                let Some(text) = text else { return Ok(Self::default()) };
                match text.parse().ok().filter(|number| digits(text) && (1..=MAX).contains(number)) {
                    Some(number) => Ok(Self(number)),
                    None => outside(name, text, MAX).map(Self),
                }
            }

            fn write(&self) -> Option<Cow<'_, str>> {
                Some(self.0.to_string().into())
            }

            #[cfg(feature = "openapi")]
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                use utoipa::openapi::schema::{ObjectBuilder, Type};
                use utoipa::openapi::{KnownFormat, SchemaFormat};

                ObjectBuilder::new()
                    .schema_type(Type::Integer)
                    .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
                    .minimum(Some(1))
                    .maximum(Some(MAX))
                    .into()
            }
        }
    )*};
}

numbers! {
    /// A number from 1 to `MAX`; `DEFAULT` if it is missing.
    Bounded: |name, text, most| {
        let is_number = digits(text) && text.parse::<u32>().is_ok();
        let problem = if is_number { format!("must be from 1 to {most}") } else { NO_NUMBER.to_owned() };
        Err(Error::field(name, problem))
    };
    /// The same, but a number outside the range is clamped to it.
    Clamped: |name, text, most| {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        match digits(unsigned) {
            true if unsigned.len() < text.len() || unsigned.bytes().all(|digit| digit == b'0') => Ok(1),
            true => Ok(most),
            false => Err(Error::field(name, NO_NUMBER)),
        }
    };
}

const NO_NUMBER: &str = "must be a whole number";

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl<const DEFAULT: u32, const MAX: u32> Bounded<DEFAULT, MAX> {
    /// The largest.
    pub const MAX: Self = Self(MAX);
}

impl Parameters for () {
    fn read(_request: &RequestParameters<'_>) -> Result<Self, Error> {
        Ok(())
    }

    fn write(&self, _target: &mut RequestTarget) {}

    fn each(_visitor: &mut impl ParameterVisitor) {}
}

/// Declares the [`Parameters`](crate::wire::call::Parameters) of a call:
/// `parameters! { /// What. NAME { /// What. FIELD: TYPE = EXAMPLE, } }`. Fields with the name of a place in the call's
/// path are in the path, others in the query.
#[doc(hidden)]
#[macro_export]
macro_rules! parameters {
    ($(
        $(#[doc = $what:literal])*
        $name:ident { $(#[doc = $doc:literal] $field:ident: $type:ty $(= $example:literal)?),* $(,)? }
    )*) => {$(
        $(#[doc = $what])*
        #[derive(Debug, Clone)]
        pub struct $name {
            $(#[doc = $doc] pub $field: $type,)*
        }

        impl $crate::wire::call::Parameters for $name {
            fn read(request: &$crate::wire::call::RequestParameters<'_>) -> Result<Self, $crate::Error> {
                Ok(Self { $($field: request.read(stringify!($field))?,)* })
            }

            fn write(&self, target: &mut $crate::wire::call::RequestTarget) {
                $(target.write(stringify!($field), &self.$field);)*
            }

            fn each(visitor: &mut impl $crate::wire::call::ParameterVisitor) {
                $(visitor.parameter::<$type>(stringify!($field), $doc, [$($example.into())?].into_iter().next());)*
            }
        }
    )*};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_or_reported_as_invalid() {
        let table = [
            ("", Ok(7)),
            ("days=30", Ok(30)),
            ("other=x&days=30", Ok(30)),
            ("days=%33", Ok(3)),
            ("days=", Err(NO_NUMBER)),
            ("days=abc", Err(NO_NUMBER)),
            ("days=-1", Err(NO_NUMBER)),
            ("days=+1", Err(NO_NUMBER)),
            ("days=1.5", Err(NO_NUMBER)),
            ("days=99999999999", Err(NO_NUMBER)),
            ("days=0", Err("must be from 1 to 90")),
            ("days=91", Err("must be from 1 to 90")),
            ("days=1&days=2", Err("must be given once")),
        ];
        for (query, expected) in table {
            let read = RequestParameters::at("/x", &[], query).read::<Bounded<7, 90>>("days");
            match (read, expected) {
                (Ok(number), expected) => assert_eq!(Ok(number.0), expected, "{query}"),
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{query}: {error}"),
                (Err(error), Ok(_)) => panic!("{query}: {error}"),
            }
        }
        let clamped = [
            ("", Some(7)),
            ("days=30", Some(30)),
            ("days=-1", Some(1)),
            ("days=0", Some(1)),
            ("days=91", Some(90)),
            ("days=99999999999", Some(90)),
            ("days=-", None),
            ("days=", None),
            ("days=1.5", None),
            ("days=1&days=2", None),
        ];
        for (query, expected) in clamped {
            let read = RequestParameters::at("/x", &[], query).read::<Clamped<7, 90>>("days");
            assert_eq!(read.ok().map(|number| number.0), expected, "{query}");
        }
    }
}
