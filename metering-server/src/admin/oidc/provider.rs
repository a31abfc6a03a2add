//! Requests to the provider, and the verification of its responses.
//!
//! Metadata and keys are fetched when they are needed, kept for an hour, and fetched again for a token that is signed with
//! an unknown key.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreClientAuthMethod, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreResponseType,
    CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, AuthType, AuthenticationFlow, AuthorizationCode, ClaimsVerificationError, Client, ClientId,
    ClientSecret, CsrfToken, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet, IdTokenClaims,
    IdTokenFields, IssuerUrl, Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    SignatureVerificationError, StandardErrorResponse, StandardTokenResponse, TokenResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::refusal::Refusal;
use super::transport::Transport;
use crate::admin::person::Person;
use crate::config::OidcConfig;

/// How long metadata and keys are used, and so a key that the provider withdrew.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);
/// The pause after a failure. Anyone who reaches the sign-in page can cause requests to the provider.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// With public keys only: a shared secret proves nothing about who signed.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// The claims that are not in the standard, such as groups.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct OtherClaims(Map<String, Value>);

impl AdditionalClaims for OtherClaims {}

type Claims = IdTokenClaims<OtherClaims, CoreGenderClaim>;
type Fields = IdTokenFields<
    OtherClaims,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;
type ProviderClient = Client<
    OtherClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    StandardTokenResponse<Fields, CoreTokenType>,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// A sign-in that was begun.
#[derive(Debug)]
pub(super) struct Login {
    state: CsrfToken,
    nonce: Nonce,
    verifier: PkceCodeVerifier,
}

/// The provider.
#[derive(Debug)]
pub(super) struct Provider {
    issuer: IssuerUrl,
    client_id: ClientId,
    client_secret: Option<ClientSecret>,
    redirect: RedirectUrl,
    scopes: Vec<Scope>,
    groups_claim: String,
    transport: Transport,
    /// Locked while it is fetched, so that it is fetched once for all who wait.
    fetched: Mutex<Fetched>,
}

#[derive(Debug, Default)]
struct Fetched {
    metadata: Option<(Instant, Arc<CoreProviderMetadata>)>,
    failure: Option<(Instant, String)>,
}

impl Login {
    pub(super) fn state(&self) -> &str {
        self.state.secret()
    }

    #[cfg(test)]
    pub(super) fn with_state(state: &str) -> Self {
        let (_, verifier) = PkceCodeChallenge::new_random_sha256();
        Self { state: CsrfToken::new(state.to_owned()), nonce: Nonce::new_random(), verifier }
    }
}

impl Provider {
    /// `redirect` is where it sends browsers back to.
    pub(super) fn new(config: &OidcConfig, redirect: &str) -> Result<Self, Box<dyn Error>> {
        let secret = config.client_secret.as_ref();
        Ok(Self {
            issuer: IssuerUrl::new(config.issuer.clone())?,
            client_id: ClientId::new(config.client_id.clone()),
            client_secret: secret.map(|secret| ClientSecret::new(secret.expose().to_owned())),
            redirect: RedirectUrl::new(redirect.to_owned())?,
            scopes: config.scopes.iter().cloned().map(Scope::new).collect(),
            groups_claim: config.groups_claim.clone(),
            transport: Transport::new()?,
            fetched: Mutex::default(),
        })
    }

    pub(super) async fn is_available(&self) -> bool {
        self.metadata(None).await.is_ok()
    }

    /// The URL to send a browser to.
    pub(super) async fn begin(&self) -> Result<(Url, Login), Refusal> {
        let metadata = self.metadata(None).await?;
        let client = self.client(&metadata);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
        let request = client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
        let request = request.add_scopes(self.scopes.iter().cloned()).set_pkce_challenge(challenge);
        let (url, state, nonce) = request.url();
        Ok((url, Login { state, nonce, verifier }))
    }

