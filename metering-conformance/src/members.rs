//! Contracts for members of accounts: invited, joined, changed and removed, signed in, and logged.

use std::sync::Arc;
use std::time::Duration;

use metering_core::FullStore;
use metering_core::access::{
    AccountAction, AccountActor, AccountId, EmailStatus, Identity, Invitation, Key, Member, MemberId, MemberRole,
    NewAccountAction, Payer, SignInProof,
};
use metering_core::chains::Address;
use metering_core::events::EventKind::{self, MemberChanged as Changed, MemberJoined, MemberRemoved};
use metering_core::random::SystemRandomness;
use metering_core::signups::{LinkHash, LinkToken};
use metering_core::store::{Cursor, Invited, MemberChange, MemberChanged, NewAccount, in_transaction};
use tokio::task::JoinSet;

use super::browser_sessions::new;
use super::event_scene::reported;
use super::scene::{Customer, MINUTE, NOON, create, customer, new_account, new_id};

const TASKS: usize = 16;

/// The holder of the account's first key.
fn owner_of(customer: &Customer) -> AccountActor {
    let Key { id, terms, .. } = Key::first(customer.id.clone(), &customer.key, NOON);
    AccountActor::Key { id, name: terms.name, is_first: true }
}

fn token() -> LinkHash {
    LinkToken::generate(&SystemRandomness).hash()
}

fn invitation(account: &AccountId, role: MemberRole, email: Option<&str>) -> Invitation {
    Invitation {
        id: MemberId::generate(&SystemRandomness),
        token: token(),
        account: account.clone(),
        role,
        email: email.map(|email| email.parse().unwrap()),
        created_at: NOON,
        expires_at: NOON.saturating_add(Invitation::LIFETIME),
    }
}

/// Invites a member by mail, who joins in a separate minute.
async fn member(store: &dyn FullStore, owner: &Customer, minute: u32, role: MemberRole, email: &str) -> Member {
    let new_invitation = invitation(&owner.id, role, Some(email));
    assert_eq!(store.invite(new_invitation.clone(), owner_of(owner)).await.unwrap(), Invited::Invited);
    let session = store.join(&new_invitation.token, new(NOON.saturating_add(MINUTE * minute))).await.unwrap();
    let session = session.expect("the invitation is live");
    let members = store.members(&owner.id).await.unwrap();
    members.into_iter().find(|member| Some(member.id) == session.member).expect("it joined")
}

/// Begins a sign-in of an identity.
async fn proof(store: &dyn FullStore, identity: &str, invitation: Option<LinkHash>) -> LinkHash {
    let expires_at = NOON.saturating_add(SignInProof::LIFETIME);
    let proof = SignInProof { token: token(), identity: identity.parse().unwrap(), invitation, expires_at };
    store.open_sign_in(proof.clone()).await.unwrap();
    assert_eq!(store.sign_in_proof(&proof.token).await.unwrap(), Some(proof.clone()));
    proof.token
}

async fn actions(store: &dyn FullStore, account: &AccountId) -> Vec<AccountAction> {
    store.account_log(account, None, 100).await.unwrap().items
}

