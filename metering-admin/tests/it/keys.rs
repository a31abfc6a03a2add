//! Operators' actions on keys, on a memory store.

use std::sync::Arc;

use metering_admin::wire::{AuditEntryDocument, CreateAccountRequest};
use metering_admin::{Action, AdminError, Administration};
use metering_core::access::{KeyHash, KeyId};
use metering_core::operators::Actor;
use metering_core::store::KeyStore;
use metering_core::wire::{ChangeKeyRequest, CreateKeyRequest, KeyDocument, KeyState, RotateKeyRequest};
use metering_core::{AccountId, Catalogue, Service, SystemRandomness, Timestamp};
use metering_sqlite::SqliteStore;

struct Scene {
    store: Arc<SqliteStore>,
    administration: Administration,
    account: AccountId,
}

impl Scene {
    async fn new() -> Self {
        let store = Arc::new(SqliteStore::in_memory().unwrap());
        let catalogue = r#"{"market": "M", "version": 1, "endpoints": [
            {"path": "/price", "method": "GET", "metered": true}]}"#;
        let catalogue = Arc::new(Catalogue::from_json(catalogue).unwrap());
        let administration = Administration::new(store.clone()).with_catalogue(catalogue);
        let request = CreateAccountRequest { agent_name: "a".to_owned(), ..CreateAccountRequest::default() };
        let (account, _) = administration.create_account(&action(), &request).await.unwrap();
        Self { store, administration, account: account.id }
    }

    async fn create(&self, request: &str) -> (KeyDocument, KeyHash) {
        let made = self.administration.create_key(&action(), &self.account, &create(request)).await;
        let (key, secret) = made.unwrap();
        (key, secret.hash())
    }

    async fn change(&self, key: &str, request: &str) -> Result<KeyDocument, AdminError> {
        let request: ChangeKeyRequest = serde_json::from_str(request).unwrap();
        self.administration.change_key(&action(), &self.account, &key.parse().unwrap(), &request).await
    }

    async fn first(&self) -> KeyDocument {
        self.administration.keys(&self.account, None, 1).await.unwrap().data.remove(0)
    }

    async fn works(&self, secret: &KeyHash) -> bool {
        let now = Timestamp::from_unix_millis(0);
        self.store.live_keys(std::slice::from_ref(secret), now).await.unwrap()[0]
    }

    async fn last_entry(&self) -> AuditEntryDocument {
        self.administration.audit_log(None, None, 1).await.unwrap().entries.remove(0)
    }
}

fn action() -> Action {
    Action::new(Actor::Operator("jo".parse().unwrap()), "Ticket 311").unwrap()
}

fn create(json: &str) -> CreateKeyRequest {
    serde_json::from_str(json).unwrap()
}

