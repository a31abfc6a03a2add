//! Free signups: opens, approves and redeems sessions.

use super::Decided;
use super::create::{CreateChanges, CreateFacts, create_account};
use crate::clock::Timestamp;
use crate::signups::signup::{SessionHash, SignupSession};
use crate::store::{Created, NewAccount, SignupApproved, SignupOpened, SignupRedeemed, StoreError};

/// The rows read before a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignupFacts {
    /// An account that is not revoked has its email address.
    pub email_taken: bool,
    /// A stored session has its user code.
    pub code_taken: bool,
    /// A stored session has its token.
    pub token_in_use: bool,
}

/// An account to create for a session, which is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedeemChanges {
    /// The account to insert.
    pub account: CreateChanges,
    /// The token of the session to delete.
    pub token: SessionHash,
}

/// Decides [`SignupStore::open_signup`](crate::store::SignupStore::open_signup), and returns the session to insert.
///
/// Refused, in this order: [`SignupOpened::EmailTaken`], [`SignupOpened::CodeTaken`].
///
/// # Errors
/// When the token is in use, which is checked last.
pub fn open_signup(new: SignupSession, facts: SignupFacts) -> Result<Decided<SignupSession, SignupOpened>, StoreError> {
    if facts.email_taken {
        return Ok(Decided::Refused(SignupOpened::EmailTaken));
    }
    if facts.code_taken {
        return Ok(Decided::Refused(SignupOpened::CodeTaken));
    }
    if facts.token_in_use {
        return Err(StoreError::Corrupt("the token of a new session is already in use".to_owned()));
    }
    Ok(Decided::Accepted(new))
}

/// Decides [`SignupStore::approve_signup`](crate::store::SignupStore::approve_signup), and returns the approved
/// session. `email_taken` is true if an account that is not revoked has its email address.
///
/// Refused, in this order: [`SignupApproved::NotPending`], [`SignupApproved::EmailTaken`].
pub fn approve_signup(
    session: Option<SignupSession>,
    email_taken: bool,
    now: Timestamp,
) -> Decided<SignupSession, SignupApproved> {
    match session.filter(|session| session.is_pending(now)) {
        None => Decided::Refused(SignupApproved::NotPending),
        Some(_) if email_taken => Decided::Refused(SignupApproved::EmailTaken),
        Some(session) => Decided::Accepted(SignupSession { approved_at: Some(now), ..session }),
    }
}

/// Decides [`SignupStore::redeem_signup`](crate::store::SignupStore::redeem_signup).
///
/// Refused, in this order: [`SignupRedeemed::NotApproved`] when there is no session, or it cannot be redeemed;
/// [`SignupRedeemed::EmailTaken`]; [`SignupRedeemed::OutOfRange`].
///
/// # Errors
/// After [`SignupRedeemed::NotApproved`], when the id or the key is in use.
pub fn redeem_signup(
    session: Option<SignupSession>,
    account: NewAccount,
    facts: CreateFacts,
    now: Timestamp,
) -> Result<Decided<RedeemChanges, SignupRedeemed>, StoreError> {
    let Some(session) = session.filter(|session| session.is_redeemable(now)) else {
        return Ok(Decided::Refused(SignupRedeemed::NotApproved));
    };
    Ok(match create_account(account, facts)? {
        Decided::Accepted(account) => Decided::Accepted(RedeemChanges { account, token: session.token }),
        Decided::Refused(Created::OutOfRange) => Decided::Refused(SignupRedeemed::OutOfRange),
        // Not `PayerTaken`: the account of a session has no payer.
        Decided::Refused(_) => Decided::Refused(SignupRedeemed::EmailTaken),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::create::OwnerFacts;
    use super::super::scene::{NOW, entry, new_account};
    use super::*;

    /// Expires in a second.
    fn session(approved_at: Option<Timestamp>) -> SignupSession {
        SignupSession {
            token: SessionHash::from_bytes([3; 32]),
            user_code: "BCDF-GHJK".parse().unwrap(),
            email: "a@example.com".parse().unwrap(),
            agent_name: "agent".parse().unwrap(),
            created_at: NOW,
            expires_at: NOW.saturating_add(Duration::from_secs(1)),
            approved_at,
        }
    }

    #[test]
    fn the_first_reason_refuses_a_session() {
        // email taken, code taken, token in use, decision (`None`: an error)
        let table = [
            (true, true, true, Some(Decided::Refused(SignupOpened::EmailTaken))),
            (false, true, true, Some(Decided::Refused(SignupOpened::CodeTaken))),
            (false, false, true, None),
            (false, false, false, Some(Decided::Accepted(session(None)))),
        ];
        for (email_taken, code_taken, token_in_use, decided) in table {
            let facts = SignupFacts { email_taken, code_taken, token_in_use };
            assert_eq!(open_signup(session(None), facts).ok(), decided, "{facts:?}");
        }
    }

    #[test]
    fn the_first_reason_refuses_an_approval() {
        let expiry = session(None).expires_at;
        // session, email taken, now, decision
        let table = [
            (None, true, NOW, Decided::Refused(SignupApproved::NotPending)),
            (Some(session(Some(NOW))), true, NOW, Decided::Refused(SignupApproved::NotPending)),
            (Some(session(None)), true, expiry, Decided::Refused(SignupApproved::NotPending)),
            (Some(session(None)), true, NOW, Decided::Refused(SignupApproved::EmailTaken)),
            (Some(session(None)), false, NOW, Decided::Accepted(session(Some(NOW)))),
        ];
        for (session, email_taken, now, decided) in table {
            assert_eq!(approve_signup(session.clone(), email_taken, now), decided, "{session:?} {email_taken}");
        }
    }

    #[test]
    fn the_first_reason_refuses_a_redemption() {
        let approved = || Some(session(Some(NOW)));
        let expiry = session(None).expires_at.saturating_add(SignupSession::RETENTION);
        // session, now, id or key in use, email taken, amount of an entry, refusal (`None`: an error)
        let table = [
            (None, NOW, true, true, i64::MAX, Some(SignupRedeemed::NotApproved)),
            (Some(session(None)), NOW, true, true, i64::MAX, Some(SignupRedeemed::NotApproved)),
            (approved(), expiry, true, true, i64::MAX, Some(SignupRedeemed::NotApproved)),
            (approved(), NOW, true, true, i64::MAX, None),
            (approved(), NOW, false, true, i64::MAX, Some(SignupRedeemed::EmailTaken)),
            (approved(), NOW, false, false, i64::MAX, Some(SignupRedeemed::OutOfRange)),
        ];
        for (session, now, id_or_key_in_use, email_taken, amount, refusal) in table {
            let facts = CreateFacts { id_or_key_in_use, owner: OwnerFacts { email_taken, payer_taken: false } };
            let account = NewAccount { entries: vec![entry(amount), entry(1)], ..new_account() };
            let decided = redeem_signup(session.clone(), account, facts, now).ok();
            assert_eq!(decided, refusal.map(Decided::Refused), "{session:?} {facts:?}");
        }
    }

    #[test]
    fn a_redeemed_session_is_deleted() {
        let session = session(Some(NOW));
        let token = session.token;
        let Ok(Decided::Accepted(changes)) = redeem_signup(Some(session), new_account(), CreateFacts::default(), NOW)
        else {
            panic!("nothing refuses it")
        };
        assert_eq!((changes.token, changes.account.account.id), (token, new_account().id));
    }
}
