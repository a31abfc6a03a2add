//! Contracts for the life of a grant: its code and its refresh tokens work once, and its key keeps its usage.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{ApiKey, Key};
use metering_core::service::{OAuthError, PaymentSettings, TokenForm};
use metering_core::store::{KeyChange, TermsChange};
use metering_core::wire::{AuthorizationRequest, ConsentRequest, CreateKeyRequest, TokenResponse};
use metering_core::{Catalogue, Charge, Error, FullStore, Service, ServiceConfig, SystemRandomness};

use super::auto_top_ups::{begin, turn_on};
use super::scene::{NOON, assert_verified, atoms, customer, racing};

const TASKS: usize = 16;
const ISSUER: &str = "https://api.example";
/// Where a process serves MCP alone.
const ELSEWHERE: &str = "https://mcp.example";
const REDIRECT_URI: &str = "https://a.example/cb";
/// The example of RFC 7636.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// The budget that owners give: a ten-millionth of a credit.
const BUDGET: i64 = 720;

/// A service with a client's pending consent request.
struct Scene {
    store: Arc<dyn FullStore>,
    service: Arc<Service>,
    owner: Key,
    client: String,
}

impl Scene {
    async fn new(store: Arc<dyn FullStore>) -> Self {
        let id = customer(&*store, 10_000).await.id;
        let owner = store.keys(&id, None, 1, NOON.day()).await.unwrap().items.remove(0).key;
        let service = Service::start(Arc::clone(&store) as _, Catalogue::default(), ServiceConfig::default());
        let service = service.with_oauth(Arc::clone(&store), Arc::new(()), vec![ELSEWHERE.to_owned()]);
        let json = format!(r#"{{"client_name": "Agent", "redirect_uris": ["{REDIRECT_URI}"]}}"#);
        let registered = service.oauth().unwrap().register(json.as_bytes()).await.unwrap();
        Self { store, service: Arc::new(service), owner, client: registered.client_id }
    }

    /// The code that the client gets when the owner consents.
    async fn code(&self) -> String {
        let text = |text: &str| Some(text.to_owned());
        let authorization = AuthorizationRequest {
            response_type: text("code"),
            client_id: text(&self.client),
            redirect_uri: text(REDIRECT_URI),
            state: text("s"),
            code_challenge: text(CHALLENGE),
            code_challenge_method: text("S256"),
            resource: Some(format!("{ELSEWHERE}/mcp")),
            ..AuthorizationRequest::default()
        };
        let key = CreateKeyRequest { limit: Some(atoms(BUDGET)), ..CreateKeyRequest::default() };
        let request = ConsentRequest { authorization, key };
        let consented = self.service.oauth().unwrap().consent(&self.owner, None, &request, ISSUER).await.unwrap();
        let response = consented.redirect_to.strip_prefix(&format!("{REDIRECT_URI}?code=")).unwrap();
        let (code, rest) = response.split_once('&').unwrap();
        assert_eq!(rest, "state=s&iss=https%3A%2F%2Fapi.example");
        code.to_owned()
    }

    async fn redeem(&self, code: &str) -> Result<TokenResponse, OAuthError> {
        let client = &self.client;
        let form = format!("grant_type=authorization_code&code={code}&client_id={client}&code_verifier={VERIFIER}");
        self.service.oauth().unwrap().token(&TokenForm::parse(form.as_bytes())?, ISSUER).await
    }

    async fn refresh(&self, token: &str) -> Result<TokenResponse, OAuthError> {
        let form = format!("grant_type=refresh_token&refresh_token={token}&client_id={}", self.client);
        self.service.oauth().unwrap().token(&TokenForm::parse(form.as_bytes())?, ISSUER).await
    }

    /// Charges some atoms with an access token.
    async fn charge(&self, token: &TokenResponse, price: i64) -> Result<(), Error> {
        let charge = Charge::new(token.access_token.key(), atoms(price), "GET", "/price");
        self.service.charge(charge).await.map(drop)
    }

    /// The client's keys.
    async fn keys(&self) -> Vec<Key> {
        let page = self.store.keys(&self.owner.account, None, 100, NOON.day()).await.unwrap();
        page.items.into_iter().map(|status| status.key).filter(|key| !key.number.is_first()).collect()
    }
}

fn refresh_token(response: &TokenResponse) -> &str {
    response.refresh_token.as_deref().expect("each response has the next refresh token")
}

#[track_caller]
fn assert_refused(response: Result<TokenResponse, OAuthError>, code: &str) {
    match response {
        Err(OAuthError::Refused { error, .. }) => assert_eq!(error, code),
        other => panic!("expected {code}: {other:?}"),
    }
}

/// Many clients send it at once: one gets the key, and then loses it, since the code must have been stolen.
pub async fn a_code_gives_one_key_however_often_it_is_sent(store: Arc<dyn FullStore>) {
    let scene = Arc::new(Scene::new(store).await);
    let kept_until = async || scene.store.oauth_client(&scene.client).await.unwrap().unwrap().expires_at;
    let unused = kept_until().await;
    let code = scene.code().await;
    assert_eq!(kept_until().await, unused, "a consent alone keeps no registration");
    let wrong = format!(
        "grant_type=authorization_code&code={code}&client_id={}&code_verifier={}",
        scene.client,
        "x".repeat(43)
    );
    let wrong = TokenForm::parse(wrong.as_bytes()).unwrap();
    assert_refused(scene.service.oauth().unwrap().token(&wrong, ISSUER).await, "invalid_grant");
    assert_eq!(scene.keys().await, [], "a wrong verifier makes no key");
    let results = racing(&scene, 0..TASKS, |scene, _| {
        let code = code.clone();
        async move { scene.redeem(&code).await }
    })
    .await;
    let tokens: Vec<_> = results.into_iter().flatten().collect();
    assert_eq!(tokens.len(), 1);
    assert_eq!(scene.keys().await, [], "using the code again revoked the key");
    assert!(scene.charge(&tokens[0], 1).await.is_err());
    assert_refused(scene.refresh(refresh_token(&tokens[0])).await, "invalid_grant");
    let again = scene.code().await;
    let token = scene.redeem(&again).await.unwrap();
    assert_eq!((token.token_type, token.scope.as_str(), token.expires_in), ("Bearer", "call read", 3_600));
    assert!(kept_until().await > unused);
    let [key]: [Key; 1] = scene.keys().await.try_into().expect("one key");
    assert_eq!((key.terms.name.as_str(), key.parent), ("Agent", Some(scene.owner.number)));
    assert_eq!(key.terms.budget.map(|budget| budget.limit), Some(atoms(BUDGET)));
}

/// The key stays; its secret is another.
pub async fn a_refresh_keeps_the_budget_and_what_was_spent_of_it(store: Arc<dyn FullStore>) {
    let scene = Scene::new(store).await;
    let first = scene.redeem(&scene.code().await).await.unwrap();
    let [before]: [Key; 1] = scene.keys().await.try_into().expect("one key");
    scene.charge(&first, BUDGET / 2).await.unwrap();
    let second = scene.refresh(refresh_token(&first)).await.unwrap();
    let [after]: [Key; 1] = scene.keys().await.try_into().expect("one key");
    assert_ne!(after.hint, before.hint, "the secret is new");
    assert_eq!(after, Key { hint: after.hint, ..before });
    scene.charge(&first, 1).await.expect("requests that are on their way are not refused");
    scene.charge(&second, BUDGET / 2 - 1).await.unwrap();
    assert!(matches!(scene.charge(&second, 1).await, Err(Error::Refused(_))), "the budget is used up");
    let third = scene.refresh(refresh_token(&second)).await.unwrap();
    assert!(matches!(scene.charge(&third, 1).await, Err(Error::Refused(_))), "and stays so");
    assert_verified(&*scene.store).await;
}

/// The one who used it first, thief or client, loses the key.
pub async fn a_refresh_token_that_comes_twice_ends_the_access(store: Arc<dyn FullStore>) {
    let scene = Scene::new(store).await;
    let first = scene.redeem(&scene.code().await).await.unwrap();
    let second = scene.refresh(refresh_token(&first)).await.unwrap();
    let other = scene.redeem(&scene.code().await).await.unwrap();
    assert_refused(scene.refresh(refresh_token(&first)).await, "invalid_grant");
    assert!(scene.charge(&second, 1).await.is_err());
    assert_refused(scene.refresh(refresh_token(&second)).await, "invalid_grant");
    scene.charge(&other, 1).await.expect("the other grant of the client stays");
}

/// By its access token or by its refresh token. Keys of owners are not revoked that way.
pub async fn a_revoked_token_ends_the_access(store: Arc<dyn FullStore>) {
    let scene = Scene::new(store).await;
    let oauth = || scene.service.oauth().unwrap();
    let revoke = async |token: &str| oauth().revoke(&TokenForm::parse(format!("token={token}").as_bytes())?).await;
    for by_access_token in [true, false] {
        let given = scene.redeem(&scene.code().await).await.unwrap();
        let token = if by_access_token { given.access_token.key().expose() } else { refresh_token(&given) };
        revoke(token).await.unwrap();
        revoke(token).await.expect("an unknown token is none that works");
        assert!(scene.charge(&given, 1).await.is_err());
        assert_eq!(scene.keys().await, []);
    }
    let secret = ApiKey::generate(&SystemRandomness);
    let rotate = KeyChange::Rotate { secret: secret.hash(), old_until: None };
    let _ = scene.store.change_key(&scene.owner.account, &scene.owner.id, None, rotate, NOON).await.unwrap();
    revoke(secret.expose()).await.unwrap();
    assert_eq!(scene.store.live_keys(&[secret.hash()], NOON).await.unwrap(), [true]);
}

/// In either order, the client has no access afterwards.
pub async fn a_code_that_is_revoked_while_it_is_redeemed_gives_nothing(store: Arc<dyn FullStore>) {
    let scene = Scene::new(store).await;
    for _ in 0..TASKS {
        let code = scene.code().await;
        let form = TokenForm::parse(format!("token={code}").as_bytes()).unwrap();
        let (redeemed, revoked) = tokio::join!(scene.redeem(&code), scene.service.oauth().unwrap().revoke(&form));
        revoked.unwrap();
        if let Ok(token) = redeemed {
            assert!(scene.charge(&token, 1).await.is_err());
        }
        assert_eq!(scene.keys().await, []);
    }
}

/// With the saved card, and without hashes or what the processor calls them.
pub async fn an_export_has_programs_and_cards(store: Arc<dyn FullStore>) {
    let scene = Scene::new(store).await;
    let token = scene.redeem(&scene.code().await).await.unwrap();
    let owner = &scene.owner;
    turn_on(&*scene.store, &owner.account).await;
    let charge = begin(&*scene.store, &owner.account, NOON).await.expect("it is due");
    let secret = ApiKey::generate(&SystemRandomness);
    let rotate = KeyChange::Rotate { secret: secret.hash(), old_until: None };
    let _ = scene.store.change_key(&owner.account, &owner.id, None, rotate, NOON).await.unwrap();
    let service = Service::start(Arc::clone(&scene.store) as _, Catalogue::default(), ServiceConfig::default())
        .with_oauth(Arc::clone(&scene.store), Arc::new(()), Vec::new())
        .with_payments(Arc::clone(&scene.store) as _, Default::default(), PaymentSettings::default());
    let export = service.export(Some(&secret)).await.unwrap();
    let [grant] = export.oauth_grants.as_deref().unwrap() else { panic!("{export:?}") };
    assert_eq!((grant.client_id.as_str(), grant.client_name.as_deref()), (scene.client.as_str(), Some("Agent")));
    assert_eq!((grant.terms.name.as_deref(), grant.terms.limit), (Some("Agent"), Some(atoms(BUDGET))));
    assert_eq!(grant.terms.scopes.as_deref().unwrap(), ["call", "read"]);
    let [key]: [Key; 1] = scene.keys().await.try_into().expect("one key");
    assert_eq!((grant.key.as_deref(), grant.parent.as_str()), (Some(key.id.as_str()), owner.id.as_str()));
    let saved = export.auto_top_up.as_ref().unwrap();
    assert_eq!(saved.card.as_ref().map(|card| card.last4.as_str()), Some("4242"));
    assert_eq!(saved.rule.as_ref().map(|rule| rule.plan_id.as_str()), Some("starter"));
    let [charged] = export.card_charges.as_deref().unwrap() else { panic!("{export:?}") };
    assert_eq!((charged.id.clone(), charged.amount.as_str()), (charge.id.to_string(), "10"));
    let text = serde_json::to_string(&export).unwrap();
    for hidden in [charge.card.customer.as_str(), &charge.card.method, refresh_token(&token), CHALLENGE] {
        assert!(!text.contains(hidden), "{hidden}");
    }
}

/// Switched on again, the key can be refreshed again.
pub async fn an_owner_who_rotates_or_disables_the_key_ends_its_refreshes(store: Arc<dyn FullStore>) {
    let scene = Scene::new(store).await;
    let given = scene.redeem(&scene.code().await).await.unwrap();
    let [key]: [Key; 1] = scene.keys().await.try_into().expect("one key");
    let change = async |change: KeyChange| {
        let changed = scene.store.change_key(&key.account, &key.id, Some(&scene.owner.id), change, NOON).await;
        let _ = changed.unwrap();
    };
    let disabled =
        |disabled| KeyChange::Terms(Box::new(TermsChange { disabled: Some(disabled), ..TermsChange::default() }));
    change(disabled(true)).await;
    assert_refused(scene.refresh(refresh_token(&given)).await, "invalid_grant");
    change(disabled(false)).await;
    let given = scene.refresh(refresh_token(&given)).await.expect("nothing was used up");
    let later = NOON.saturating_add(Duration::from_secs(u32::MAX.into()));
    for old_until in [Some(later), None] {
        let secret = ApiKey::generate(&SystemRandomness).hash();
        change(KeyChange::Rotate { secret, old_until }).await;
        assert_eq!(scene.charge(&given, 1).await.is_ok(), old_until.is_some(), "a grace period is for requests");
        assert_refused(scene.refresh(refresh_token(&given)).await, "invalid_grant");
        assert_eq!(scene.store.live_keys(&[secret], later).await.unwrap(), [true], "the owner's new secret stays");
    }
}
