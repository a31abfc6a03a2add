//! Members of an account: invited, joined, changed and removed. No member can remove the last owner among them. The
//! first key can, since its holder is always an owner.

use super::{Decided, active};
use crate::access::account::{Account, AccountId};
use crate::access::browser_session::{BrowserSession, NewBrowserSession};
use crate::access::key::KeyHash;
use crate::access::member::{
    AccountActor, Identity, Invitation, Member, MemberId, NewAccountAction, SignInChoice, SignInProof,
};
use crate::access::role::MemberRole;
use crate::clock::Timestamp;
use crate::events::event::NewEvent;
use crate::events::event_data::{EventData, MemberEvent};
use crate::store::{Invited, MemberChange, MemberChanged};

/// The rows read before the members of an account change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberFacts<K> {
    /// The account, revoked or not, and its row.
    pub account: Option<(K, Account)>,
    /// Its members.
    pub members: Vec<Member>,
    /// Its invitations, expired ones too.
    pub invitations: Vec<Invitation>,
}

/// The rows to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberChanges<K> {
    /// The account's row.
    pub row: K,
    /// Write this invitation.
    pub invited: Option<Invitation>,
    /// Write this member, replacing the stored one with its id.
    pub member: Option<Member>,
    /// Delete the members and invitations with these ids, and the members' sessions.
    pub removed: Vec<MemberId>,
    /// The entry for the account's log.
    pub action: NewAccountAction,
    /// The event to write, if there is one.
    pub event: Option<NewEvent>,
}

impl<K> MemberChanges<K> {
    fn new(row: K, at: Timestamp, actor: AccountActor, action: &str, subject: String) -> Self {
        let action = NewAccountAction { at, actor, action: action.to_owned(), subject, status: None };
        Self { row, invited: None, member: None, removed: Vec::new(), action, event: None }
    }

    fn told(mut self, data: fn(MemberEvent) -> EventData, member: &Member) -> Self {
        let data = data(MemberEvent::from(member));
        self.event = Some(NewEvent { account: Some(member.account.clone()), data, created_at: self.action.at });
        self
    }
}

/// Decides [`MemberStore::invite`](crate::store::MemberStore::invite). An earlier invitation of the same address is
/// replaced.
///
/// Refused, in this order: [`Invited::NoSuchAccount`] when there is none, or it is revoked; [`Invited::IsMember`];
/// [`Invited::TooMany`].
pub fn invite<K>(
    invitation: Invitation,
    actor: AccountActor,
    facts: MemberFacts<K>,
) -> Decided<MemberChanges<K>, Invited> {
    let Some((row, _)) = active(facts.account) else { return Decided::Refused(Invited::NoSuchAccount) };
    let now = invitation.created_at;
    let identity = invitation.email.clone().map(Identity::Email);
    if identity.is_some() && facts.members.iter().any(|member| Some(&member.identity) == identity.as_ref()) {
        return Decided::Refused(Invited::IsMember);
    }
    let is_replaced = |other: &Invitation| other.email.is_some() && other.email == invitation.email;
    let (replaced, others): (Vec<_>, Vec<_>) = facts.invitations.into_iter().partition(is_replaced);
    let open = others.iter().filter(|other| other.is_live(now)).count();
    if facts.members.len() + open >= Member::MAX_PER_ACCOUNT {
        return Decided::Refused(Invited::TooMany);
    }
    let who = invitation.email.as_ref().map_or_else(|| invitation.id.to_string(), ToString::to_string);
    let subject = format!("{who} as {}", invitation.role);
    let changes = MemberChanges::new(row, now, actor, "invite_member", subject);
    let removed = replaced.into_iter().map(|invitation| invitation.id).collect();
    Decided::Accepted(MemberChanges { invited: Some(invitation), removed, ..changes })
}

