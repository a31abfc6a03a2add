//! The parts that serve new requests. A reload replaces it; requests in flight keep the parts that they began with.

use std::sync::{Arc, PoisonError, RwLock};

/// A value that is replaced as a whole.
#[derive(Debug)]
pub(crate) struct Current<T>(RwLock<Arc<T>>);

impl<T> Current<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Self(RwLock::new(value))
    }

    /// The value now. Take it once for each request.
    pub(crate) fn load(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the value for all later [loads](Self::load).
    pub(crate) fn replace(&self, value: Arc<T>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}
