//! Authenticates callers: looks up the key's account, in this process or at the service, and whether it has credit.
//! Where calls can be paid for without a key, a caller may have none.

use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use metering_client::{Client, ClientError};
use metering_core::access::{ClientAddress, KeyFault, KeyHolder, Scope};
use metering_core::wire::ErrorCode;
use metering_core::{ApiKey, Credits, Error, Service};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::fair_slots::AccountKey;
use crate::access::credentials::{self, Sender};
use crate::access::limits::Network;
use crate::http::Problem;

/// `Retry-After` when the service cannot look up a key, in seconds.
const RETRY_SECONDS: u64 = 1;

/// A live key, its account, and whether the account has credit; or a caller without a key.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// `None` if there is no key, and calls can be paid for without one.
    pub(crate) key: Option<ApiKey>,
    /// Where the caller's requests come from.
    pub(crate) address: Option<ClientAddress>,
    /// Without a key, the client's network takes its place.
    pub(crate) account: AccountKey,
    pub(crate) has_credit: bool,
    /// The scopes of an access token; `None` for a key, and where accounts are elsewhere: see
    /// [`TokenScopes`](super::token_scopes::TokenScopes).
    pub(crate) token: Option<Vec<Scope>>,
}

/// The fields of the balance document that are used here.
#[derive(Debug, Deserialize)]
struct Balance {
    org_id: Arc<str>,
    /// As text: documents round balances to ten decimals, which is not an exact amount of credits.
    credit_balance: Box<RawValue>,
}

/// Where accounts are looked up.
#[derive(Debug, Clone)]
pub(crate) enum Accounts {
    /// In this process.
    Here(Arc<Service>),
    /// At the service that the tools call, over the network.
    Elsewhere(Client),
}

/// Why the caller could not be identified.
#[derive(Debug)]
pub(crate) enum NoCaller {
    /// The key is not live, or may not be used from there.
    Refused(Problem),
    /// Unknown at the moment. The text has the reason, without secrets.
    Unknown(String),
}

/// Where services list their paid routes. There is nothing at this path while a service offers nothing.
const OFFERED: &str = "/.well-known/x402";

/// The caller of a request, if its key is live and may be used from there, or if it has none and calls can be paid for.
/// Looked up for every request.
///
/// # Errors
/// 401 if there is no key and calls cannot be paid for without one, or the key is malformed or not live; 403 when it
/// may not be used from this address; 502 when the service is not available.
pub(crate) async fn authenticate(accounts: &Accounts, head: &Parts) -> Result<Caller, Problem> {
    let address = head.extensions.get().copied();
    let caller = match credentials::key(&head.headers)? {
        Some(key) => look_up(accounts, &key, address).await,
        None => without_key(accounts, address).await,
    };
    match caller {
        Ok(caller) => Ok(caller),
        Err(NoCaller::Refused(problem)) => Err(problem),
        Err(NoCaller::Unknown(error)) => {
            tracing::warn!(%error, "could not check whether a key is live");
            let message = "The service behind the tools cannot be reached at the moment; try again.";
            Err(Problem::new(ErrorCode::UpstreamUnreachable, message).retry_after(RETRY_SECONDS))
        }
    }
}

/// Looks up the account of a key that is used from this address.
///
/// # Errors
/// When the key may not be used, or that is unknown.
pub(crate) async fn look_up(
    accounts: &Accounts,
    key: &ApiKey,
    address: Option<ClientAddress>,
) -> Result<Caller, NoCaller> {
    match accounts {
        Accounts::Here(service) => {
            let sender = Sender { key: Some(key.clone()), session: None, address: address.map(|client| client.0) };
            let holder = service.access().key_holder(&sender).await.map_err(NoCaller::from)?;
            let (account, token) = (&holder.account, token_scopes(&holder));
            let has_credit = account.totals.balance > Credits::ZERO;
            Ok(Caller { key: Some(key.clone()), address, account: account.id.as_str().into(), has_credit, token })
        }
        Accounts::Elsewhere(client) => ask(client, key, address).await,
    }
}

/// The scopes of an access token of OAuth, which all keys of its chain have. A secret in its grace period looks like one.
fn token_scopes(holder: &KeyHolder) -> Option<Vec<Scope>> {
    let has = |scope: &Scope| holder.chain.iter().all(|key| key.terms.scopes.has(*scope));
    holder.secret_expires_at.map(|_| Scope::ALL.into_iter().filter(has).collect())
}

/// The client that asks in the name of a caller.
pub(super) fn client_of(client: &Client, key: &ApiKey, address: Option<ClientAddress>) -> Client {
    let client = client.with_key(key.clone());
    match address {
        Some(address) => client.with_address(address),
        None => client,
    }
}

/// The caller who sent no key, if calls can be paid for without one. All those of a network have one share.
async fn without_key(accounts: &Accounts, address: Option<ClientAddress>) -> Result<Caller, NoCaller> {
    let is_payable = match accounts {
        Accounts::Here(service) => service.offers().accepts_keyless(),
        Accounts::Elsewhere(client) => client.get(OFFERED).await.is_ok(),
    };
    if !is_payable {
        return Err(Error::Unauthorized.into());
    }
    let network = address.map(|client| Network::of(client.0));
    let account = format!("without a key: {network:?}").into();
    Ok(Caller { key: None, address, account, has_credit: false, token: None })
}

