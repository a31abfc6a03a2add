//! Members of the account, and the account's own log.

use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;
use metering_core::wire::{
    AccountLogDocument, ChangeMemberRequest, InvitationResponse, InviteMemberRequest, MemberResponse, MembersDocument,
    RemovedMemberResponse,
};
use metering_core::{call, parameters};

use super::access::KEY;

parameters! {
    /// A member or an invitation.
    OfMember {
        /// The member's id, or `current` for the caller
        id: String = "mem_0123456789abcdef0123456789abcdef",
    }

    /// Which entries of the log.
    LogPage {
        /// Maximum number of entries, 100 by default
        limit: Bounded<100, 100> = 100,
        /// The value of `next` in the previous response
        after: Option<Cursor>,
    }
}

call! {
    /// The members of the account, and its open invitations
    ///
    /// For the account's first key, and for members of any role.
    ListMembers("members") = GET "/members" in "members" for KEY;
    returns(200, "Members": MembersDocument) or(NotFound: "this service does not offer members");

    /// Invite a member
    ///
    /// By mail, or with a link to pass on, which the response has only once. An invitation works once, for seven days. For
    /// the account's first key and for owners.
    InviteMember("invite_member") = POST "/members" in "members" for KEY;
    takes((), InviteMemberRequest);
    returns(201, "The invitation": InvitationResponse)
        or(NotFound: "this service does not offer members, or it sends no mail",
            Conflict: "the address is that of a member, or the account has 100 members and open invitations", RateLimited,
            Overloaded: "too much mail is waiting", OutcomeUnknown);

    /// Change the role of a member
    ///
    /// Or of an invited person. Takes effect immediately. For the account's first key and for owners.
    ChangeMember("change_member") = PATCH "/members/{id}" in "members" for KEY;
    takes(OfMember, ChangeMemberRequest);
    returns(200, "The member as it is now": MemberResponse)
        or(NotFound: "the account has no such member", Conflict: "no owner would be left among the members", RateLimited,
            OutcomeUnknown);

    /// Remove a member
    ///
    /// Or withdraw an invitation. The member's browsers are signed out immediately. For the account's first key and for
    /// owners; every member may leave with `current`.
    RemoveMember("remove_member") = DELETE "/members/{id}" in "members" for KEY;
    takes(OfMember, ());
    returns(200, "Removed": RemovedMemberResponse)
        or(NotFound: "the account has no such member", Conflict: "no owner would be left among the members", RateLimited,
            OutcomeUnknown);

    /// Actions of members
    ///
    /// Each call of a member that may change something, and how members changed, newest first. The newest 1,000 entries are
    /// kept. If `next` is not null, more follow: send it as `after`.
    GetAccountLog("account_log") = GET "/members/log" in "members" for KEY;
    takes(LogPage, ());
    returns(200, "Entries": AccountLogDocument)
        or(ValidationFailed, NotFound: "this service does not offer members");
}
