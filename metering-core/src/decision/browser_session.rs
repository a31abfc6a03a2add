//! Sessions of browsers: opened with a key, or with a link that was sent by email.

use std::cmp::Reverse;

use crate::access::browser_session::{BrowserSession, BrowserTokenHash, NewBrowserSession};
use crate::access::key::KeyHash;
use crate::signups::link::{EmailLink, LinkPurpose};
use crate::store::StoreError;

/// The rows read before a session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSessionFacts {
    /// Whether the secret of the new session works.
    pub is_live: bool,
    /// Any session has, or had, its token or its id.
    pub token_in_use: bool,
    /// The account's other sessions, each with whether its secret works.
    pub others: Vec<(BrowserSession, bool)>,
}

/// A session to write, and the tokens of those to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSessionChanges {
    /// The new session.
    pub opened: BrowserSession,
    /// Sessions that ended before, and those beyond [`BrowserSession::MAX_PER_ACCOUNT`].
    pub ended: Vec<BrowserTokenHash>,
}

/// Decides [`BrowserSessionStore::open_browser_session`](crate::store::BrowserSessionStore::open_browser_session).
/// `None` when the secret of the session does not work.
///
/// # Errors
/// When its token is in use, which is checked last.
pub fn open_browser_session(
    opened: BrowserSession,
    facts: BrowserSessionFacts,
) -> Result<Option<BrowserSessionChanges>, StoreError> {
    if !facts.is_live {
        return Ok(None);
    }
    if facts.token_in_use {
        return Err(StoreError::Corrupt("the token of a new session is already in use".to_owned()));
    }
    // Each member has separate sessions, so none signs out another.
    let others = facts.others.into_iter().filter(|(session, _)| session.member == opened.member);
    let is_live = |(session, works): &(BrowserSession, bool)| *works && session.is_live(opened.created_at);
    let (mut live, mut ended): (Vec<_>, Vec<_>) = others.partition(is_live);
    while live.len() >= BrowserSession::MAX_PER_ACCOUNT
        && let Some(place) = place_to_free(&live, &opened)
    {
        ended.push(live.swap_remove(place));
    }
    let ended = ended.into_iter().map(|(session, _)| session.token).collect();
    Ok(Some(BrowserSessionChanges { opened, ended }))
}

/// The session that makes room for a new one: the least recently used of the key that then has the most, so whoever was
/// given a key cannot sign out its owner.
fn place_to_free(live: &[(BrowserSession, bool)], opened: &BrowserSession) -> Option<usize> {
    let count = |secret: KeyHash| {
        let all = live.iter().map(|(session, _)| session).chain([opened]);
        all.filter(|session| session.secret == secret).count()
    };
    let rank = |session: &BrowserSession| (count(session.secret), Reverse(session.used_at));
    let places = live.iter().enumerate();
    places.max_by_key(|(_, (session, _))| rank(session)).map(|(place, _)| place)
}

