//! What the path and the query of a call say: read by the server, written by the command line, described in the OpenAPI
//! document.

use std::borrow::Cow;

use metering_core::Error;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::text::Text;

/// What need not be encoded in a path or a query (RFC 3986, 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The parameters of a call. The macro `parameters!` implements it.
pub trait Parameters: Sized + Send + 'static {
    /// Reads them.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`] for the first that is not valid.
    fn read(given: &Given<'_>) -> Result<Self, Error>;

    /// Writes them.
    fn write(&self, written: &mut Written);

    /// Each, for the OpenAPI document.
    #[cfg(feature = "openapi")]
    fn described() -> Vec<Described>;
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

    /// Whether it must be given.
    #[cfg(feature = "openapi")]
    const IS_REQUIRED: bool;

    /// Its schema.
    #[cfg(feature = "openapi")]
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema>;
}

/// A parameter, as the OpenAPI document describes it.
#[cfg(feature = "openapi")]
#[derive(Clone)]
pub struct Described {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub description: &'static str,
    /// Whether it must be given.
    pub is_required: bool,
    /// Its schema.
    pub schema: utoipa::openapi::RefOr<utoipa::openapi::Schema>,
}

#[cfg(feature = "openapi")]
impl std::fmt::Debug for Described {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Described").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(feature = "openapi")]
impl Described {
    /// The description of a parameter.
    #[must_use]
    pub fn of<P: Parameter>(name: &'static str, description: &'static str) -> Self {
        Self { name, description: description.trim_start(), is_required: P::IS_REQUIRED, schema: P::schema() }
    }
}

/// The parameters that came with a request.
#[derive(Debug)]
pub struct Given<'r> {
    names: Vec<&'static str>,
    path: &'r [String],
    query: &'r str,
}

impl<'r> Given<'r> {
    /// Those of a request for the path `template`: the values of its parameters, in order and decoded, and the query.
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
pub struct Written {
    path: String,
    query: String,
}

impl Written {
    /// A path with names in braces, and no query.
    pub(super) fn new(template: &str) -> Self {
        Self { path: template.to_owned(), query: String::new() }
    }

    pub(super) fn into_target(self) -> String {
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

/// A number from 1 to `MAX`; `DEFAULT` if it is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounded<const DEFAULT: u32, const MAX: u32>(pub u32);

impl<const DEFAULT: u32, const MAX: u32> Bounded<DEFAULT, MAX> {
    /// The largest.
    pub const MAX: Self = Self(MAX);
}

impl<const DEFAULT: u32, const MAX: u32> Default for Bounded<DEFAULT, MAX> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<const DEFAULT: u32, const MAX: u32> Parameter for Bounded<DEFAULT, MAX> {
    #[cfg(feature = "openapi")]
    const IS_REQUIRED: bool = false;

    fn read(name: &str, text: Option<&str>) -> Result<Self, Error> {
        let Some(text) = text else { return Ok(Self::default()) };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        let number = number.ok_or_else(|| Error::field(name, "must be a whole number"))?;
        if (1..=MAX).contains(&number) {
            return Ok(Self(number));
        }
        Err(Error::field(name, format_args!("must be from 1 to {MAX}")))
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

impl Parameters for () {
    fn read(_given: &Given<'_>) -> Result<Self, Error> {
        Ok(())
    }

    fn write(&self, _written: &mut Written) {}

    #[cfg(feature = "openapi")]
    fn described() -> Vec<Described> {
        Vec::new()
    }
}

/// Declares parameters: `parameters! { /// What. NAME { /// What. FIELD: TYPE, } }`. Fields with the name of a place in the
/// call's path are in the path, others in the query.
macro_rules! parameters {
    ($(#[doc = $what:literal])* $name:ident { $(#[doc = $doc:literal] $field:ident: $type:ty),* $(,)? }) => {
        $(#[doc = $what])*
        #[derive(Debug, Clone)]
        pub struct $name {
            $(#[doc = $doc] pub $field: $type,)*
        }

        impl $crate::call::Parameters for $name {
            fn read(given: &$crate::call::Given<'_>) -> Result<Self, metering_core::Error> {
                Ok(Self { $($field: given.read(stringify!($field))?,)* })
            }

            fn write(&self, written: &mut $crate::call::Written) {
                $(written.write(stringify!($field), &self.$field);)*
            }

            #[cfg(feature = "openapi")]
            fn described() -> Vec<$crate::call::Described> {
                vec![$($crate::call::Described::of::<$type>(stringify!($field), $doc),)*]
            }
        }
    };
}

pub(crate) use parameters;
