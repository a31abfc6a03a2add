//! An account with members, and one with a child.

use metering_core::access::{
    AccountActor, BrowserSessionId, BrowserTokenHash, Invitation, Key, KeyHash, MemberId, MemberRole,
    NewBrowserSession, SignInProof,
};
use metering_core::signups::LinkHash;
use metering_core::store::{
    ChildAccountStore, ChildCreated, CreditMove, CreditsMoved, Invited, MemberStore, NewAccount,
};
use metering_sqlite::SqliteStore;

use super::filling::{VERIFIED, grant, later, wallet};
use super::{NOON, account_id, customer};

const PARENT: u8 = 13;
const CHILD: u8 = 14;

pub(crate) async fn fill(store: &SqliteStore) {
    members(store).await;
    children(store).await;
}

/// A child that was given credits.
async fn children(store: &SqliteStore) {
    let (parent, _) = customer(store, PARENT, grant(5)).await;
    let key = KeyHash::from_bytes([CHILD; 32]);
    let new = NewAccount::new(account_id(CHILD), "child".parse().unwrap(), key, NOON);
    let created = store.create_child(&parent, new, 1).await.unwrap();
    assert!(matches!(created, ChildCreated::Account(_)), "{created:?}");
    let (child, amount) = (account_id(CHILD), grant(2).amount);
    let wanted = CreditMove { parent, request: [PARENT; 32], child, amount, at: NOON };
    let moved = store.move_credits(wanted).await.unwrap();
    assert!(matches!(moved, CreditsMoved::Moved { .. }), "{moved:?}");
}

/// A member who joined by a wallet's sign-in, one who is invited, and a sign-in that was begun.
async fn members(store: &SqliteStore) {
    let Key { id, terms, .. } = Key::first(account_id(VERIFIED), &KeyHash::from_bytes([VERIFIED; 32]), NOON);
    let actor = AccountActor::Key { id, name: terms.name, is_first: true };
    let invitation = |number: u8, email: Option<&str>| Invitation {
        id: MemberId::from_bytes([number; 16]),
        token: LinkHash::from_bytes([number; 32]),
        account: account_id(VERIFIED),
        role: MemberRole::Developer,
        email: email.map(|email| email.parse().unwrap()),
        created_at: NOON,
        expires_at: later(600),
    };
    for (number, email) in [(0xd1, None), (0xd2, Some("Jörg@Example.com"))] {
        let invited = store.invite(invitation(number, email), actor.clone()).await.unwrap();
        assert_eq!(invited, Invited::Invited);
    }
    let begun = [(0xd3, wallet(3).to_string(), Some(0xd1)), (0xd4, "Ann@Example.com".to_owned(), None)];
    for (number, identity, invitation) in begun {
        let invitation = invitation.map(|number| LinkHash::from_bytes([number; 32]));
        let token = LinkHash::from_bytes([number; 32]);
        let proof = SignInProof { token, identity: identity.parse().unwrap(), invitation, expires_at: later(600) };
        store.open_sign_in(proof).await.unwrap();
    }
    let session = NewBrowserSession {
        id: BrowserSessionId::from_bytes([0xd1; 16]),
        token: BrowserTokenHash::from_bytes([0xd1; 32]),
        device: "Safari on macOS".parse().unwrap(),
        created_at: NOON,
    };
    assert!(store.join(&LinkHash::from_bytes([0xd3; 32]), session).await.unwrap().is_some());
}