/// Looks up the account of a key at another service. This endpoint is free and works at any balance.
async fn ask(client: &Client, key: &ApiKey, address: Option<ClientAddress>) -> Result<Caller, NoCaller> {
    let refusal = match client_of(client, key, address).get("/credits/balance").await {
        Ok(response) => return Ok(Caller { address, ..caller(key, &response.body) }),
        Err(ClientError::Refused(refusal)) => refusal,
        Err(error) => return Err(NoCaller::Unknown(error.to_string())),
    };
    let refused = |code| Err(NoCaller::Refused(Problem::new(code, refusal.message.clone())));
    match refusal.code.as_str() {
        // Live, but without the scope to read the balance. It counts as its own account without credit, so that
        // an account cannot take more than its share with many such keys.
        "key_scope" => {
            Ok(Caller { key: Some(key.clone()), address, account: stand_in(key), has_credit: false, token: None })
        }
        "key_expired" => refused(ErrorCode::KeyExpired),
        "key_network" => refused(ErrorCode::KeyNetwork),
        _ if refusal.status == StatusCode::UNAUTHORIZED => Err(Error::KeyRefused(KeyFault::NotLive).into()),
        _ => Err(NoCaller::Unknown(ClientError::Refused(refusal).to_string())),
    }
}

impl From<Error> for NoCaller {
    fn from(error: Error) -> Self {
        match error.code().status() {
            401 | 403 => Self::Refused(error.into()),
            _ => Self::Unknown(error.to_string()),
        }
    }
}

/// The caller with this key, read from the service's balance document. If a service sends another format, the key is
/// still live, and its hash takes the place of its account.
fn caller(key: &ApiKey, document: &[u8]) -> Caller {
    let (account, has_credit) = match serde_json::from_slice::<Balance>(document) {
        Ok(balance) => (balance.org_id, is_positive(balance.credit_balance.get())),
        Err(_) => (stand_in(key), true),
    };
    Caller { key: Some(key.clone()), address: None, account, has_credit, token: None }
}

/// The key's hash, if the account is unknown.
fn stand_in(key: &ApiKey) -> AccountKey {
    hex::encode(key.hash().as_bytes()).into()
}

/// Whether a JSON number is above zero.
fn is_positive(number: &str) -> bool {
    let digits = number.split(['e', 'E']).next().unwrap_or_default();
    !number.starts_with('-') && digits.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

#[cfg(test)]
mod tests {
    use metering_core::SystemRandomness;

    use super::*;

    #[test]
    fn balance_sign_is_read_from_json_numbers() {
        let table = [
            ("0.9998611111", true),
            ("0.0000000001", true),
            ("1", true),
            ("10", true),
            ("0", false),
            ("0.0", false),
            ("0e5", false),
            ("-0.5", false),
            ("-1", false),
        ];
        for (number, positive) in table {
            let json = format!(r#"{{"org_id": "org_1", "credit_balance": {number}, "more": []}}"#);
            let caller = caller(&ApiKey::generate(&SystemRandomness), json.as_bytes());
            assert_eq!((&*caller.account, caller.has_credit), ("org_1", positive), "{number}");
        }
    }

    /// A service that responds to every request with this status, or not at all.
    #[derive(Debug)]
    struct Responds(Option<u16>);

    #[async_trait::async_trait]
    impl metering_client::Transport for Responds {
        async fn send(
            &self,
            request: http::Request<bytes::Bytes>,
        ) -> Result<http::Response<metering_client::BodyStream>, metering_client::Unreachable> {
            assert_eq!(request.uri().path(), OFFERED);
            let status = self.0.ok_or_else(|| metering_client::Unreachable("down".to_owned()))?;
            let body = futures_util::StreamExt::boxed(futures_util::stream::empty());
            Ok(http::Response::builder().status(status).body(body).unwrap())
        }
    }

    #[tokio::test]
    async fn nobody_calls_without_a_key_unless_calls_can_be_paid_for() {
        for (status, expected) in [(Some(200), Ok(None)), (Some(404), Err(401)), (None, Err(401))] {
            let client = Client::new(std::sync::Arc::new(Responds(status)), metering_core::ClientSource::Mcp);
            let (mut head, ()) = http::Request::get("/mcp").body(()).unwrap().into_parts();
            head.extensions.insert(ClientAddress([203, 0, 113, 7].into()));
            let caller = authenticate(&Accounts::Elsewhere(client), &head).await;
            if let Ok(caller) = &caller {
                assert!(caller.account.contains("203.0.113.7") && !caller.has_credit, "{caller:?}");
            }
            let found = caller.map(|caller| caller.key.map(|key| key.hash()));
            assert_eq!(found.map_err(|problem| problem.code().status()), expected);
        }
    }

    #[test]
    fn key_hash_stands_in_for_an_unknown_account() {
        let [one, other] = [(); 2].map(|()| ApiKey::generate(&SystemRandomness));
        let [first, again, second] = [&one, &one, &other].map(|key| caller(key, b"{}"));
        assert!(first.has_credit);
        assert_eq!(first.account, again.account);
        assert_ne!(first.account, second.account);
    }
}