/// Decides which session a link opens: one of the first key of its account, whose secret is `first_key`. The link is
/// deleted with the change.
///
/// `None` when the link is not live, or the account or its first key is not.
#[must_use]
pub fn sign_in_by_link(link: &EmailLink, first_key: Option<KeyHash>, new: NewBrowserSession) -> Option<BrowserSession> {
    let secret = first_key.filter(|_| link.is_live(LinkPurpose::SignIn, new.created_at))?;
    Some(new.of_key(link.account.clone(), secret))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::access::account::AccountId;
    use crate::access::browser_session::{BrowserSessionId, BrowserToken};
    use crate::access::device::DeviceName;
    use crate::access::member::MemberId;
    use crate::clock::Timestamp;
    use crate::random::SystemRandomness;
    use crate::signups::link::LinkHash;

    fn at(minutes: u64) -> Timestamp {
        Timestamp::from_unix_millis(0).saturating_add(Duration::from_secs(60 * minutes))
    }

    fn new(created_at: Timestamp) -> NewBrowserSession {
        NewBrowserSession {
            id: BrowserSessionId::generate(&SystemRandomness),
            token: BrowserToken::generate(&SystemRandomness).hash(),
            device: DeviceName::of_user_agent(""),
            created_at,
        }
    }

    fn session(created_at: Timestamp) -> BrowserSession {
        new(created_at).of_key(AccountId::generate(&SystemRandomness), KeyHash::from_bytes([1; 32]))
    }

    #[test]
    fn a_session_needs_a_live_secret_and_a_new_token() {
        let facts = BrowserSessionFacts { is_live: true, token_in_use: false, others: Vec::new() };
        assert!(open_browser_session(session(at(0)), facts.clone()).unwrap().is_some());
        assert!(
            open_browser_session(session(at(0)), BrowserSessionFacts { token_in_use: true, ..facts.clone() }).is_err()
        );
        let dead = BrowserSessionFacts { is_live: false, token_in_use: true, ..facts };
        assert_eq!(open_browser_session(session(at(0)), dead).unwrap(), None);
    }

    #[test]
    fn one_session_too_many_ends_the_least_recently_used() {
        let mut others: Vec<_> = (0..20).map(|minute| (session(at(minute)), true)).collect();
        let oldest = others[0].0.token;
        let facts = |others| BrowserSessionFacts { is_live: true, token_in_use: false, others };
        let ended = |others| open_browser_session(session(at(30)), facts(others)).unwrap().unwrap().ended;
        assert_eq!(ended(others.clone()), [oldest]);
        // A session whose key is gone makes room.
        others[7].1 = false;
        assert_eq!(ended(others.clone()), [others[7].0.token]);
        others.truncate(19);
        others[7].1 = true;
        assert!(ended(others).is_empty());
    }

    #[test]
    fn a_key_that_was_given_away_ends_only_its_own_sessions() {
        let of =
            |secret: u8, minute| BrowserSession { secret: KeyHash::from_bytes([secret; 32]), ..session(at(minute)) };
        let mut others: Vec<_> = [of(1, 0), of(1, 1)].into_iter().map(|session| (session, true)).collect();
        others.extend((2..20).map(|minute| (of(2, minute), true)));
        let ended = |opened| {
            let facts = BrowserSessionFacts { is_live: true, token_in_use: false, others: others.clone() };
            open_browser_session(opened, facts).unwrap().unwrap().ended
        };
        let first_of_given = others[2].0.token;
        assert_eq!((ended(of(2, 30)), ended(of(1, 30))), (vec![first_of_given], vec![first_of_given]));
    }

    #[test]
    fn a_member_signs_out_nobody_else() {
        let others = (0..20).map(|minute| (session(at(minute)), true)).collect();
        let facts = BrowserSessionFacts { is_live: true, token_in_use: false, others };
        let opened = BrowserSession { member: Some(MemberId::from_bytes([1; 16])), ..session(at(30)) };
        assert!(open_browser_session(opened, facts).unwrap().unwrap().ended.is_empty());
    }

    #[test]
    fn a_link_signs_in_while_it_is_live_and_its_account_has_a_key() {
        let (secret, account) = (KeyHash::from_bytes([1; 32]), AccountId::generate(&SystemRandomness));
        let link = |purpose| EmailLink {
            token: LinkHash::from_bytes([2; 32]),
            purpose,
            account: account.clone(),
            expires_at: at(15),
        };
        // purpose, first key, minute, signs in
        let table = [
            (LinkPurpose::SignIn, Some(secret), 14, true),
            (LinkPurpose::SignIn, Some(secret), 15, false),
            (LinkPurpose::SignIn, None, 0, false),
            (LinkPurpose::RecoverKey, Some(secret), 0, false),
            (LinkPurpose::VerifyAddress, Some(secret), 0, false),
        ];
        for (purpose, first_key, minute, expected) in table {
            let opened = sign_in_by_link(&link(purpose), first_key, new(at(minute)));
            assert_eq!(opened.is_some(), expected, "{purpose:?} {minute}");
            assert!(opened.is_none_or(|session| session.secret == secret && session.account == account));
        }
    }
}
