use std::time::Duration;

use super::super::scene::{KEY, NOW, account, revoked};
use super::*;
use crate::access::browser_session::{BrowserSessionId, BrowserToken};
use crate::access::device::DeviceName;
use crate::access::issued_key::Key;
use crate::events::event_data::EventKind;
use crate::random::SystemRandomness;
use crate::signups::link::LinkHash;

fn id(number: u8) -> MemberId {
    MemberId::from_bytes([number; 16])
}

fn identity(number: u8) -> Identity {
    format!("m{number}@example.com").parse().unwrap()
}

fn member(number: u8, role: MemberRole) -> Member {
    Member { id: id(number), account: account().id, role, identity: identity(number), joined_at: NOW }
}

fn invitation(number: u8, email: Option<&str>) -> Invitation {
    Invitation {
        id: id(number),
        token: LinkHash::from_bytes([number; 32]),
        account: account().id,
        role: MemberRole::Developer,
        email: email.map(|email| email.parse().unwrap()),
        created_at: NOW,
        expires_at: NOW.saturating_add(Invitation::LIFETIME),
    }
}

fn facts(members: &[Member], invitations: &[Invitation]) -> MemberFacts<i64> {
    MemberFacts { account: Some((1, account())), members: members.to_vec(), invitations: invitations.to_vec() }
}

fn key() -> AccountActor {
    let Key { id, terms, .. } = Key::first(account().id, &KEY, NOW);
    AccountActor::Key { id, name: terms.name, is_first: true }
}

fn session(created_at: Timestamp) -> NewBrowserSession {
    NewBrowserSession {
        id: BrowserSessionId::from_bytes([9; 16]),
        token: BrowserToken::generate(&SystemRandomness).hash(),
        device: DeviceName::of_user_agent(""),
        created_at,
    }
}

fn kind(changes: &MemberChanges<i64>) -> Option<EventKind> {
    changes.event.as_ref().map(|event| event.data.kind())
}

#[test]
fn the_first_reason_refuses_an_invitation() {
    let full: Vec<_> = (0..100).map(|number| member(number, MemberRole::Viewer)).collect();
    let gone = MemberFacts { account: Some((1, revoked())), ..facts(&full, &[]) };
    let nobody = MemberFacts { account: None, ..facts(&full, &[]) };
    // facts, address, refusal
    let table = [
        (gone, "M1@example.com", Some(Invited::NoSuchAccount)),
        (nobody, "M1@example.com", Some(Invited::NoSuchAccount)),
        (facts(&full, &[]), "M1@example.com", Some(Invited::IsMember)),
        (facts(&full, &[]), "new@example.com", Some(Invited::TooMany)),
        (facts(&full[1..], &[invitation(200, None)]), "new@example.com", Some(Invited::TooMany)),
        (facts(&full[1..], &[invitation(200, Some("New@example.com"))]), "new@example.com", None),
        (facts(&full[1..], &[]), "new@example.com", None),
    ];
    for (facts, email, refusal) in table {
        let decided = invite(invitation(201, Some(email)), key(), facts);
        match refusal {
            Some(refusal) => assert_eq!(decided, Decided::Refused(refusal)),
            None => assert!(matches!(decided, Decided::Accepted(_)), "{decided:?}"),
        }
    }
}

#[test]
fn an_address_has_one_invitation() {
    let others = [invitation(1, Some("new@example.com")), invitation(2, None)];
    let Decided::Accepted(changes) = invite(invitation(3, Some("NEW@example.com")), key(), facts(&[], &others)) else {
        panic!("nothing refuses it")
    };
    assert_eq!((changes.removed, changes.invited.map(|new| new.id)), (vec![id(1)], Some(id(3))));
    assert_eq!(
        (changes.action.action.as_str(), changes.action.subject.as_str()),
        ("invite_member", "NEW@example.com as developer")
    );
}

#[test]
fn the_last_owner_stays_one() {
    use MemberRole::{Owner, Viewer};
    let (one, two) = (member(1, Owner), member(2, Owner));
    let viewer = member(3, Viewer);
    let by = |member: &Member| AccountActor::Member(member.clone());
    // members, who, of whom, change, whether it is done
    let table = [
        (vec![&one, &viewer], by(&one), 1, MemberChange::Remove, false),
        (vec![&one, &viewer], by(&one), 1, MemberChange::Role(Viewer), false),
        (vec![&one, &viewer], by(&one), 1, MemberChange::Role(Owner), true),
        (vec![&one, &viewer], key(), 1, MemberChange::Remove, true),
        (vec![&one, &viewer], by(&one), 3, MemberChange::Remove, true),
        (vec![&one, &two], by(&one), 1, MemberChange::Remove, true),
        (vec![&one, &two], by(&one), 2, MemberChange::Role(Viewer), true),
    ];
    for (members, actor, of, change, done) in table {
        let members: Vec<_> = members.into_iter().cloned().collect();
        let decided = change_member(facts(&members, &[]), id(of), actor, change, NOW);
        assert_eq!(matches!(decided, Decided::Accepted(_)), done, "{of} {change:?}");
        if !done {
            assert_eq!(decided, Decided::Refused(MemberChanged::LastOwner));
        }
    }
    let unknown = change_member(facts(&[one], &[]), id(9), key(), MemberChange::Remove, NOW);
    assert_eq!(unknown, Decided::Refused(MemberChanged::NoSuchMember));
}

