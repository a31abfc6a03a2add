//! The scopes of access tokens of OAuth, where accounts are in another process: looked up at the service and cached for
//! a while.
//!
//! This only chooses the form of a refusal. Every request's key is looked up first, and the service checks the scopes
//! of each call that it gets, so this cache grants no access. A token that lacks a scope in the cache is looked up
//! again, since the owner may have granted it more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metering_client::Client;
use metering_client::calls::keys::{GetKey, OfKey};
use metering_core::access::{KeyHash, Scope, Scopes};
use metering_core::wire::KeyResponse;
use tokio::time::Instant;

use super::caller::{Accounts, Caller, client_of};

/// How long the scopes of a token are kept.
const AGE: Duration = Duration::from_secs(30);
/// How many are kept, with about 100 bytes each. Beyond that, all are forgotten.
const KEPT_MAX: usize = 16_384;

/// The scopes of tokens, by the hash of the token.
#[derive(Debug, Default)]
pub(super) struct TokenScopes(Mutex<HashMap<KeyHash, Kept>>);

#[derive(Debug, Clone, Copy)]
struct Kept {
    /// `None` for a key, which is not an access token.
    scopes: Option<Scopes>,
    until: Instant,
}

impl TokenScopes {
    /// All scopes of the caller's access token, if it lacks this one. `None` for a key, and if that cannot be found out: then
    /// the service decides.
    pub(super) async fn without(&self, accounts: &Accounts, caller: &Caller, needed: Scope) -> Option<Vec<Scope>> {
        let Accounts::Elsewhere(client) = accounts else {
            return caller.token.clone().filter(|scopes| !scopes.contains(&needed));
        };
        let key = caller.key.as_ref()?;
        let hash = key.hash();
        if self.allows(&hash, needed) {
            return None;
        }
        let scopes = ask(&client_of(client, key, caller.address)).await?;
        self.keep(hash, scopes);
        let scopes = scopes.filter(|scopes| !scopes.has(needed))?;
        Some(scopes.iter().collect())
    }

    /// Whether a token has this scope according to the cache, or is a key.
    fn allows(&self, token: &KeyHash, needed: Scope) -> bool {
        let kept = self.kept().get(token).copied().filter(|kept| Instant::now() < kept.until);
        kept.is_some_and(|kept| kept.scopes.is_none_or(|scopes| scopes.has(needed)))
    }

    fn keep(&self, token: KeyHash, scopes: Option<Scopes>) {
        let mut kept = self.kept();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(token, Kept { scopes, until: Instant::now() + AGE });
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<KeyHash, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The scopes of the key that the client has; `Some(None)` if it is not an access token, and `None` if the service
/// gives no information.
async fn ask(client: &Client) -> Option<Option<Scopes>> {
    let response = client.call::<GetKey>(&OfKey::current(), &()).await.ok()?;
    let key = response.json::<KeyResponse>().ok()?.data;
    Some(key.secret_expires_at.map(|_| key.scopes))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use futures_util::StreamExt;
    use metering_client::{BodyStream, Transport, Unreachable};
    use metering_core::{ApiKey, ClientSource, SystemRandomness};

    use super::*;

    /// A service that gives this response for every key, and counts the requests.
    #[derive(Debug, Default)]
    struct Describes(Mutex<(String, usize)>);

    impl Describes {
        /// From now on, keys have these scopes, and more members.
        fn says(&self, scopes: &str, more: &str) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = format!(
                r#"{{"data": {{"id": "key_1", "name": "agent", "parent_id": null, "state": "active", "disabled": false,
                "limit": null, "limit_remaining": null, "limit_reset": null, "limit_resets_at": null, "usage": 0,
                "usage_daily": 0, "usage_weekly": 0, "usage_monthly": 0, "last_used_at": null,
                "created_at": "2026-11-29T09:00:00Z", "expires_at": null, "scopes": {scopes}, "routes": [],
                "networks": [], "requests_per_minute": 0, "requests_per_day": 0, "max_in_flight": 0{more}}}}}"#
            );
        }

        fn asked(&self) -> usize {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).1
        }
    }

    #[async_trait::async_trait]
    impl Transport for Describes {
        async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable> {
            assert_eq!(request.uri().path(), "/keys/current");
            let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            said.1 += 1;
            let body = Bytes::from(said.0.clone());
            Ok(http::Response::new(futures_util::stream::iter([Ok(body)]).boxed()))
        }
    }

    const EXPIRES: &str = r#", "secret_expires_at": "2026-11-29T10:00:00Z""#;

    fn caller() -> Caller {
        let key = Some(ApiKey::generate(&SystemRandomness));
        Caller { key, address: None, account: "org_1".into(), has_credit: true, token: None }
    }

    fn elsewhere() -> (Arc<Describes>, Accounts) {
        let service = Arc::new(Describes::default());
        let client = Client::new(Arc::clone(&service) as Arc<dyn Transport>, ClientSource::Mcp);
        (service, Accounts::Elsewhere(client))
    }

    #[tokio::test]
    async fn scopes_of_a_token_are_asked_for_elsewhere() {
        // more of the key, the scopes if it lacks one
        for (more, expected) in [(EXPIRES, Some(vec![Scope::Call])), ("", None), (", broken", None)] {
            let (service, accounts) = elsewhere();
            service.says(r#"["call"]"#, more);
            let without = TokenScopes::default().without(&accounts, &caller(), Scope::Read).await;
            assert_eq!(without, expected, "{more}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_with_the_scope_is_asked_for_once_in_a_while_and_one_without_each_time() {
        let ((service, accounts), known, token) = (elsewhere(), TokenScopes::default(), caller());
        service.says(r#"["call"]"#, EXPIRES);
        for _ in 0..3 {
            assert_eq!(known.without(&accounts, &token, Scope::Call).await, None);
        }
        assert_eq!(service.asked(), 1);
        for _ in 0..3 {
            assert_eq!(known.without(&accounts, &token, Scope::Read).await, Some(vec![Scope::Call]));
        }
        assert_eq!(service.asked(), 4, "the owner may have given more");
        service.says(r#"["read"]"#, EXPIRES);
        assert_eq!(known.without(&accounts, &token, Scope::Call).await, None, "the service refuses it");
        tokio::time::advance(AGE).await;
        assert_eq!(known.without(&accounts, &token, Scope::Call).await, Some(vec![Scope::Read]));
        assert_eq!(service.asked(), 5);
    }

    #[tokio::test]
    async fn a_key_is_asked_for_once_and_memory_is_bounded() {
        let ((service, accounts), known) = (elsewhere(), TokenScopes::default());
        service.says(r#"["call"]"#, "");
        let key = caller();
        for _ in 0..2 {
            assert_eq!(known.without(&accounts, &key, Scope::Read).await, None);
        }
        assert_eq!(service.asked(), 1);
        for number in 0..KEPT_MAX {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&(number as u64).to_be_bytes());
            known.keep(KeyHash::from_bytes(hash), None);
        }
        assert!(known.kept().len() < KEPT_MAX);
        assert_eq!(known.without(&accounts, &key, Scope::Read).await, None);
        assert_eq!(service.asked(), 2);
    }
}
