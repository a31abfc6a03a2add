//! Keys of the caller's account, and replacements for lost ones.

use metering_core::store::Cursor;
use metering_core::wire::call::{Access, Bounded};
use metering_core::wire::{
    ChallengeRequest, ChallengeResponse, ChangeKeyRequest, CreateKeyRequest, DeletedKeyResponse, IssuedKeyResponse,
    KeyResponse, KeysDocument, LeakedKeyRequest, LeakedKeyResponse, LinkRequest, RecoverByEmailRequest,
    RecoverByEmailResponse, RotateKeyRequest, VerifyRequest, VerifyResponse,
};
use metering_core::{call, parameters};

use super::access::{KEY, KEY_OR_WALLET};

parameters! {
    /// A key.
    OfKey {
        /// The key's id, or `current`
        id: String = "current",
    }

    /// The key of a call that ends a secret. Its example is another key than the caller's, so trying it out locks
    /// nobody out.
    OfNamedKey {
        /// The key's id
        id: String = "key_0123456789abcdef0123",
    }

    /// Which keys.
    KeysPage {
        /// Maximum number of keys, 100 by default
        limit: Bounded<100, 100> = 100,
        /// The value of `next` in the previous response
        after: Option<Cursor>,
    }
}

impl OfKey {
    /// The key that the request is sent with.
    #[must_use]
    pub fn current() -> Self {
        Self { id: "current".to_owned() }
    }
}

