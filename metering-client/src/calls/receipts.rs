//! Signed receipts of requests. Receipts for purchases are in [`account`](super::account).

use metering_core::call;
use metering_core::wire::ReceiptKeysDocument;
use metering_core::wire::call::Access;

call! {
    /// The keys that receipts of requests and the log are signed with
    ///
    /// A JWK set (RFC 7517) of Ed25519 keys (RFC 8037): the one that signs now, and earlier ones, so their signatures
    /// stay verifiable. A receipt names its key by `kid`. `logs` has the log of postings, with the verifier keys of its
    /// checkpoints.
    GetReceiptKeys("receipt_keys") = GET "/.well-known/metering-keys" in "descriptions" for Access::ANYONE;
    returns(200, "The keys": ReceiptKeysDocument as "application/jwk-set+json") or(NotFound: "this service signs neither receipts of requests nor a log", StorageUnavailable);
}
