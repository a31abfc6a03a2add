//! The body of a request that was read before it reached the layer.

use std::fmt;
use std::sync::Arc;

/// The whole body of a request, for [`MeteringLayer`](crate::MeteringLayer): put it into the request's extensions on
/// routes that are priced by usage, and on routes that declare their body. The hold can then be estimated from it, it
/// can be checked, and an idempotency key is only good for one body.
///
/// ```
/// use metering_core::RequestBody;
///
/// let mut request = http::Request::post("/chat").body(r#"{"max_tokens": 100}"#)?;
/// let body = RequestBody::new(*request.body());
/// request.extensions_mut().insert(body);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone)]
pub struct RequestBody(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl RequestBody {
    /// A body of these bytes, which may be shared, such as `bytes::Bytes`.
    #[must_use]
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(bytes))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for RequestBody {
    /// The length only: bodies can contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestBody({} bytes)", self.as_bytes().len())
    }
}
