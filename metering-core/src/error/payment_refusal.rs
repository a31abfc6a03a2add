use crate::wire::ErrorCode;

/// Why a payment that came with a request was not credited, in the terms of its protocol. Its text is for the client.
pub trait PaymentRefusal: std::error::Error + Send + Sync {
    /// The stable error code.
    fn code(&self) -> ErrorCode;

    /// Seconds until a retry may succeed, for `Retry-After`.
    fn retry_after_seconds(&self) -> Option<u64>;
}
