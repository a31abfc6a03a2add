//! A usage row: a route, a model where models have their own prices, and a kind of client.

use std::sync::Arc;

use serde::Serialize;

/// Which kind of client made a request.
///
/// ```
/// use metering_core::ClientSource;
///
/// assert_eq!(ClientSource::from_name("cli"), ClientSource::Cli);
/// assert_eq!(ClientSource::from_name("a browser"), ClientSource::Unknown);
/// assert_eq!(ClientSource::default().as_str(), "direct");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientSource {
    /// The command-line client.
    Cli,
    /// The MCP server.
    Mcp,
    /// Any other client, the default.
    #[default]
    Direct,
    /// A client that sends a name unknown to this service.
    Unknown,
}

impl ClientSource {
    /// Every source.
    pub const ALL: [Self; 4] = [Self::Cli, Self::Mcp, Self::Direct, Self::Unknown];

    /// The source's name on the wire and in stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Mcp => "mcp",
            Self::Direct => "direct",
            Self::Unknown => "unknown",
        }
    }

    /// The source with this name; [`ClientSource::Unknown`] if there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let known = Self::ALL.into_iter().find(|source| source.as_str() == name);
        known.unwrap_or(Self::Unknown)
    }
}

/// The key of a daily total, besides account and day: route, method and source.
///
/// ```
/// use metering_core::{Charge, ClientSource, Credits, UsageLine};
/// # let key = metering_core::ApiKey::generate(&metering_core::SystemRandomness);
///
/// let line = UsageLine {
///     route_template: "/quotes/{number}".into(),
///     http_method: "GET".into(),
///     source: ClientSource::Cli,
/// };
/// let charge = Charge::new(&key, Credits::BASE_CALL, "GET", "/quotes/{number}").with_line(line);
/// assert_eq!(charge.line.source.as_str(), "cli");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsageLine {
    /// The route's template, for example `/mpp/ethPrice/{block_number}`; where models have their own prices, followed by
    /// the model ([`UsageLine::of_model`]).
    pub route_template: Arc<str>,
    /// The HTTP method, upper-case.
    pub http_method: Arc<str>,
    /// Which kind of client made the requests.
    pub source: ClientSource,
}

/// Separates template and model. No template of a catalogue has a space.
const MODEL_SEPARATOR: &str = " · ";

/// The parts of a line's route.
pub(super) fn template_and_model(route: &str) -> (&str, Option<&str>) {
    route.split_once(MODEL_SEPARATOR).map_or((route, None), |(template, model)| (template, Some(model)))
}

impl UsageLine {
    /// The line of the route's requests for a model: its name, or the pattern that its price is listed under, so
    /// clients cannot make up lines.
    ///
    /// ```
    /// use metering_core::{ClientSource, UsageLine};
    ///
    /// let line = UsageLine { route_template: "/chat".into(), http_method: "POST".into(), source: ClientSource::Direct };
    /// let line = line.of_model("gpt-5*");
    /// assert_eq!(&*line.route_template, "/chat · gpt-5*");
    /// assert_eq!((line.template(), line.model()), ("/chat", Some("gpt-5*")));
    /// ```
    #[must_use]
    pub fn of_model(self, model: &str) -> Self {
        Self { route_template: [&*self.route_template, MODEL_SEPARATOR, model].concat().into(), ..self }
    }

    /// The route's template, without the model.
    #[must_use]
    pub fn template(&self) -> &str {
        template_and_model(&self.route_template).0
    }

    /// The model, if the route's models have their own prices.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        template_and_model(&self.route_template).1
    }
}
