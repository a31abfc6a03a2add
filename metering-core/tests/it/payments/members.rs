//! Members of an account: the rights of their roles, and how they sign in.

use std::sync::Arc;

use metering_core::access::{Caller, DeviceName, Right, Scope, SessionCredentials};
use metering_core::charging::IdempotencyKey;
use metering_core::wire::{
    AuthorizationRequest, ChangeMemberRequest, ConsentRequest, CreateKeyRequest, ErrorCode, InviteMemberRequest,
    LinkRequest, RotateKeyRequest, WalletSignInRequest,
};
use metering_core::{ApiKey, Error, Service};
use metering_sqlite::SqliteStore;

use super::wallet::Wallet;

fn service() -> Service {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let service = Service::with_defaults(Arc::clone(&store) as _).with_browser_sessions(Arc::clone(&store) as _);
    let service = service.with_members(Arc::clone(&store) as _, "https://acme.example/sign-in");
    service.with_oauth(store, Arc::new(()), Vec::new())
}

fn role(role: &str) -> InviteMemberRequest {
    InviteMemberRequest { role: Some(role.to_owned()), email: None }
}

/// The text after `#sign-in=` in the link of an invitation.
async fn invited(service: &Service, key: &ApiKey, name: &str) -> String {
    let url = service.members().invite(key, &role(name)).await.unwrap().url.unwrap();
    url.rsplit_once("#sign-in=").unwrap().1.to_owned()
}

/// A signed text in place of a link.
async fn signed(service: &Service, wallet: &Wallet, invitation: Option<&str>) -> Result<LinkRequest, Error> {
    let invitation = invitation.map(|token| token.to_owned().into());
    let request = WalletSignInRequest { address: Some(wallet.address.to_string()), invitation };
    let begun = service.browser_sessions().begin_with_wallet(&request).await?;
    let signature = Some(wallet.sign(&begun.message));
    Ok(LinkRequest { token: Some(begun.token.into()), signature, org_id: None })
}

async fn open(service: &Service, link: &LinkRequest) -> SessionCredentials {
    let device = DeviceName::of_user_agent("");
    let opened = service.browser_sessions().open_by_link(link, device).await.unwrap();
    service.browser_sessions().find(&opened.token).await.unwrap().unwrap()
}

