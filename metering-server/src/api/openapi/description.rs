use std::fmt;

use metering_core::Catalogue;
use metering_pay::SignedPayments;
use utoipa::openapi::OpenApi;

use super::{offers, written};

/// The document of a server, without the catalogue's routes, which are added when it is written.
pub(crate) struct Description {
    pub(super) own: OpenApi,
    /// The operation ids of the routes. Empty if this process does not serve them.
    pub(super) ids: Vec<Option<String>>,
}

impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Description").field(&self.own.info.title).finish()
    }
}

impl Description {
    /// The document with these routes as JSON.
    pub(crate) fn to_json(&self, catalogue: &Catalogue) -> serde_json::Result<String> {
        written::with_routes(&self.own, (catalogue, &self.ids), |_, _| {})
    }

    /// The same, with the payment offers of a catalogue's metered routes.
    pub(crate) fn with_offers(&self, catalogue: &Catalogue, payments: &SignedPayments) -> serde_json::Result<String> {
        let mut own = self.own.clone();
        offers::add_service(&mut own);
        let (offers, protocols) = (payments.offers(), payments.protocols());
        written::with_routes(&own, (catalogue, &self.ids), |part, routes| {
            offers::add(part, routes.iter().copied(), offers, protocols);
        })
    }
}
