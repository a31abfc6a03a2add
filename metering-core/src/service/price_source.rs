use std::fmt;
use std::sync::Arc;

use crate::prices::PriceNumber;
use crate::store::PriceStore;

/// The version that a service's catalogue is, and where the others are.
#[derive(Clone, Default)]
pub(super) struct PriceSource {
    pub(super) store: Option<Arc<dyn PriceStore>>,
    pub(super) serving: Option<PriceNumber>,
}

impl fmt::Debug for PriceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PriceSource").field(&self.serving).finish()
    }
}
