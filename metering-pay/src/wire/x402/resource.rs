//! The resource of a 402.

use metering_core::catalogue::Route;
use serde::Serialize;

/// The description of a resource, if the catalogue has none.
const ANY: &str = "Credits for this request and later ones";

/// The resource of a 402.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The absolute URL, as the client called it. Some clients refuse all offers if it does not parse.
    pub url: String,
    /// What it is.
    pub description: String,
    /// The media type of its responses.
    pub mime_type: String,
}

impl Resource {
    /// A URL, described as its route is, if that is known. Responses of routes are JSON, or events.
    #[must_use]
    pub fn at(url: String, route: Option<&Route>) -> Self {
        let description = route.map(|route| route.description.as_str()).filter(|text| !text.is_empty()).unwrap_or(ANY);
        let is_stream = route.is_some_and(|route| route.sse);
        let mime_type = if is_stream { "text/event-stream" } else { "application/json" };
        Self { url, description: description.to_owned(), mime_type: mime_type.to_owned() }
    }

    /// The tool of an MCP server with this name, whose results are JSON.
    ///
    /// ```
    /// use metering_pay::wire::x402::Resource;
    ///
    /// assert_eq!(Resource::tool("get_price", "Price".to_owned()).url, "mcp://tool/get_price");
    /// ```
    #[must_use]
    pub fn tool(name: &str, description: String) -> Self {
        Self { url: format!("mcp://tool/{name}"), description, mime_type: "application/json".to_owned() }
    }
}
