//! The consent page's data, and the owner's response.

use super::handle::OAuth;
use crate::access::issued_key::Key;
use crate::access::member::Member;
use crate::access::scope::{Scope, Scopes};
use crate::error::Error;
use crate::oauth::{Grant, GrantToken, OAuthClient, RedirectUri, RequestedAuthorization};
use crate::random::SystemRandomness;
use crate::service::keys::{may_give, wider_terms};
use crate::wire::{AuthorizationDocument, AuthorizationRequest, ConsentRequest, ConsentResponse, CreateKeyRequest};

/// A client, and its redirect URI.
struct Asking {
    client: OAuthClient,
    redirect_uri: RedirectUri,
}

impl OAuth<'_> {
    /// Describes an authorization request to the owner.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`] when the client is unknown or may not redirect there: then nothing is sent to it. Or
    /// when the store fails.
    pub async fn describe(self, request: &AuthorizationRequest, issuer: &str) -> Result<AuthorizationDocument, Error> {
        let asking = self.asking(request).await?;
        let asked = RequestedAuthorization::read(request, &self.resources(issuer));
        let fault = asked.as_ref().err().copied();
        let (error, problem) = fault.map_or(("access_denied", None), |fault| (fault.code(), Some(fault.to_string())));
        let mut response = vec![("error", error)];
        response.extend(problem.as_deref().map(|problem| ("error_description", problem)));
        let cancel_url = asking.response(request, issuer, response);
        let (scopes, resource) =
            asked.map_or((Scopes::default(), String::new()), |asked| (asked.scopes, asked.resource));
        Ok(AuthorizationDocument {
            client_name: asking.client.name.to_string(),
            client_host: asking.client.host(),
            redirect_host: asking.redirect_uri.host(),
            redirects_to_this_machine: asking.redirect_uri.is_loopback(),
            scopes: names(scopes),
            resource,
            problem,
            cancel_url,
        })
    }

    /// Begins a grant with the consent of the holder of `parent`, or of a member whose session represents it. The key
    /// of the client is made when its code is redeemed.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], also when `parent` may not create such a key; [`Error::KeyNotAllowed`] for more
    /// than the member's role allows; or when the store fails.
    pub async fn consent(
        self,
        parent: &Key,
        member: Option<&Member>,
        request: &ConsentRequest,
        issuer: &str,
    ) -> Result<ConsentResponse, Error> {
        let asking = self.asking(&request.authorization).await?;
        let asked = RequestedAuthorization::read(&request.authorization, &self.resources(issuer));
        let asked = asked.map_err(|fault| Error::field("authorization", fault))?;
        let mut wanted: CreateKeyRequest = request.key.clone();
        wanted.name.get_or_insert_with(|| asking.client.name.to_string());
        if wanted.scopes.is_none() {
            let given = asked.scopes.iter().filter(|scope| parent.terms.scopes.has(*scope));
            // None is refused below, rather than replaced by the scopes of other keys.
            wanted.scopes = Some(given.map(|scope| scope.as_str().to_owned()).collect());
        }
        let terms = self.keys.terms_below(parent, &wanted)?;
        may_give(member, terms.scopes)?;
        if terms.scopes.has(Scope::TopUp) {
            return Err(Error::field("scopes", "must not have topup: a program cannot buy credits with its token"));
        }
        // Told to the owner now, rather than to the client later.
        terms.completed_from(&parent.terms).check_within(&parent.terms).map_err(wider_terms)?;
        let code = GrantToken::generate(&SystemRandomness);
        let now = self.access.now();
        let grant = Grant {
            id: code.grant(),
            account: parent.account.clone(),
            parent: parent.id.clone(),
            client: asking.client.id.clone(),
            redirect_uri: asking.redirect_uri.clone(),
            resource: asked.resource,
            challenge: asked.challenge,
            terms: serde_json::to_string(&wanted).map_err(|_| Error::Internal)?,
            token: code.hash(),
            key: None,
            secret: None,
            expires_at: now.saturating_add(Grant::CODE_LIFETIME),
        };
        self.store().put_oauth_grant(grant).await?;
        let redirect_to = asking.response(&request.authorization, issuer, vec![("code", code.expose())]);
        Ok(ConsentResponse { redirect_to })
    }

    async fn asking(self, request: &AuthorizationRequest) -> Result<Asking, Error> {
        let id = request.client_id.as_deref().ok_or_else(|| Error::field("client_id", "is required"))?;
        let client = self.client(id).await?;
        let redirect_uri = match request.redirect_uri.as_deref() {
            Some(text) => text.parse::<RedirectUri>().ok().filter(|uri| client.may_redirect_to(uri)),
            None => client.redirect_uris.first().filter(|_| client.redirect_uris.len() == 1).cloned(),
        };
        let redirect_uri = redirect_uri.ok_or_else(|| Error::field("redirect_uri", "is not one of the client's"))?;
        Ok(Asking { client, redirect_uri })
    }
}

impl Asking {
    /// The URL that notifies the client.
    fn response<'p>(
        &self,
        request: &'p AuthorizationRequest,
        issuer: &'p str,
        mut parts: Vec<(&'static str, &'p str)>,
    ) -> String {
        parts.extend(request.state.as_deref().map(|state| ("state", state)));
        parts.push(("iss", issuer));
        self.redirect_uri.with(&parts)
    }
}

fn names(scopes: Scopes) -> Vec<String> {
    scopes.iter().map(|scope| scope.as_str().to_owned()).collect()
}