#[tokio::test]
async fn a_key_is_created_below_the_first_one_and_the_action_is_logged_without_its_secret() {
    let scene = Scene::new().await;
    let (key, secret) = scene.create(r#"{"name": "batch", "limit": "2.5", "limit_reset": "daily"}"#).await;
    let first = scene.first().await;
    assert_eq!(key.parent_id.as_ref(), Some(&first.id));
    assert_eq!((key.state, key.limit_remaining), (KeyState::Active, "2.5".parse().ok()));
    assert!(scene.works(&secret).await);
    assert_eq!(scene.administration.key(&scene.account, &key.id.parse().unwrap()).await.unwrap(), key);

    let logged = scene.last_entry().await;
    assert_eq!((logged.action.as_str(), logged.subject.as_str()), ("key.create", scene.account.as_str()));
    assert_eq!((logged.actor.as_str(), logged.reason.as_str()), ("operator:jo", "Ticket 311"));
    let asked = r#"{"name":"batch","limit":2.5,"limit_reset":"daily"}"#;
    assert_eq!(logged.request.unwrap().get(), asked);
    let after = logged.outcome.unwrap().after.unwrap();
    assert_eq!(serde_json::from_str::<KeyDocument>(after.get()).unwrap(), key);
    assert!(!after.get().replace("sk_live_…", "").contains("sk_live_"), "only the hint is logged");
}

#[tokio::test]
async fn operators_are_not_bound_by_the_number_of_keys() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let config = metering_core::ServiceConfig { max_keys_per_account: 1, ..Default::default() };
    let service = Service::start(store.clone(), Catalogue::default(), config);
    let (account, key) = service.open_account("a", "0".parse().unwrap()).await.unwrap();
    assert!(service.keys().create(Some(&key), &create(r#"{"name": "b"}"#), None).await.is_err());
    let administration = Administration::new(store);
    administration.create_key(&action(), &account.id, &create(r#"{"name": "b"}"#)).await.unwrap();
    assert_eq!(administration.keys(&account.id, None, 10).await.unwrap().data.len(), 2);
}

#[tokio::test]
async fn terms_change_and_null_removes_a_restriction() {
    let scene = Scene::new().await;
    let (key, secret) = scene.create(r#"{"name": "batch", "limit": "2.5", "limit_reset": "daily"}"#).await;
    let request = r#"{"name": "b", "limit": null, "disabled": true, "routes": ["/price"], "max_in_flight": 3}"#;
    let changed = scene.change(&key.id, request).await.unwrap();
    assert_eq!((changed.name.as_str(), changed.limit, changed.limit_reset), ("b", None, None));
    assert_eq!((changed.state, changed.routes, changed.max_in_flight), (KeyState::Disabled, vec!["/price".into()], 3));
    assert!(!scene.works(&secret).await);
    let logged = scene.last_entry().await;
    assert_eq!(logged.action, "key.change");
    let asked = r#"{"name":"b","limit":null,"disabled":true,"routes":["/price"],"max_in_flight":3}"#;
    assert_eq!(logged.request.unwrap().get(), asked);
    assert_eq!(serde_json::from_str::<KeyDocument>(logged.before.unwrap().get()).unwrap(), key);
    assert_eq!(scene.change(&key.id, r#"{"disabled": false}"#).await.unwrap().state, KeyState::Active);
    assert!(scene.works(&secret).await);
}

#[tokio::test]
async fn a_rotated_key_has_one_more_secret_until_the_grace_period_ends() {
    let scene = Scene::new().await;
    let (key, old) = scene.create(r#"{"name": "batch"}"#).await;
    let id = key.id.parse().unwrap();
    let rotate = |grace_seconds| RotateKeyRequest { grace_seconds };
    let administration = &scene.administration;
    let too_long = administration.rotate_key_by_id(&action(), &scene.account, &id, &rotate(Some(604_801))).await;
    assert!(matches!(too_long, Err(AdminError::Invalid(_))), "{too_long:?}");
    let rotated = administration.rotate_key_by_id(&action(), &scene.account, &id, &rotate(Some(60))).await;
    let (after, new) = rotated.unwrap();
    assert_eq!(after.id, key.id);
    assert!(scene.works(&old).await && scene.works(&new.hash()).await);
    let (_, newest) = administration.rotate_key_by_id(&action(), &scene.account, &id, &rotate(None)).await.unwrap();
    assert!(!scene.works(&old).await && !scene.works(&new.hash()).await && scene.works(&newest.hash()).await);
    assert_eq!(scene.last_entry().await.action, "key.rotate");
}

#[tokio::test]
async fn a_deleted_key_is_gone_and_the_first_key_stays() {
    let scene = Scene::new().await;
    let (key, secret) = scene.create(r#"{"name": "batch"}"#).await;
    let id: KeyId = key.id.parse().unwrap();
    scene.administration.delete_key(&action(), &scene.account, &id).await.unwrap();
    assert!(!scene.works(&secret).await);
    let logged = scene.last_entry().await;
    assert_eq!((logged.action.as_str(), logged.outcome.unwrap().result.as_str()), ("key.delete", "done"));
    let again = scene.administration.delete_key(&action(), &scene.account, &id).await;
    assert!(matches!(again, Err(AdminError::NotFound(_))), "{again:?}");
    assert!(matches!(scene.administration.key(&scene.account, &id).await, Err(AdminError::NotFound(_))));

    let first: KeyId = scene.first().await.id.parse().unwrap();
    let refused = scene.administration.delete_key(&action(), &scene.account, &first).await;
    assert!(matches!(refused, Err(AdminError::Conflict(_))), "{refused:?}");
    assert_eq!(scene.last_entry().await.outcome.unwrap().result, "refused");
}

#[tokio::test]
async fn what_is_wrong_is_named_and_nothing_is_logged() {
    let scene = Scene::new().await;
    let before = scene.last_entry().await.id;
    // request, part of the message
    let table = [
        ("{}", "name is required"),
        (r#"{"name": "b", "limit_reset": "daily"}"#, "limit_reset needs a limit"),
        (r#"{"name": "b", "scopes": ["admin"], "networks": ["x"]}"#, "networks \"x\" is not an address"),
        (r#"{"name": "b", "routes": ["/prize"]}"#, "matches no metered route; did you mean /price?"),
        (r#"{"name": "b", "expires_at": "2020-01-01T00:00:00Z"}"#, "expires_at must be in the future"),
    ];
    for (request, expected) in table {
        let refused = scene.administration.create_key(&action(), &scene.account, &create(request)).await;
        assert!(matches!(&refused, Err(AdminError::Invalid(text)) if text.contains(expected)), "{refused:?}");
    }
    let unknown = AccountId::generate(&SystemRandomness);
    let refused = scene.administration.create_key(&action(), &unknown, &create(r#"{"name": "b"}"#)).await;
    assert!(matches!(refused, Err(AdminError::NoSuchAccount(_))), "{refused:?}");
    assert!(matches!(scene.administration.keys(&unknown, None, 9).await, Err(AdminError::NoSuchAccount(_))));
    assert_eq!(scene.last_entry().await.id, before);
}

#[tokio::test]
async fn keys_of_a_revoked_account_cannot_be_changed() {
    let scene = Scene::new().await;
    let (key, _) = scene.create(r#"{"name": "batch"}"#).await;
    scene.administration.revoke_account(&action(), &scene.account).await.unwrap();
    let changed = scene.change(&key.id, r#"{"name": "b"}"#).await;
    assert!(matches!(&changed, Err(AdminError::Conflict(text)) if text.contains("revoked")), "{changed:?}");
    let made = scene.administration.create_key(&action(), &scene.account, &create(r#"{"name": "b"}"#)).await;
    assert!(matches!(made, Err(AdminError::Conflict(_))), "{made:?}");
}
