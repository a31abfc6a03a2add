//! Members of an account, invitations, and the account's own log.

use serde::{Deserialize, Serialize};

use crate::access::member::{AccountAction, Invitation, Member, MemberId};
use crate::clock::Timestamp;
use crate::shown_fields::shown_fields;

/// A member, or an invited person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberDocument {
    /// Its id, which stays the same when an invitation is accepted.
    pub id: String,
    /// The email address or wallet; null for an invitation that is a link to pass on.
    pub identity: Option<String>,
    /// `owner`, `billing`, `developer` or `viewer`.
    pub role: String,
    /// `joined` or `invited`.
    pub state: String,
    /// Whether this is the caller.
    pub current: bool,
    /// When it joined or was invited, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub since: Timestamp,
    /// When the invitation stops working; null for a member.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Timestamp>,
}

impl MemberDocument {
    /// A member, as `current` sees it.
    #[must_use]
    pub fn of(member: &Member, current: Option<MemberId>) -> Self {
        Self {
            id: member.id.to_string(),
            identity: Some(member.identity.to_string()),
            role: member.role.to_string(),
            state: "joined".to_owned(),
            current: current == Some(member.id),
            since: member.joined_at,
            expires_at: None,
        }
    }
}

impl From<&Invitation> for MemberDocument {
    fn from(invitation: &Invitation) -> Self {
        Self {
            id: invitation.id.to_string(),
            identity: invitation.email.as_ref().map(ToString::to_string),
            role: invitation.role.to_string(),
            state: "invited".to_owned(),
            current: false,
            since: invitation.created_at,
            expires_at: Some(invitation.expires_at),
        }
    }
}

/// The response to `GET /members`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MembersDocument {
    /// Members in the order of joining, then open invitations in the order in which they were made.
    pub data: Vec<MemberDocument>,
}

/// The body of `POST /members`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct InviteMemberRequest {
    /// `owner`, `billing`, `developer` or `viewer`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub role: Option<String>,
    /// Where to send the invitation. If omitted or null, the response has a link to pass on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

/// The body of `PATCH /members/{id}`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeMemberRequest {
    /// `owner`, `billing`, `developer` or `viewer`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub role: Option<String>,
}

/// The response to `POST /members`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InvitationResponse {
    /// The invitation.
    pub data: MemberDocument,
    /// The link to pass on, shown only once; null if it is sent by mail. Whoever follows it first, and proves an email
    /// address or a wallet, joins.
    pub url: Option<String>,
}

shown_fields!(InvitationResponse: data);

/// The response to `PATCH /members/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberResponse {
    /// The member or invitation as it is now.
    pub data: MemberDocument,
}

/// The response to `DELETE /members/{id}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RemovedMemberResponse {
    /// Always true.
    pub removed: bool,
}

/// An entry of an account's own log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountActionDocument {
    /// Its number, counted up within the account.
    pub number: i64,
    /// The time, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// The id of the member, or of the key.
    pub actor: String,
    /// The email address or wallet of the member, or the name of the key, at that time.
    pub actor_name: String,
    /// The name of the call in the OpenAPI document, or `join`.
    pub action: String,
    /// The subject: the values in the call's path, or a member.
    pub subject: String,
    /// The HTTP status of the response; null for changes of members, which are listed only once they are done, and for a
    /// call whose response is not known.
    pub status: Option<u16>,
}

impl From<AccountAction> for AccountActionDocument {
    fn from(entry: AccountAction) -> Self {
        let AccountAction { account: _, number, at, actor, actor_name, action, subject, status } = entry;
        Self { number, at, actor, actor_name, action, subject, status }
    }
}

/// The response to `GET /members/log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountLogDocument {
    /// Entries, newest first.
    pub data: Vec<AccountActionDocument>,
    /// Send it as `after` for the entries that follow; null if there are none.
    pub next: Option<String>,
}

/// The body of `POST /api-key/sessions/email`.
#[derive(Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignInLinkRequest {
    /// An email address that an account has verified, or that is a member's.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub email: Option<String>,
    /// The token of an invitation to accept: the part of its link after `#sign-in=`. The address need not be known then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub invitation: Option<zeroize::Zeroizing<String>>,
}

shown_fields!(SignInLinkRequest:);

/// The body of `POST /api-key/sessions/wallet`.
#[derive(Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WalletSignInRequest {
    /// A wallet that paid for an account, or that is a member's.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub address: Option<String>,
    /// The token of an invitation to accept: the part of its link after `#sign-in=`. The wallet need not be known then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub invitation: Option<zeroize::Zeroizing<String>>,
}

shown_fields!(WalletSignInRequest: address);

/// The response to `POST /api-key/sessions/wallet`.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WalletSignInResponse {
    /// Send it with the signature to `POST /api-key/sessions/email/confirm`.
    pub token: String,
    /// The text to sign, unchanged (EIP-191).
    pub message: String,
    /// Seconds until the sign-in expires.
    pub expires_in: u64,
}

shown_fields!(WalletSignInResponse: expires_in);
