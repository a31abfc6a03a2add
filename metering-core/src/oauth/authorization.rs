//! The parameters of an authorization request: a client sends a browser to the consent page with them.

use url::Url;

use crate::access::scope::{Scope, Scopes};
use crate::oauth::code_challenge::{CodeChallenge, CodeChallengeError};
use crate::wire::AuthorizationRequest;

/// An authorization that a client requests: everything but the redirect URI, which is checked before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedAuthorization {
    /// The challenge that its code must be redeemed with.
    pub challenge: CodeChallenge,
    /// The requested scopes. The owner decides.
    pub scopes: Scopes,
    /// The resource of its token (RFC 8707), in the service's own spelling.
    pub resource: String,
}

/// Why an authorization is refused. The client is notified by redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizationFault {
    /// Its response type is not a code.
    #[error("response_type must be code")]
    ResponseType,
    /// It has no challenge, or one of another method.
    #[error("code_challenge_method must be S256; this service requires PKCE")]
    ChallengeMethod,
    /// The challenge is malformed.
    #[error("code_challenge {0}")]
    Challenge(CodeChallengeError),
    /// The token would be for another service.
    #[error("resource must be the URL of this service's MCP endpoint")]
    Resource,
}

impl AuthorizationFault {
    /// The code of RFC 6749, section 4.1.2.1, or RFC 8707, section 2.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::ResponseType => "unsupported_response_type",
            Self::ChallengeMethod | Self::Challenge(_) => "invalid_request",
            Self::Resource => "invalid_target",
        }
    }
}

impl RequestedAuthorization {
    /// Scopes that tokens can have: a token neither buys credits nor links wallets.
    pub const OFFERED: [Scope; 3] = [Scope::Call, Scope::Read, Scope::Manage];

    /// Reads a request. `resources` are the URLs of this service; the first is meant if the client names none.
    ///
    /// # Errors
    /// The first fault.
    pub fn read(request: &AuthorizationRequest, resources: &[String]) -> Result<Self, AuthorizationFault> {
        if request.response_type.as_deref() != Some("code") {
            return Err(AuthorizationFault::ResponseType);
        }
        // Without a method, RFC 7636 means plain.
        if request.code_challenge_method.as_deref() != Some("S256") {
            return Err(AuthorizationFault::ChallengeMethod);
        }
        let challenge = request.code_challenge.as_deref().unwrap_or_default().parse::<CodeChallenge>();
        let challenge = challenge.map_err(AuthorizationFault::Challenge)?;
        let resource = match request.resource.as_deref() {
            Some(named) => Self::resource(named, resources),
            None => resources.first().cloned(),
        };
        let resource = resource.ok_or(AuthorizationFault::Resource)?;
        Ok(Self { challenge, scopes: Self::scopes(request.scope.as_deref()), resource })
    }

    /// The scopes that a client requests. Unknown ones are ignored; without any, a token can call and read.
    #[must_use]
    pub fn scopes(text: Option<&str>) -> Scopes {
        let named = text.unwrap_or_default().split(' ');
        let offered = named.filter_map(|name| Self::OFFERED.into_iter().find(|scope| scope.as_str() == name));
        Scopes::of(offered).unwrap_or_default()
    }

    /// The service's own spelling of a resource: case of the host, and a slash at the end, make no difference.
    #[must_use]
    pub fn resource(named: &str, resources: &[String]) -> Option<String> {
        let url = Url::parse(named).ok().filter(|url| url.fragment().is_none())?;
        let named = url.as_str().trim_end_matches('/');
        resources.iter().find(|own| own.trim_end_matches('/') == named).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn resources() -> [String; 2] {
        ["https://api.example/mcp", "https://api.example"].map(str::to_owned)
    }

    fn request(change: impl FnOnce(&mut AuthorizationRequest)) -> AuthorizationRequest {
        let text = |text: &str| Some(text.to_owned());
        let mut request = AuthorizationRequest {
            response_type: text("code"),
            code_challenge: text(CHALLENGE),
            code_challenge_method: text("S256"),
            ..AuthorizationRequest::default()
        };
        change(&mut request);
        request
    }

    fn fault(change: impl FnOnce(&mut AuthorizationRequest)) -> &'static str {
        RequestedAuthorization::read(&request(change), &resources()).unwrap_err().code()
    }

    #[test]
    fn only_codes_with_pkce_for_this_service_are_given() {
        assert_eq!(fault(|request| request.response_type = Some("token".to_owned())), "unsupported_response_type");
        assert_eq!(fault(|request| request.code_challenge = None), "invalid_request");
        assert_eq!(fault(|request| request.code_challenge_method = None), "invalid_request");
        assert_eq!(fault(|request| request.code_challenge_method = Some("plain".to_owned())), "invalid_request");
        for resource in ["https://other.example/mcp", "https://api.example/mcp/x", "http://api.example/mcp", "/mcp", ""]
        {
            assert_eq!(fault(|request| request.resource = Some(resource.to_owned())), "invalid_target", "{resource}");
        }
    }

    #[test]
    fn a_resource_is_kept_as_the_service_spells_it() {
        // named, kept
        let table = [
            (None, "https://api.example/mcp"),
            (Some("https://api.example/mcp"), "https://api.example/mcp"),
            (Some("HTTPS://API.example/mcp/"), "https://api.example/mcp"),
            (Some("https://api.example/"), "https://api.example"),
        ];
        for (named, kept) in table {
            let request = request(|request| request.resource = named.map(str::to_owned));
            assert_eq!(RequestedAuthorization::read(&request, &resources()).unwrap().resource, kept, "{named:?}");
        }
    }

    #[test]
    fn scopes_are_those_that_can_be_given() {
        // requested, understood
        let table = [
            (None, "call read"),
            (Some(""), "call read"),
            (Some("openid offline_access"), "call read"),
            (Some("read"), "read"),
            (Some("call manage topup"), "call manage"),
            (Some("topup"), "call read"),
        ];
        for (asked, understood) in table {
            assert_eq!(RequestedAuthorization::scopes(asked).to_string(), understood, "{asked:?}");
        }
    }
}