    /// Exchanges the code that the browser came back with.
    pub(super) async fn finish(&self, login: Login, code: String) -> Result<Person, Refusal> {
        let Login { nonce, verifier, .. } = login;
        let metadata = self.metadata(None).await?;
        let client = self.client(&metadata);
        let request = client.exchange_code(AuthorizationCode::new(code));
        let request = request.map_err(|error| Refusal::Unavailable(error.to_string()))?.set_pkce_verifier(verifier);
        let response = request.request_async(&self.transport).await.map_err(|error| match error {
            RequestTokenError::ServerResponse(response) => Refusal::Refused(response.to_string()),
            // For example, an ID token that cannot be parsed.
            RequestTokenError::Parse(error, _) => Refusal::Invalid(error.to_string()),
            error => Refusal::Unavailable(with_causes(&error)),
        })?;
        let token = response.id_token().ok_or_else(|| Refusal::Invalid("the response has none".to_owned()))?;
        let verified = |client: &ProviderClient| -> Result<Claims, ClaimsVerificationError> {
            token.claims(&client.id_token_verifier().set_allowed_algs(ALGORITHMS), &nonce).cloned()
        };
        let claims = match verified(&client) {
            Err(ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey)) => {
                let renewed = self.metadata(Some(&metadata)).await?;
                verified(&self.client(&renewed))
            }
            outcome => outcome,
        };
        let claims = claims.map_err(|error| Refusal::Invalid(with_causes(&error)))?;
        self.person(&claims).ok_or_else(|| Refusal::Invalid("its subject is not 1 to 255 plain characters".to_owned()))
    }

    fn person(&self, claims: &Claims) -> Option<Person> {
        let email = claims.email().filter(|_| claims.email_verified() == Some(true));
        let groups = groups(&claims.additional_claims().0, &self.groups_claim);
        Person::new(&self.issuer, claims.subject(), email.map(|email| email.as_str()), groups)
    }

    fn client(&self, metadata: &CoreProviderMetadata) -> ProviderClient {
        let (id, secret) = (self.client_id.clone(), self.client_secret.clone());
        let client = ProviderClient::from_provider_metadata(metadata.clone(), id, secret);
        let methods = metadata.token_endpoint_auth_methods_supported();
        // HTTP Basic is the default, also for providers that list no methods.
        let takes_basic = methods.is_none_or(|methods| methods.contains(&CoreClientAuthMethod::ClientSecretBasic));
        let by = if takes_basic { AuthType::BasicAuth } else { AuthType::RequestBody };
        client.set_auth_type(by).set_redirect_uri(self.redirect.clone())
    }

    /// The provider's metadata and keys; never `outdated` ones.
    async fn metadata(
        &self,
        outdated: Option<&Arc<CoreProviderMetadata>>,
    ) -> Result<Arc<CoreProviderMetadata>, Refusal> {
        let mut fetched = self.fetched.lock().await;
        if let Some((at, metadata)) = &fetched.metadata
            && at.elapsed() < MAX_AGE
            && outdated.is_none_or(|outdated| !Arc::ptr_eq(outdated, metadata))
        {
            return Ok(Arc::clone(metadata));
        }
        if let Some((at, problem)) = &fetched.failure
            && at.elapsed() < RETRY_AFTER
        {
            return Err(Refusal::Unavailable(problem.clone()));
        }
        match CoreProviderMetadata::discover_async(self.issuer.clone(), &self.transport).await {
            Ok(metadata) => {
                let metadata = Arc::new(metadata);
                *fetched = Fetched { metadata: Some((Instant::now(), Arc::clone(&metadata))), failure: None };
                Ok(metadata)
            }
            Err(error) => {
                let problem = with_causes(&error);
                tracing::warn!(issuer = self.issuer.as_str(), "the provider that operators sign in through: {problem}");
                fetched.failure = Some((Instant::now(), problem.clone()));
                Err(Refusal::Unavailable(problem))
            }
        }
    }
}

/// The groups in a claim: a list of names, or one name. A dot in the claim's name leads into an object.
fn groups(claims: &Map<String, Value>, claim: &str) -> Vec<String> {
    let inside = || {
        let mut names = claim.split('.');
        let first = claims.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    };
    match claims.get(claim).or_else(inside) {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(name)) => vec![name.clone()],
        _ => Vec::new(),
    }
}

/// An error and what caused it.
fn with_causes(error: &dyn Error) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_a_list_or_a_name_also_in_an_object() {
        let claims = serde_json::json!({
            "groups": ["ops", 1, "dev"],
            "role": "admin",
            "realm_access": {"roles": ["manager"]},
            "https://example.com/groups": ["flat"],
        });
        // claim, groups
        let table = [
            ("groups", vec!["ops", "dev"]),
            ("role", vec!["admin"]),
            ("realm_access.roles", vec!["manager"]),
            ("https://example.com/groups", vec!["flat"]),
            ("realm_access.none", vec![]),
            ("none", vec![]),
        ];
        for (claim, expected) in table {
            assert_eq!(groups(claims.as_object().unwrap(), claim), expected, "{claim}");
        }
    }
}
