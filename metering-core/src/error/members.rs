//! What callers learn when members of an account, or their sign-ins, are refused.

use crate::access::member::Member;
use crate::wire::ErrorCode;

/// Why a request about members was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemberError {
    /// The service has no members ([`Service::with_members`](crate::Service::with_members)).
    #[error("This service does not offer members. Sign in with the API key.")]
    NotOffered,
    /// The account has no such member or invitation.
    #[error("The account has no such member, and no such invitation.")]
    NoSuchMember,
    /// The address belongs to a member.
    #[error("This address already belongs to a member. Change the role with PATCH /members/{{id}} instead.")]
    IsMember,
    /// The account has reached its limit of members.
    #[error("An account has at most {} members and open invitations. Remove one first.", Member::MAX_PER_ACCOUNT)]
    TooMany,
    /// No owner would be left.
    #[error("This member is the last owner. Make another member an owner first, or use the account's first key.")]
    LastOwner,
    /// No account has the wallet.
    #[error(
        "This wallet has not paid for an account and belongs to no member. Sign in with another wallet or the API key."
    )]
    UnknownWallet,
    /// The wallet did not sign the text.
    #[error(
        "This wallet did not sign the message: sign it unchanged (EIP-191, personal_sign) and send all 65 bytes as \
         hexadecimal digits after 0x. Contracts cannot sign in."
    )]
    WrongSignature,
}

impl MemberError {
    /// The code that clients get.
    pub(super) const fn code(self) -> ErrorCode {
        match self {
            Self::NotOffered | Self::NoSuchMember => ErrorCode::NotFound,
            Self::IsMember | Self::TooMany | Self::LastOwner => ErrorCode::Conflict,
            Self::UnknownWallet => ErrorCode::NoLinkedWallet,
            Self::WrongSignature => ErrorCode::InvalidSignature,
        }
    }
}