/// Decides [`MemberStore::change_member`](crate::store::MemberStore::change_member): of a member, or of an invitation.
///
/// Refused, in this order: [`MemberChanged::NoSuchMember`]; [`MemberChanged::LastOwner`] when a member would leave no
/// owner among the members. The first key may do that: its holder is always an owner.
pub fn change_member<K>(
    facts: MemberFacts<K>,
    id: MemberId,
    actor: AccountActor,
    change: MemberChange,
    now: Timestamp,
) -> Decided<MemberChanges<K>, MemberChanged> {
    let Some((row, _)) = active(facts.account) else { return Decided::Refused(MemberChanged::NoSuchMember) };
    let Some(member) = facts.members.iter().find(|member| member.id == id) else {
        let invitation = facts.invitations.into_iter().find(|invitation| invitation.id == id);
        return match invitation {
            Some(invitation) => Decided::Accepted(change_invitation(row, invitation, actor, change, now)),
            None => Decided::Refused(MemberChanged::NoSuchMember),
        };
    };
    let stays_owner = matches!(change, MemberChange::Role(MemberRole::Owner));
    let is_owner = |member: &&Member| member.role == MemberRole::Owner;
    let is_last = is_owner(&member) && facts.members.iter().filter(is_owner).count() == 1;
    let is_first_key = matches!(actor, AccountActor::Key { is_first: true, .. });
    if is_last && !stays_owner && !is_first_key {
        return Decided::Refused(MemberChanged::LastOwner);
    }
    Decided::Accepted(match change {
        MemberChange::Role(role) => {
            let changed = Member { role, ..member.clone() };
            let subject = format!("{} as {role}", member.identity);
            let changes = MemberChanges::new(row, now, actor, "change_member", subject);
            MemberChanges { member: Some(changed.clone()), ..changes }.told(EventData::MemberChanged, &changed)
        }
        MemberChange::Remove => {
            let changes = MemberChanges::new(row, now, actor, "remove_member", member.identity.to_string());
            MemberChanges { removed: vec![id], ..changes }.told(EventData::MemberRemoved, member)
        }
    })
}

fn change_invitation<K>(
    row: K,
    invitation: Invitation,
    actor: AccountActor,
    change: MemberChange,
    now: Timestamp,
) -> MemberChanges<K> {
    let who = invitation.email.as_ref().map_or_else(|| invitation.id.to_string(), ToString::to_string);
    match change {
        MemberChange::Role(role) => {
            let changes = MemberChanges::new(row, now, actor, "change_member", format!("{who} as {role}"));
            MemberChanges { invited: Some(Invitation { role, ..invitation }), ..changes }
        }
        MemberChange::Remove => {
            let changes = MemberChanges::new(row, now, actor, "remove_member", who);
            MemberChanges { removed: vec![invitation.id], ..changes }
        }
    }
}

/// A session to open, and the related change of members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSignIn<K> {
    /// The session.
    pub session: BrowserSession,
    /// The new member, if someone joins.
    pub joined: Option<MemberChanges<K>>,
}

/// Decides [`MemberStore::join`](crate::store::MemberStore::join). `identity` belongs to the person who follows the
/// invitation's link, and `first_key` is the secret of the account's first key. An existing member keeps their role,
/// and the invitation stays open for someone else.
///
/// `None` when the invitation has expired, was sent to another address, or belongs to a revoked account, and when the
/// identity differs from a member's only in its spelling.
pub fn join<K>(
    invitation: &Invitation,
    identity: Identity,
    facts: MemberFacts<K>,
    first_key: Option<KeyHash>,
    new: NewBrowserSession,
) -> Option<MemberSignIn<K>> {
    let now = new.created_at;
    let (row, _) = active(facts.account)?;
    let first_key = first_key.filter(|_| invitation.is_live(now))?;
    if invitation.email.clone().is_some_and(|email| !identity.is_exactly(&Identity::Email(email))) {
        return None;
    }
    if let Some(member) = facts.members.iter().find(|member| member.identity == identity) {
        let session = member.identity.is_exactly(&identity).then(|| new.of_member(member, first_key));
        return session.map(|session| MemberSignIn { session, joined: None });
    }
    let Invitation { id, account, role, .. } = invitation.clone();
    let member = Member { id, account, role, identity, joined_at: now };
    let session = new.of_member(&member, first_key);
    let subject = format!("{} as {role}", member.identity);
    let changes = MemberChanges::new(row, now, AccountActor::Member(member.clone()), "join", subject);
    let joined = MemberChanges { removed: vec![id], member: Some(member.clone()), ..changes };
    Some(MemberSignIn { session, joined: Some(joined.told(EventData::MemberJoined, &member)) })
}

/// Decides [`MemberStore::sign_in`](crate::store::MemberStore::sign_in) to one of the accounts that the identity of a
/// proof has. The proof is deleted with the change.
///
/// `None` when the proof is not live, is for an invitation, or its identity has no such account.
#[must_use]
pub fn sign_in(
    proof: &SignInProof,
    account: &AccountId,
    choices: &[SignInChoice],
    first_key: Option<KeyHash>,
    new: NewBrowserSession,
) -> Option<BrowserSession> {
    let first_key = first_key.filter(|_| proof.is_live(new.created_at) && proof.invitation.is_none())?;
    let is_own = |choice: &&SignInChoice| choice.account == *account && choice.identity.is_exactly(&proof.identity);
    let choice = choices.iter().find(is_own)?;
    Some(match &choice.member {
        Some(member) => new.of_member(member, first_key),
        None => new.of_key(account.clone(), first_key),
    })
}

#[cfg(test)]
mod tests;
