use std::time::Duration;

use super::super::scene::{KEY, NOW, account, first_key, revoked};
use super::*;

const PENDING: EmailStatus = EmailStatus::Pending { free_credits: Credits::from_atoms(5) };
const VERIFIED: EmailStatus = EmailStatus::Verified { at: NOW };

fn with_email(email_status: EmailStatus) -> Account {
    Account { email: Some("a@example.com".parse().unwrap()), email_status, ..account() }
}

/// Expires in a second.
fn link(purpose: LinkPurpose) -> EmailLink {
    let expires_at = NOW.saturating_add(Duration::from_secs(1));
    EmailLink { token: LinkHash::from_bytes([9; 32]), purpose, account: account().id, expires_at }
}

#[test]
fn a_link_is_opened_only_for_an_account_that_can_use_it() {
    use LinkPurpose::{RecoverKey, SignIn, VerifyAddress};
    let gone = Account { revoked_at: Some(NOW), ..with_email(PENDING) };
    // account, purpose, whether the token is in use, opened (`None`: an error)
    let table = [
        (None, VerifyAddress, true, Some(false)),
        (Some(gone), VerifyAddress, true, Some(false)),
        (Some(account()), VerifyAddress, true, Some(false)),
        (Some(with_email(VERIFIED)), VerifyAddress, true, Some(false)),
        (Some(with_email(PENDING)), VerifyAddress, true, None),
        (Some(with_email(PENDING)), VerifyAddress, false, Some(true)),
        (Some(with_email(EmailStatus::Unchecked)), VerifyAddress, false, Some(true)),
        (Some(with_email(PENDING)), RecoverKey, false, Some(false)),
        (Some(with_email(EmailStatus::Unchecked)), RecoverKey, false, Some(false)),
        (Some(with_email(VERIFIED)), RecoverKey, true, None),
        (Some(with_email(VERIFIED)), RecoverKey, false, Some(true)),
        (Some(with_email(VERIFIED)), SignIn, false, Some(true)),
        (Some(with_email(PENDING)), SignIn, false, Some(false)),
    ];
    for (account, purpose, in_use, opened) in table {
        let decided = open_email_link(link(purpose), account.as_ref(), in_use).ok();
        assert_eq!(decided.map(|link| link.is_some()), opened, "{account:?} {purpose:?} {in_use}");
    }
}

#[test]
fn the_first_reason_refuses_a_verification() {
    let live = || Some(link(LinkPurpose::VerifyAddress));
    let expiry = link(LinkPurpose::VerifyAddress).expires_at;
    let full = |status| {
        let mut account = with_email(status);
        account.totals.granted = Credits::from_atoms(i64::MAX);
        account
    };
    // link, account, address held, now, refusal
    let table = [
        (None, Some(full(PENDING)), true, NOW, EmailVerified::NotLive),
        (Some(link(LinkPurpose::RecoverKey)), Some(full(PENDING)), true, NOW, EmailVerified::NotLive),
        (live(), Some(full(PENDING)), true, expiry, EmailVerified::NotLive),
        (live(), None, true, NOW, EmailVerified::NotLive),
        (live(), Some(revoked()), true, NOW, EmailVerified::NotLive),
        (live(), Some(full(VERIFIED)), true, NOW, EmailVerified::NotLive),
        (live(), Some(full(PENDING)), true, NOW, EmailVerified::EmailTaken),
        (live(), Some(full(PENDING)), false, NOW, EmailVerified::OutOfRange),
    ];
    for (link, account, email_held, now, refusal) in table {
        let facts = VerifyFacts { link, account: account.map(|account| (1, account)), email_held };
        assert_eq!(verify_email(facts.clone(), now), Decided::Refused(refusal), "{facts:?}");
    }
}

#[test]
fn a_verification_grants_what_the_account_waits_for() {
    // status, address held, credits granted in atoms
    let nothing = EmailStatus::Pending { free_credits: Credits::ZERO };
    let table = [(PENDING, false, Some(5)), (nothing, false, None), (EmailStatus::Unchecked, true, None)];
    for (status, email_held, granted) in table {
        let before = with_email(status);
        let link = Some(link(LinkPurpose::VerifyAddress));
        let facts = VerifyFacts { link, account: Some((7, before.clone())), email_held };
        let Decided::Accepted(changes) = verify_email(facts, NOW) else { panic!("nothing refuses {status:?}") };
        assert_eq!(changes.entry.as_ref().map(|entry| entry.amount.atoms()), granted, "{status:?}");
        assert_eq!(changes.entry_changes().is_some(), granted.is_some());
        let balance = changes.account.totals.balance.atoms();
        assert_eq!(balance, before.totals.balance.atoms() + granted.unwrap_or(0));
        assert_eq!((changes.account.email_status, changes.row), (VERIFIED, 7));
    }
}

#[test]
fn a_key_is_recovered_with_a_live_link_only() {
    let expiry = link(LinkPurpose::RecoverKey).expires_at;
    // purpose, account, now, recovered
    let table = [
        (LinkPurpose::VerifyAddress, with_email(VERIFIED), NOW, false),
        (LinkPurpose::RecoverKey, with_email(VERIFIED), expiry, false),
        (LinkPurpose::RecoverKey, revoked(), NOW, false),
        (LinkPurpose::RecoverKey, with_email(VERIFIED), NOW, true),
    ];
    for (purpose, account, now, recovered) in table {
        let facts = KeyFacts { account: Some((1, account)), key_in_use: false, keys: vec![first_key()] };
        let changes = recover_key(&link(purpose), facts.clone(), KEY, now).unwrap();
        assert_eq!(changes.is_some(), recovered, "{purpose:?} {facts:?} {now}");
    }
}
