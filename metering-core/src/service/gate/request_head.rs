use std::net::IpAddr;
use std::sync::Arc;

use crate::access::credentials::Caller;
use crate::access::key::ApiKey;
use crate::charging::delivery::{IdempotencyKey, IdempotencyKeyError};
use crate::service::RequestPayment;
use crate::usage::ClientSource;

/// The longest request path stored in recent activity, in bytes.
const MAX_PATH_KEPT: usize = 256;

/// The parts of a request that admission needs.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'r> {
    /// Its API key, if it has a well-formed one.
    pub key: Option<&'r ApiKey>,
    /// Its source address, if known. A key that is restricted to networks needs it.
    pub address: Option<IpAddr>,
    /// Its method.
    pub method: &'r str,
    /// Its body, if it was read. For a price by usage, the requests of an idempotency key must have the same body, and
    /// the hold may be estimated from it. A route that [declares](crate::catalogue::BodyRules) its body refuses
    /// requests without.
    pub body: Option<RequestContent<'r>>,
    /// Its path, as received.
    pub path: &'r str,
    /// Its query, as received, without the question mark.
    pub query: Option<&'r str>,
    /// The kind of client that sent it.
    pub source: ClientSource,
    /// Its idempotency key, if it has one.
    pub idempotency_key: Option<Result<&'r IdempotencyKey, IdempotencyKeyError>>,
    /// The payment that came with it ([`Offers::read`](crate::service::Offers::read)).
    pub payment: Option<&'r dyn RequestPayment>,
}

/// The body of a request that was read.
#[derive(Debug, Clone, Copy)]
pub struct RequestContent<'r> {
    /// The bytes.
    pub bytes: &'r [u8],
    /// Whether they are encoded (`Content-Encoding`): their length and content then reveal nothing.
    pub is_encoded: bool,
}

impl<'r> RequestHead<'r> {
    pub(super) const fn caller(&self) -> Caller<'r> {
        Caller { key: self.key, session: None, address: self.address }
    }
}

/// The part of a path that recent activity stores.
pub(crate) fn kept_path(path: &str) -> Arc<str> {
    path[..path.floor_char_boundary(MAX_PATH_KEPT)].into()
}
