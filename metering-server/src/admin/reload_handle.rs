//! The interface to reloads for the operators' API. How they are done is not its business.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use metering_admin::wire::ReloadDocument;

type Reloading = BoxFuture<'static, Result<ReloadDocument, String>>;

/// Has the server reload its configuration. Clones reload the same server.
#[derive(Clone)]
pub(crate) struct Reload(Arc<dyn Fn() -> Reloading + Send + Sync>);

impl Reload {
    pub(crate) fn by(reload: impl Fn() -> Reloading + Send + Sync + 'static) -> Self {
        Self(Arc::new(reload))
    }

    /// # Errors
    /// When the new configuration cannot be used. The text has the reason, without secrets.
    pub(super) fn run(&self) -> Reloading {
        (self.0)()
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}
