//! Sessions of browsers: a key, or a link by email, exchanged for a cookie.

use metering_core::wire::call::Access;
use metering_core::wire::{
    BrowserSessionResponse, BrowserSessionsDocument, EndedSessionsResponse, LinkAccountResponse, LinkRequest,
    RecoverByEmailResponse, SignInLinkRequest, WalletSignInRequest, WalletSignInResponse,
};
use metering_core::{call, parameters};

use super::access::{KEY, KEY_ALONE};

parameters! {
    /// A session.
    OfSession {
        /// The session's id, or `current` for that of the calling browser
        id: String = "ses_0123456789abcdef0123456789abcdef",
    }
}

call! {
    /// Sign this browser in
    ///
    /// For the service's own pages: exchanges the key for a session, whose token is in an `HttpOnly` cookie for these
    /// pages alone. A session may do what its key may do on the calls of the account, at their paths below
    /// `/metering/session`, and nothing on metered routes. It ends when it is ended here, when its key is rotated,
    /// revoked or expires, after 30 days without use, and after 90 days. An account has at most 20; one more ends the
    /// least recently used of the key that has the most.
    CreateSession("create_session") = POST "/api-key/sessions" in "sessions" for KEY_ALONE;
    returns(201, "The session, and the cookie": BrowserSessionResponse)
        or(Forbidden: "a page of another site sent the request", RateLimited, OutcomeUnknown);

    /// The sessions of the caller's key and its child keys
    ///
    /// The most recently used first. Needs the scope `manage`.
    ListSessions("sessions") = GET "/api-key/sessions" in "sessions" for KEY;
    returns(200, "Sessions": BrowserSessionsDocument);

    /// End all of these sessions
    ///
    /// Those browsers are signed out immediately, including the calling one.
    EndSessions("end_sessions") = DELETE "/api-key/sessions" in "sessions" for KEY;
    returns(200, "How many were ended": EndedSessionsResponse) or(OutcomeUnknown);

    /// End a session
    ///
    /// That browser is signed out immediately. `current` signs out the calling browser, which needs no scope.
    EndSession("end_session") = DELETE "/api-key/sessions/{id}" in "sessions" for KEY;
    takes(OfSession, ());
    returns(200, "How many were ended": EndedSessionsResponse)
        or(NotFound: "the caller's key and its child keys have no such session", OutcomeUnknown);

    /// Send a link that signs a browser in
    ///
    /// If an account has verified this address, or has a member with it, it gets a link that works once and expires
    /// after 15 minutes. The key is unchanged. The response is the same for every address. With the token of an
    /// invitation, the link joins that account.
    SendSignInLink("sign_in_link") = POST "/api-key/sessions/email" in "sessions" for Access::ANYONE;
    takes((), SignInLinkRequest);
    returns(202, "Accepted, whether or not an account has the address": RecoverByEmailResponse)
        or(NotFound: "this service sends no mail", LinkExpired: "the invitation was used or has expired", RateLimited,
            Overloaded: "too much mail is waiting");

    /// Begin to sign in with a wallet
    ///
    /// For a wallet that paid for an account, or that is a member's. The wallet signs the message; the token and the signature
    /// are then sent in place of a link's token. Contracts cannot sign in.
    SignInWithWallet("sign_in_with_wallet") = POST "/api-key/sessions/wallet" in "sessions" for Access::ANYONE;
    takes((), WalletSignInRequest);
    returns(201, "The message to sign": WalletSignInResponse)
        or(NoLinkedWallet: "no account has this wallet", NotFound: "this service does not offer members",
            LinkExpired: "the invitation was used or has expired", RateLimited, StorageUnavailable, OutcomeUnknown);

    /// The accounts that a sign-in link is for
    ///
    /// The page names them before it signs in. The link stays unused.
    GetSignInAccount("sign_in_account") = POST "/api-key/sessions/email/account" in "sessions" for Access::ANYONE;
    takes((), LinkRequest);
    returns(200, "The accounts": LinkAccountResponse)
        or(InvalidSignature: "the wallet did not sign the message",
            LinkExpired: "used, replaced by a newer link, or expired", RateLimited, StorageUnavailable);

    /// Exchange the token of a sign-in link for a session
    ///
    /// The session is one of the account's first key, as if that key had been sent, or one of a member, with the rights
    /// of the member's role. Following an invitation's link makes the person a member first.
    SignInByLink("sign_in_by_link") = POST "/api-key/sessions/email/confirm" in "sessions" for Access::ANYONE;
    takes((), LinkRequest);
    returns(201, "The session, and the cookie": BrowserSessionResponse)
        or(Forbidden: "a page of another site sent the request", InvalidSignature: "the wallet did not sign the message",
            LinkExpired: "used, replaced by a newer link, or expired", RateLimited, StorageUnavailable, OutcomeUnknown);
}
