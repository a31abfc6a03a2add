//! Signing up without a payment, and links by email.

use metering_core::wire::call::Access;
use metering_core::wire::{
    ApproveRequest, ApproveResponse, InitiateRequest, InitiateResponse, LinkRequest, PendingResponse, SendLinkResponse,
    StatusResponse, VerifiedResponse,
};
use metering_core::{call, parameters};

use super::access::KEY;

parameters! {
    /// A signup, by its code.
    OfCode {
        /// The user code
        code: String = "BCDF-GHJK",
    }

    /// A signup, by its session.
    OfSession {
        /// The session's token
        session_token: String,
    }
}

call! {
    /// Start a signup
    ///
    /// The caller owns the session: show `user_code` and `verification_url` to the user, and poll the status with
    /// `session_token`.
    StartSignup("initiate") = POST "/signup/initiate" in "signup" for Access::ANYONE;
    takes((), InitiateRequest);
    returns(201, "The session": InitiateResponse)
        or(EmailAlreadyRegistered, RateLimited, StorageUnavailable, OutcomeUnknown);

    /// Get the signup that a code would approve
    ///
    /// For the page where the user approves it.
    GetPendingSignup("pending") = GET "/signup/pending" in "signup" for Access::ANYONE;
    takes(OfCode, ());
    returns(200, "The pending signup": PendingResponse)
        or(InvalidCode, RateLimited, StorageUnavailable, OutcomeUnknown);

    /// Get the status of a signup
    ///
    /// The first request after the approval returns the key; it is shown only once. Polling more often than `interval`
    /// is refused.
    GetSignupStatus("status") = GET "/signup/status" in "signup" for Access::ANYONE;
    takes(OfSession, ());
    returns(200, "The status": StatusResponse)
        or(ValidationFailed, NotFound: "no such session, or its key was already returned", EmailAlreadyRegistered,
            RateLimited, StorageUnavailable, OutcomeUnknown);

    /// Approve a signup
    ///
    /// Accepts JSON or a form. A form may send the challenge's solution under the field name of its widget, and gets a
    /// page if its `Accept` prefers `text/html`.
    ApproveSignup("approve") = POST "/verify" in "signup" for Access::ANYONE;
    takes((), ApproveRequest);
    returns(200, "Approved": ApproveResponse)
        or(InvalidCode, TermsNotAccepted, ChallengeFailed, EmailAlreadyRegistered, RateLimited, ChallengeUnavailable,
            StorageUnavailable, OutcomeUnknown);

    /// Send the link that verifies the account's email address
    ///
    /// A new link replaces the one before. It is sent in the background, works once, and expires after 24 hours.
    SendVerificationLink("send_link") = POST "/signup/email/send" in "signup" for KEY;
    returns(202, "The link is on its way, or the address is already verified": SendLinkResponse)
        or(NotFound: "this service sends no mail", NoEmailAddress,
            EmailAlreadyRegistered: "another account has verified the address", RateLimited, Overloaded,
            OutcomeUnknown);

    /// Verify an email address
    ///
    /// With the token of the link that was sent there. Works once. The account then gets its free credits, if it has
    /// not received them yet.
    VerifyEmail("verify_email") = POST "/signup/email/verify" in "signup" for Access::ANYONE;
    takes((), LinkRequest);
    returns(200, "Verified": VerifiedResponse)
        or(EmailAlreadyRegistered: "another account verified the address first",
            LinkExpired: "used, replaced by a newer link, or expired", RateLimited, StorageUnavailable,
            OutcomeUnknown);
}