/// By mail: the link proves the address. A member who joined is found as invited, and the invitation is gone.
pub async fn an_invitation_is_joined_once(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1).await;
    let invited = invitation(&owner.id, MemberRole::Developer, Some("Jo@Example.com"));
    assert_eq!(store.invite(invited.clone(), owner_of(&owner)).await.unwrap(), Invited::Invited);
    assert_eq!(store.invitation(&invited.token).await.unwrap(), Some(invited.clone()));
    assert_eq!(store.invitations(&owner.id).await.unwrap(), std::slice::from_ref(&invited));
    let token = token();
    let readdressed = store.readdress_invitation(&owner.id, invited.id, token).await.unwrap();
    assert_eq!(readdressed, Some(Invitation { token, ..invited.clone() }));
    assert_eq!(store.join(&invited.token, new(NOON)).await.unwrap(), None, "its token was replaced");
    let session = store.join(&token, new(NOON)).await.unwrap().expect("the invitation is live");
    assert_eq!((&session.account, session.secret, session.member), (&owner.id, owner.key, Some(invited.id)));
    assert_eq!(store.browser_session(&session.token).await.unwrap(), Some(session));
    let identity: Identity = "Jo@Example.com".parse().unwrap();
    let account = owner.id.clone();
    let joined = Member { id: invited.id, account, role: MemberRole::Developer, identity, joined_at: NOON };
    let members = store.members(&owner.id).await.unwrap();
    assert_eq!((members.as_slice(), members[0].identity.to_string().as_str()), (&[joined][..], "Jo@Example.com"));
    assert_eq!(store.invitations(&owner.id).await.unwrap(), []);
    assert_eq!(store.join(&token, new(NOON)).await.unwrap(), None);
    let logged: Vec<_> = actions(&*store, &owner.id).await.into_iter().map(|action| action.action).collect();
    assert_eq!(logged, ["join", "invite_member"]);
    assert_eq!(reported(&*store, &owner.id).await.last(), Some(&MemberJoined));
}

/// Its holder proves an identity, here a wallet's. An invitation alone, or an expired one, adds no member.
pub async fn a_link_to_pass_on_needs_an_identity(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1).await;
    let invited = invitation(&owner.id, MemberRole::Viewer, None);
    store.invite(invited.clone(), owner_of(&owner)).await.unwrap();
    assert_eq!(store.join(&invited.token, new(NOON)).await.unwrap(), None);
    assert_eq!(store.readdress_invitation(&owner.id, invited.id, token()).await.unwrap(), None);
    let wallet = Address::from_bytes([7; 20]).to_string();
    let proven = proof(&*store, &wallet, Some(invited.token)).await;
    let late = new(NOON.saturating_add(SignInProof::LIFETIME));
    assert_eq!(store.join(&proven, late).await.unwrap(), None);
    assert_eq!(store.sign_in(&proven, &owner.id, new(NOON)).await.unwrap(), None, "it is for the invitation");
    let session = store.join(&proven, new(NOON)).await.unwrap().expect("both are live");
    assert_eq!(session.member, Some(invited.id));
    assert_eq!(store.sign_in_proof(&proven).await.unwrap(), None);
    assert_eq!(store.invitation(&invited.token).await.unwrap(), None);
    assert_eq!(store.members(&owner.id).await.unwrap()[0].identity.to_string(), wallet);
}

/// Many people follow one link at once.
pub async fn an_invitation_makes_one_member(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1).await;
    let invited = invitation(&owner.id, MemberRole::Viewer, None);
    store.invite(invited.clone(), owner_of(&owner)).await.unwrap();
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let proven = proof(&*store, &format!("jo{number}@example.com"), Some(invited.token)).await;
        let store = Arc::clone(&store);
        tasks.spawn(async move { store.join(&proven, new(NOON)).await.unwrap() });
    }
    assert_eq!(tasks.join_all().await.into_iter().flatten().count(), 1);
    assert_eq!(store.members(&owner.id).await.unwrap().len(), 1);
}

