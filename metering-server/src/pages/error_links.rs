//! Links from errors to the section of the guides that explains them.
//!
//! They are added where responses leave, since only the configuration says where the pages are. Errors in the shape of
//! another service stay as its clients know them.

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use metering_core::catalogue::ErrorShape;
use metering_core::wire::ErrorBody;

use crate::config::{Config, Surface};
use crate::http::Reply;
use crate::pages::guides::{GUIDES_PAGE, OPERATORS_SECTION};
use crate::pages::site::origin;

/// The links of a service.
#[derive(Debug, Clone)]
pub(crate) struct ErrorLinks {
    /// The prefix of the guides' URLs. `None` if the URL of the pages is unknown.
    guides: Option<String>,
    /// The section for all errors; each code has its own section if this is `None`.
    section: Option<&'static str>,
}

impl ErrorLinks {
    pub(crate) fn new(config: &Config) -> Self {
        let has_pages = config.pages_url.is_some() || config.serves(Surface::Metering);
        let origin = has_pages.then(|| origin(config)).filter(|origin| !origin.is_empty());
        Self { guides: origin.map(|origin| format!("{origin}{GUIDES_PAGE}/")), section: None }
    }

    /// The links of the operators' API.
    pub(crate) fn for_operators(config: &Config) -> Self {
        Self { section: Some(OPERATORS_SECTION), ..Self::new(config) }
    }

    /// A reply with the link of its error, if it is one.
    pub(crate) fn link(&self, mut reply: Reply) -> Reply {
        match self.linked(&mut reply) {
            Some(body) => reply.map(|_| body),
            None => reply,
        }
    }

    /// The body of an error with its link; `None` for all other responses, whose bodies stay. Corrects the length.
    pub(crate) fn linked<B>(&self, response: &mut Response<B>) -> Option<Bytes> {
        let guides = self.guides.as_ref()?;
        if response.status().is_success() || response.headers().contains_key(header::CONTENT_ENCODING) {
            return None;
        }
        let mut error = response.extensions_mut().remove::<ErrorBody>()?;
        error.docs = Some(format!("{guides}{}", self.section.unwrap_or_else(|| error.error.guide())));
        let body = Bytes::from(ErrorShape::Own.document(&error, None));
        if let Some(length) = response.headers_mut().get_mut(header::CONTENT_LENGTH) {
            *length = HeaderValue::from(body.len());
        }
        Some(body)
    }
}

#[cfg(test)]
mod tests {
    use metering_core::wire::ErrorCode;

    use super::*;
    use crate::http::Problem;

    fn linked(toml: &str, response: &mut Response<Bytes>) -> Option<serde_json::Value> {
        let body = ErrorLinks::new(&toml::from_str(toml).unwrap()).linked(response)?;
        Some(serde_json::from_slice(&body).unwrap())
    }

    #[test]
    fn errors_link_to_the_guides_if_it_is_known_where_they_are() {
        let public = "public_url = 'https://api.example/v1'\n";
        let both = format!("{public}pages_url = 'https://account.example'\n");
        let [gateway, gateway_of_both] = [public, &*both].map(|urls| format!("{urls}surfaces = ['gateway']"));
        // configuration, where the guides are
        let table = [
            ("", None),
            (public, Some("https://api.example")),
            (both.as_str(), Some("https://account.example")),
            (gateway.as_str(), None),
            (gateway_of_both.as_str(), Some("https://account.example")),
        ];
        for (toml, origin) in table {
            let mut reply = Problem::new(ErrorCode::KeyScope, "No.").into_reply();
            let link = origin.map(|origin| format!("{origin}/docs/guides/errors#403-what-the-key-may-do"));
            let expected = link.map(|link| serde_json::json!({"error": "key_scope", "message": "No.", "docs": link}));
            assert_eq!(linked(toml, &mut reply), expected, "{toml}");
        }
    }

    #[test]
    fn errors_of_operators_link_to_their_section() {
        let config = toml::from_str("public_url = 'https://api.example'").unwrap();
        let link = |reply| -> serde_json::Value {
            serde_json::from_slice(ErrorLinks::for_operators(&config).link(reply).body()).unwrap()
        };
        for code in [ErrorCode::Unauthorized, ErrorCode::Conflict, ErrorCode::PaymentUnconfirmed] {
            let error = link(Problem::new(code, "No.").into_reply());
            assert_eq!(error["docs"], "https://api.example/docs/guides/errors#requests-of-operators", "{error}");
        }
        assert_eq!(link(Response::new(Bytes::from_static(b"[]"))), serde_json::json!([]));
    }

    #[test]
    fn only_errors_of_our_own_shape_change() {
        let toml = "public_url = 'https://api.example'";
        let error = || Problem::new(ErrorCode::Overloaded, "Wait.").into_reply();
        let id = metering_core::charging::HoldId::generate(&metering_core::SystemRandomness);
        for shape in [ErrorShape::Own, ErrorShape::OpenAi, ErrorShape::Problem] {
            let mut finished = shape.finish(error().map(|_| String::new()), id).map(Bytes::from);
            assert_eq!(linked(toml, &mut finished).is_some(), shape == ErrorShape::Own, "{shape:?}");
        }
        let mut theirs = Response::new(Bytes::from_static(b"{}"));
        *theirs.status_mut() = http::StatusCode::NOT_FOUND;
        assert_eq!(linked(toml, &mut theirs), None);
        let mut head = error();
        head.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("1"));
        let length = linked(toml, &mut head).unwrap().to_string().len();
        assert_eq!(head.headers()[header::CONTENT_LENGTH], length.to_string());
    }
}