#[test]
fn changes_are_logged_and_told() {
    let members = [member(1, MemberRole::Owner), member(2, MemberRole::Viewer)];
    let change = |of, change| {
        let facts = facts(&members, &[invitation(3, None)]);
        match change_member(facts, id(of), AccountActor::Member(members[0].clone()), change, NOW) {
            Decided::Accepted(changes) => changes,
            refused @ Decided::Refused(_) => panic!("{refused:?}"),
        }
    };
    let promoted = change(2, MemberChange::Role(MemberRole::Billing));
    assert_eq!(promoted.member.as_ref().map(|member| member.role), Some(MemberRole::Billing));
    assert_eq!(kind(&promoted), Some(EventKind::MemberChanged));
    assert_eq!(
        (promoted.action.actor.id(), promoted.action.subject.as_str()),
        (id(1).to_string(), "m2@example.com as billing")
    );
    let removed = change(2, MemberChange::Remove);
    assert_eq!((removed.removed.as_slice(), kind(&removed)), (&[id(2)][..], Some(EventKind::MemberRemoved)));
    let withdrawn = change(3, MemberChange::Remove);
    assert_eq!((withdrawn.removed.as_slice(), kind(&withdrawn)), (&[id(3)][..], None));
    let other = change(3, MemberChange::Role(MemberRole::Viewer));
    assert_eq!(other.invited.map(|invitation| invitation.role), Some(MemberRole::Viewer));
}

#[test]
fn an_invitation_is_joined_once_and_by_whom_it_was_sent_to() {
    let (open, sent) = (invitation(3, None), invitation(4, Some("M4@example.com")));
    let end = NOW.saturating_add(Invitation::LIFETIME);
    let late = end.saturating_sub(Duration::from_millis(1));
    // invitation, identity, first key, when, joins
    let table = [
        (&open, identity(7), Some(KEY), late, true),
        (&open, identity(7), Some(KEY), end, false),
        (&open, identity(7), None, NOW, false),
        (&sent, "M4@example.com".parse().unwrap(), Some(KEY), NOW, true),
        (&sent, identity(4), Some(KEY), NOW, false),
        (&sent, identity(7), Some(KEY), NOW, false),
    ];
    for (invitation, identity, first_key, at, joins) in table {
        let signed_in = join(invitation, identity.clone(), facts(&[], &[]), first_key, session(at));
        assert_eq!(signed_in.is_some(), joins, "{invitation:?} {identity} {at}");
        let Some(MemberSignIn { session, joined: Some(joined) }) = signed_in else { continue };
        assert_eq!((session.member, session.secret), (Some(invitation.id), KEY));
        assert_eq!((joined.removed.as_slice(), kind(&joined)), (&[invitation.id][..], Some(EventKind::MemberJoined)));
    }
    let gone = MemberFacts { account: Some((1, revoked())), ..facts(&[], &[]) };
    assert_eq!(join(&open, identity(7), gone, Some(KEY), session(NOW)), None);
}

#[test]
fn a_member_who_follows_an_invitation_stays_what_he_is() {
    let viewer = member(1, MemberRole::Viewer);
    let signed_in = join(&invitation(3, None), identity(1), facts(&[viewer], &[]), Some(KEY), session(NOW)).unwrap();
    assert_eq!((signed_in.session.member, signed_in.joined), (Some(id(1)), None));
    let spelt = "M1@example.com".parse().unwrap();
    let viewer = member(1, MemberRole::Viewer);
    assert_eq!(join(&invitation(3, None), spelt, facts(&[viewer], &[]), Some(KEY), session(NOW)), None);
}

#[test]
fn a_sign_in_is_to_an_account_of_the_identity() {
    let proof = SignInProof {
        token: LinkHash::from_bytes([1; 32]),
        identity: identity(1),
        invitation: None,
        expires_at: NOW.saturating_add(SignInProof::LIFETIME),
    };
    let of = |member| SignInChoice { account: account().id, name: account().agent_name, identity: identity(1), member };
    let other: AccountId = "org_yyyyyyyyyyyyyyyyyyyy".parse().unwrap();
    let opened = |proof: &SignInProof, id: &AccountId, choice, at| {
        sign_in(proof, id, &[of(choice)], Some(KEY), session(at)).map(|session| session.member)
    };
    let viewer = || Some(member(1, MemberRole::Viewer));
    assert_eq!(opened(&proof, &account().id, viewer(), NOW), Some(Some(id(1))));
    assert_eq!(opened(&proof, &account().id, None, NOW), Some(None), "the address is the account's own");
    assert_eq!(opened(&proof, &other, viewer(), NOW), None);
    assert_eq!(opened(&proof, &account().id, viewer(), proof.expires_at), None);
    let spelt = SignInProof { identity: "M1@example.com".parse().unwrap(), ..proof.clone() };
    assert_eq!(opened(&spelt, &account().id, viewer(), NOW), None);
    let joining = SignInProof { invitation: Some(proof.token), ..proof };
    assert_eq!(opened(&joining, &account().id, viewer(), NOW), None);
}