/// A removed member's sessions end; those of others stay. Each change is logged with who made it.
pub async fn members_are_changed_and_removed(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1).await;
    let one = member(&*store, &owner, 1, MemberRole::Owner, "one@example.com").await;
    let two = member(&*store, &owner, 2, MemberRole::Viewer, "two@example.com").await;
    let by = || AccountActor::Member(one.clone());
    let change = async |id, actor, change| store.change_member(&owner.id, id, actor, change, NOON).await.unwrap();
    assert_eq!(change(two.id, by(), MemberChange::Role(MemberRole::Billing)).await, MemberChanged::Changed);
    assert_eq!(change(one.id, by(), MemberChange::Remove).await, MemberChanged::LastOwner);
    let unknown = MemberId::generate(&SystemRandomness);
    assert_eq!(change(unknown, by(), MemberChange::Remove).await, MemberChanged::NoSuchMember);
    let other = customer(&*store, 1).await;
    let elsewhere = store.change_member(&other.id, two.id, owner_of(&other), MemberChange::Remove, NOON).await.unwrap();
    assert_eq!(elsewhere, MemberChanged::NoSuchMember);
    let members = store.members(&owner.id).await.unwrap();
    assert_eq!([members[0].role, members[1].role], [MemberRole::Owner, MemberRole::Billing]);
    assert_eq!(change(two.id, by(), MemberChange::Remove).await, MemberChanged::Changed);
    let left: Vec<_> = store.browser_sessions(&owner.id).await.unwrap().iter().map(|session| session.member).collect();
    assert_eq!(left, [Some(one.id)]);
    assert_eq!(change(one.id, owner_of(&owner), MemberChange::Remove).await, MemberChanged::Changed);
    assert_eq!(store.members(&owner.id).await.unwrap(), []);
    let told: Vec<EventKind> = reported(&*store, &owner.id).await;
    assert_eq!(told[told.len() - 3..], [Changed, MemberRemoved, MemberRemoved]);
    let log = actions(&*store, &owner.id).await;
    let entry =
        |place: usize| (log[place].action.as_str(), log[place].actor_name.as_str(), log[place].subject.as_str());
    assert_eq!(entry(0), ("remove_member", "First key", "one@example.com"));
    assert_eq!(entry(1), ("remove_member", "one@example.com", "two@example.com"));
    assert_eq!(entry(2), ("change_member", "one@example.com", "two@example.com as billing"));
}

/// The account of the address itself comes first; revoked ones are left out.
pub async fn one_person_signs_in_to_several_accounts(store: Arc<dyn FullStore>) {
    let email = Some("jo@example.com".parse().unwrap());
    let payer = Some(Payer { address: Address::from_bytes([7; 20]), chain_id: 1 });
    let own = NewAccount { email, email_status: EmailStatus::Verified { at: NOON }, payer, ..new_account() };
    create(&*store, own.clone()).await;
    let (first, second) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let as_first = member(&*store, &first, 1, MemberRole::Viewer, "jo@example.com").await;
    member(&*store, &second, 2, MemberRole::Owner, "jo@example.com").await;
    let choices = async |identity: &str| {
        let found = store.sign_in_choices(&identity.parse().unwrap()).await.unwrap();
        found.into_iter().map(|choice| (choice.account, choice.member)).collect::<Vec<_>>()
    };
    let found = choices("Jo@Example.com").await;
    assert_eq!(found[0], (own.id.clone(), None));
    assert_eq!((found.len(), found[1].clone()), (3, (first.id.clone(), Some(as_first.clone()))));
    let wallet = Address::from_bytes([7; 20]).to_string();
    assert_eq!(choices(&wallet).await, [(own.id.clone(), None)]);
    store.revoke_account(&second.id, NOON).await.unwrap();
    assert_eq!(choices("JO@example.com").await.len(), 2);
    assert_eq!(choices("nobody@example.com").await, []);
    let spelt = proof(&*store, "Jo@example.com", None).await;
    let signed_in = async |token, account: &AccountId| store.sign_in(&token, account, new(NOON)).await.unwrap();
    let token = proof(&*store, "jo@example.com", None).await;
    assert_eq!(signed_in(token, &second.id).await, None);
    assert_eq!(signed_in(spelt, &first.id).await, None, "perhaps another mailbox");
    assert_eq!(signed_in(token, &new_id()).await, None);
    let session = signed_in(token, &first.id).await.expect("refusals did not use it up");
    assert_eq!((session.account, session.secret, session.member), (first.id.clone(), first.key, Some(as_first.id)));
    assert_eq!(signed_in(token, &first.id).await, None);
    let token = proof(&*store, "jo@example.com", None).await;
    let session = signed_in(token, &own.id).await.expect("it is live");
    assert_eq!((session.secret, session.member), (own.key, None));
}