/// Joins the account of a key with a wallet.
async fn joined(service: &Service, key: &ApiKey, name: &str, wallet: &Wallet) -> SessionCredentials {
    let invitation = invited(service, key, name).await;
    open(service, &signed(service, wallet, Some(&invitation)).await.unwrap()).await
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<ErrorCode> {
    result.err().map(|error| error.code())
}

#[tokio::test]
async fn each_role_may_do_what_its_table_says() {
    let service = service();
    let (_, key) = service.open_account("acme", "2".parse().unwrap()).await.unwrap();
    let child: CreateKeyRequest = serde_json::from_str(r#"{"name": "child"}"#).unwrap();
    let buying: CreateKeyRequest = serde_json::from_str(r#"{"name": "buyer", "scopes": ["topup"]}"#).unwrap();
    let again = |part: &str| IdempotencyKey::parse(&part.repeat(32)).unwrap();
    // role, reads, makes keys, makes keys that buy, invites
    let table = [
        ("viewer", [true, false, false, false]),
        ("billing", [true, false, false, false]),
        ("developer", [true, true, false, false]),
        ("owner", [true, true, true, true]),
    ];
    for (number, (name, expected)) in (1..).zip(table) {
        let session = joined(&service, &key, name, &Wallet::of(number)).await;
        let done = [
            service.usage().balance(&session).await.is_ok(),
            service.keys().create(&session, &child, None).await.is_ok(),
            service.keys().create(&session, &buying, None).await.is_ok(),
            service.members().invite(&session, &role("viewer")).await.is_ok(),
        ];
        assert_eq!(done, expected, "{name}");
        assert!(service.keys().list(&session, None, 10).await.is_ok(), "{name}");
        let own = service.keys().rotate(&session, "current", &RotateKeyRequest::default(), Some(&again("1"))).await;
        if name == "owner" {
            assert!(own.is_ok(), "{own:?}");
            let ended = service.usage().balance(&session).await;
            assert_eq!(code(ended), Some(ErrorCode::Unauthorized), "rotation signs everyone out");
        } else {
            assert_eq!(code(own), Some(ErrorCode::KeyScope), "{name}");
        }
    }
}

#[tokio::test]
async fn a_developer_does_not_get_the_secret_of_a_key_that_buys() {
    let service = service();
    let (_, key) = service.open_account("acme", "2".parse().unwrap()).await.unwrap();
    let buying: CreateKeyRequest = serde_json::from_str(r#"{"name": "buyer", "scopes": ["read", "topup"]}"#).unwrap();
    let buyer = service.keys().create(&key, &buying, None).await.unwrap().data.id;
    let session = joined(&service, &key, "developer", &Wallet::of(1)).await;
    let rotated = service.keys().rotate(&session, &buyer, &RotateKeyRequest::default(), None).await;
    assert_eq!(code(rotated), Some(ErrorCode::KeyScope));
    let own =
        service.keys().create(&session, &serde_json::from_str(r#"{"name": "own"}"#).unwrap(), None).await.unwrap();
    let wider = serde_json::from_str(r#"{"scopes": ["read", "topup"]}"#).unwrap();
    assert_eq!(code(service.keys().change(&session, &own.data.id, &wider).await), Some(ErrorCode::KeyScope));
    assert!(service.keys().delete(&session, &own.data.id).await.is_ok());
}

#[tokio::test]
async fn members_who_only_read_push_nothing_out_of_the_log() {
    let service = service();
    let (_, key) = service.open_account("acme", "2".parse().unwrap()).await.unwrap();
    for (role, number, is_logged) in [("viewer", 1, false), ("billing", 2, true), ("developer", 3, true)] {
        let session = joined(&service, &key, role, &Wallet::of(number)).await;
        let member = Caller::from(&session).member().unwrap();
        let begun = service.members().begin_action(member, "create_key", "").await.unwrap();
        assert_eq!(begun.is_some(), is_logged, "{role}");
    }
}

#[tokio::test]
async fn nobody_gives_a_program_more_than_the_role_has() {
    let (service, issuer) = (service(), "https://api.example");
    let (_, key) = service.open_account("acme", "2".parse().unwrap()).await.unwrap();
    let oauth = service.oauth().unwrap();
    let client = oauth.register(br#"{"client_name": "Agent", "redirect_uris": ["https://app.example/back"]}"#).await;
    let text = |text: &str| Some(text.to_owned());
    let authorization = AuthorizationRequest {
        response_type: text("code"),
        client_id: Some(client.unwrap().client_id),
        redirect_uri: text("https://app.example/back"),
        code_challenge: text("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        code_challenge_method: text("S256"),
        ..AuthorizationRequest::default()
    };
    let asked =
        |key: &str| ConsentRequest { authorization: authorization.clone(), key: serde_json::from_str(key).unwrap() };
    let billing = joined(&service, &key, "billing", &Wallet::of(1)).await;
    assert_eq!(code(service.access().current_key(&billing, Scope::Manage).await), Some(ErrorCode::KeyScope));
    let developer = joined(&service, &key, "developer", &Wallet::of(2)).await;
    let parent = service.access().current_key(&developer, Scope::Manage).await.unwrap();
    let member = Caller::from(&developer).member();
    let buying = oauth.consent(&parent, member, &asked(r#"{"scopes": ["read", "topup"]}"#), issuer).await;
    assert_eq!(code(buying.map(|_| ())), Some(ErrorCode::KeyScope));
    assert!(oauth.consent(&parent, member, &asked("{}"), issuer).await.is_ok());
    // A key that cannot grant the requested scopes grants nothing else instead.
    let unreading = serde_json::from_str(r#"{"name": "unreading", "scopes": ["call", "manage"]}"#).unwrap();
    let unreading = service.keys().create(&key, &unreading, None).await.unwrap();
    let parent = service.access().current_key(unreading.key.key(), Scope::Manage).await.unwrap();
    let mut reading = asked("{}");
    reading.authorization.scope = text("read");
    let given = oauth.consent(&parent, None, &reading, issuer).await;
    assert_eq!(code(given.map(|_| ())), Some(ErrorCode::ValidationFailed));
    assert_eq!(code(service.export(&developer).await), Some(ErrorCode::KeyScope));
    let owner = joined(&service, &key, "owner", &Wallet::of(3)).await;
    let export = service.export(&owner).await.unwrap();
    assert_eq!(export.members.unwrap().data.len(), 3);
    assert!(export.account_log.is_some_and(|log| !log.data.is_empty()) && export.child_accounts.is_none());
}

#[tokio::test]
async fn a_role_changes_and_a_member_leaves_immediately() {
    let service = service();
    let (_, key) = service.open_account("acme", "2".parse().unwrap()).await.unwrap();
    let session = joined(&service, &key, "viewer", &Wallet::of(1)).await;
    let id = session.member.as_ref().unwrap().id.to_string();
    let shown = service.usage().balance(&session).await.unwrap().member.unwrap();
    assert_eq!((shown.role.as_str(), shown.may), ("viewer", vec![Right::Read]));
    assert_eq!(service.usage().balance(&key).await.unwrap().member, None);
    let change = ChangeMemberRequest { role: Some("developer".to_owned()) };
    assert_eq!(code(service.members().change(&session, &id, &change).await), Some(ErrorCode::KeyScope));
    assert_eq!(service.members().change(&key, &id, &change).await.unwrap().data.role, "developer");
    let found = service.browser_sessions().find(&session.token).await.unwrap().unwrap();
    assert_eq!(found.member.unwrap().role.as_str(), "developer");
    service.members().remove(&session, "current").await.unwrap();
    assert!(service.browser_sessions().find(&session.token).await.unwrap().is_none());
    let log = service.members().log(&key, None, 10).await.unwrap().data;
    let shown: Vec<_> = log.iter().map(|entry| (entry.action.as_str(), entry.actor_name.as_str())).collect();
    let wallet = Wallet::of(1).address.to_string();
    let expected = [
        ("remove_member", wallet.as_str()),
        ("change_member", "First key"),
        ("join", wallet.as_str()),
        ("invite_member", "First key"),
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_wallet_signs_in_to_the_account_that_it_chooses() {
    let service = service();
    let wallet = Wallet::of(1);
    assert_eq!(code(signed(&service, &wallet, None).await), Some(ErrorCode::NoLinkedWallet));
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        let (account, key) = service.open_account(name, "2".parse().unwrap()).await.unwrap();
        joined(&service, &key, "viewer", &wallet).await;
        ids.push(account.id.to_string());
    }
    let link = signed(&service, &wallet, None).await.unwrap();
    let sessions = service.browser_sessions();
    let shown = sessions.accounts_of_link(&link).await.unwrap();
    assert_eq!(shown.accounts.iter().map(|account| account.org_id.clone()).collect::<Vec<_>>(), ids);
    let device = || DeviceName::of_user_agent("");
    let undecided = sessions.open_by_link(&link, device()).await;
    assert_eq!(code(undecided.map(|_| ())), Some(ErrorCode::ValidationFailed));
    let stolen = LinkRequest {
        signature: Some(Wallet::of(2).sign("anything")),
        ..signed(&service, &wallet, None).await.unwrap()
    };
    assert_eq!(code(sessions.accounts_of_link(&stolen).await), Some(ErrorCode::InvalidSignature));
    let chosen = LinkRequest { org_id: Some(ids[1].clone()), ..link };
    let session = open(&service, &chosen).await;
    assert_eq!(service.usage().balance(Caller::from(&session)).await.unwrap().org_id, ids[1]);
    let used = sessions.open_by_link(&chosen, device()).await;
    assert_eq!(code(used.map(|_| ())), Some(ErrorCode::LinkExpired));
}

#[tokio::test]
async fn an_invitation_alone_says_that_it_needs_an_identity() {
    let service = service();
    let (account, key) = service.open_account("acme", "2".parse().unwrap()).await.unwrap();
    let token = invited(&service, &key, "billing").await;
    let link = LinkRequest { token: Some(token.into()), ..LinkRequest::default() };
    let shown = service.browser_sessions().accounts_of_link(&link).await.unwrap();
    assert_eq!((shown.org_id, shown.needs_identity, shown.joins), (account.id.to_string(), true, false));
    let opened = service.browser_sessions().open_by_link(&link, DeviceName::of_user_agent("")).await;
    assert_eq!(code(opened.map(|_| ())), Some(ErrorCode::ValidationFailed));
}