call! {
    /// Create a child of the caller's key
    ///
    /// It may do at most what the caller's key may do, and stops working when the caller's key does. The secret is
    /// shown only once. To get it again after a lost response, send an `Idempotency-Key` of at least 32 random
    /// characters, and repeat the request with it.
    ///
    /// Without a key, a wallet that paid for requests signs in, and gets a child of the first key of its account. The
    /// message to sign is in the extension `sign-in-with-x` of any 402 for a request without a key. `Idempotency-Key`
    /// works only with a key.
    CreateKey("create_key") = POST "/keys" in "keys" for KEY_OR_WALLET;
    takes((), CreateKeyRequest, repeatable);
    returns(201, "The key and its secret": IssuedKeyResponse)
        or(ValidationFailed: "also if it would allow more than the caller's key does",
            Unauthorized: "also if the wallet was not signed in, as `message` explains",
            NoLinkedWallet: "the wallet that signed in has no account",
            Conflict: "the account has reached its limit of keys, or the chain of keys is too long",
            IdempotencyKeyUsed: "the key that this `Idempotency-Key` made was rotated or deleted", RateLimited,
            RpcError: "the chain of a wallet that is a contract cannot be read", OutcomeUnknown);

    /// The caller's key and its child keys, oldest first
    ///
    /// If `next` is not null, more keys follow: send it as `after`.
    ListKeys("keys") = GET "/keys" in "keys" for KEY;
    takes(KeysPage, ());
    returns(200, "Keys": KeysDocument) or(ValidationFailed);

    /// One key
    ///
    /// `current` means the key that the request is sent with, which needs no scope for this.
    GetKey("key") = GET "/keys/{id}" in "keys" for KEY;
    takes(OfKey, ());
    returns(200, "The key": KeyResponse)
        or(KeyScope: "but not for `current`", NotFound: "the caller's key has no such child key");

    /// Change a key
    ///
    /// Omitted fields are unchanged; null removes a restriction. Takes effect immediately.
    ChangeKey("change_key") = PATCH "/keys/{id}" in "keys" for KEY;
    takes(OfKey, ChangeKeyRequest);
    returns(200, "The key as it is now": KeyResponse)
        or(ValidationFailed: "also if it would allow more than the caller's key does",
            NotFound: "the caller's key has no such child key",
            Conflict: "the account's first key cannot be restricted like this, or the key leaked", RateLimited,
            OutcomeUnknown);

    /// Delete a key
    ///
    /// Permanently. Its child keys stop working too. Their streams end within five seconds. `current` means the key
    /// that the request is sent with.
    DeleteKey("delete_key") = DELETE "/keys/{id}" in "keys" for KEY;
    takes(OfNamedKey, ());
    returns(200, "Deleted": DeletedKeyResponse)
        or(NotFound: "the caller's key has no such child key", Conflict: "the account's first key cannot be deleted",
            RateLimited, OutcomeUnknown);

    /// Replace the key that this request is sent with
    ///
    /// The old secret stops working with this response, or `grace_seconds` later, and its streams end within five
    /// seconds. Until then it can call and read only. The new one is shown only once, so send an `Idempotency-Key` of
    /// at least 32 random characters, and keep it until you have stored the new key: if the response is lost, the same
    /// request, with the old key and the same `Idempotency-Key`, returns the same new key.
    RotateCurrentKey("rotate_current_key") = POST "/keys/current/rotate" in "keys" for KEY;
    takes((), RotateKeyRequest, optional, repeatable);
    returns(200, "The new key": VerifyResponse) or(RateLimited, OutcomeUnknown);

    /// Replace the secret of a key
    ///
    /// The key keeps its id, its terms and its usage. With `grace_seconds`, the old secret works for that much longer.
    /// The new secret is shown only once: see `Idempotency-Key`.
    RotateKey("rotate_key") = POST "/keys/{id}/rotate" in "keys" for KEY;
    takes(OfNamedKey, RotateKeyRequest, optional, repeatable);
    returns(200, "The key and its new secret": IssuedKeyResponse)
        or(NotFound: "the caller's key has no such child key", RateLimited, OutcomeUnknown);

    /// Report a leaked key
    ///
    /// For anyone who finds a leaked key; no other credentials are needed. The key and all its child keys stop working
    /// immediately, until the owner rotates it.
    ReportLeaked("report_leaked") = POST "/keys/leaked" in "keys" for Access::ANYONE;
    takes((), LeakedKeyRequest);
    returns(200, "Whether the key was live, and no longer is": LeakedKeyResponse)
        or(RateLimited, StorageUnavailable, OutcomeUnknown);

    /// Get a message for the wallet to sign
    CreateChallenge("challenge") = POST "/api-key/recover/challenge" in "recovery" for Access::ANYONE;
    takes((), ChallengeRequest);
    returns(201, "The message to sign": ChallengeResponse)
        or(NoLinkedWallet, RateLimited, StorageUnavailable, OutcomeUnknown);

    /// Exchange the wallet's signature for a new key
    ///
    /// The old key stops working with this response, and its streams end within five seconds. For smart-contract
    /// wallets, the contract verifies the signature (EIP-1271) on the chain that the account was paid on.
    VerifyChallenge("verify") = POST "/api-key/recover/verify" in "recovery" for Access::ANYONE;
    takes((), VerifyRequest);
    returns(200, "The new key, shown only once": VerifyResponse)
        or(AddressMismatch, InvalidSignature, NotFound: "no open challenge with this nonce", ChallengeExpired,
            RateLimited, RpcError, RpcChainMismatch, StorageUnavailable, OutcomeUnknown);

    /// Send a link that replaces the account's key
    ///
    /// If an account has verified this address, it gets a link that works once and expires after ten minutes. The
    /// response is the same for every address.
    SendRecoveryLink("recovery_link") = POST "/api-key/recover/email" in "recovery" for Access::ANYONE;
    takes((), RecoverByEmailRequest);
    returns(202, "Accepted, whether or not an account has the address": RecoverByEmailResponse)
        or(NotFound: "this service sends no mail", RateLimited, Overloaded: "too much mail is waiting");

    /// Exchange the token of a recovery link for a new key
    ///
    /// The old key stops working with this response, and its streams end within five seconds. The new key is shown only
    /// once, so send an `Idempotency-Key` of at least 32 random characters: if the response is lost, the same request
    /// returns the same new key.
    RecoverByLink("recover_by_link") = POST "/api-key/recover/email/confirm" in "recovery" for Access::ANYONE;
    takes((), LinkRequest, repeatable);
    returns(200, "The new key, shown only once": VerifyResponse)
        or(LinkExpired: "used, replaced by a newer link, or expired", RateLimited, StorageUnavailable, OutcomeUnknown);
}