/// Newest first, in pages, the oldest deleted.
pub async fn an_accounts_log_has_its_newest_entries(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1).await;
    let action = |number: i64| {
        let (action, subject) = ("create_key".to_owned(), format!("key {number}"));
        NewAccountAction { at: NOON, actor: owner_of(&owner), action, subject, status: None }
    };
    for number in 1..=3 {
        assert_eq!(store.log_account_action(&owner.id, action(number)).await.unwrap(), Some(number));
    }
    assert_eq!(store.log_account_action(&new_id(), action(1)).await.unwrap(), None);
    store.end_account_action(&owner.id, 2, 201).await.unwrap();
    let page = store.account_log(&owner.id, None, 2).await.unwrap();
    let shown: Vec<_> = page.items.iter().map(|action| (action.number, action.status)).collect();
    assert_eq!(
        (shown.as_slice(), page.next.as_ref().map(Cursor::as_str)),
        (&[(3, None), (2, Some(201))][..], Some("2"))
    );
    assert_eq!(page.items[1], AccountAction { status: Some(201), ..action(2).numbered(owner.id.clone(), 2) });
    let rest = store.account_log(&owner.id, page.next.as_ref(), 2).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));
    let many = (owner.id.clone(), action(0));
    let written = in_transaction(&*store, many, |store, (id, action)| {
        Box::pin(async move {
            for _ in 4..=AccountAction::MAX_PER_ACCOUNT + 2 {
                store.log_account_action(id, action.clone()).await?;
            }
            Ok(())
        })
    });
    written.await.unwrap();
    let oldest = store.account_log(&owner.id, Some(&Cursor::new("5")), 10).await.unwrap();
    assert_eq!(oldest.items.iter().map(|action| action.number).collect::<Vec<_>>(), [4, 3]);
}

/// Invitations and sign-ins are deleted once they have expired, and not before.
pub async fn expired_invitations_are_deleted(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 1).await;
    let invited = invitation(&owner.id, MemberRole::Viewer, None);
    store.invite(invited.clone(), owner_of(&owner)).await.unwrap();
    let begun = proof(&*store, "jo@example.com", None).await;
    let moment = Duration::from_millis(1);
    let end = NOON.saturating_add(SignInProof::LIFETIME);
    store.forget_expired(end.saturating_sub(moment)).await.unwrap();
    assert!(store.sign_in_proof(&begun).await.unwrap().is_some());
    store.forget_expired(invited.expires_at.saturating_sub(moment)).await.unwrap();
    assert_eq!(store.sign_in_proof(&begun).await.unwrap(), None);
    assert_eq!(store.invitations(&owner.id).await.unwrap().len(), 1);
    store.forget_expired(invited.expires_at).await.unwrap();
    assert_eq!(store.invitations(&owner.id).await.unwrap(), []);
}

/// Members, invitations and the log go with the account. Other accounts keep theirs, also of the same person.
pub async fn an_erasure_takes_members_and_the_log(store: Arc<dyn FullStore>) {
    let (owner, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    for one in [&owner, &other] {
        member(&*store, one, 1, MemberRole::Owner, "Jo@Example.com").await;
        let invited = invitation(&one.id, MemberRole::Viewer, Some("ann@example.com"));
        assert_eq!(store.invite(invited, owner_of(one)).await.unwrap(), Invited::Invited);
    }
    let erased = store.erase_account(&owner.id, false, NOON).await.unwrap().expect("the account exists");
    let counted = |kind: &str| erased.parts.iter().find(|part| part.kind == kind).map(|part| part.records);
    assert_eq!(["members", "invitations", "account_log"].map(counted), [Some(1), Some(1), Some(3)]);
    // Of a request that began before.
    let (actor, action, subject) = (owner_of(&owner), "create_key".to_owned(), String::new());
    let late = NewAccountAction { at: NOON, actor, action, subject, status: None };
    assert_eq!(store.log_account_action(&owner.id, late).await.unwrap(), None);
    for (one, left) in [(&owner, 0), (&other, 1)] {
        let found = (store.members(&one.id).await.unwrap().len(), store.invitations(&one.id).await.unwrap().len());
        assert_eq!(found, (left, left));
        assert_eq!(actions(&*store, &one.id).await.len(), 3 * left);
    }
}
