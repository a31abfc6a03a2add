//! The resource of a payment, as facilitators list it.

use metering_core::service::RequestedResource;
use serde_json::Value;

use crate::wire::x402::{Resource, bazaar_extension};

/// The resource of a payment, as the catalogue of a facilitator lists it (the extension `bazaar` of x402). It is the
/// service's own description: the client's copy could be changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// The resource that was called.
    pub resource: Resource,
    /// How it is called.
    pub bazaar: Value,
}

impl Listing {
    /// The listing of a request; `None` if it has no route.
    #[must_use]
    pub fn of(asked: &RequestedResource<'_>) -> Option<Self> {
        let route = asked.route?;
        Some(Self { resource: Resource::at(asked.url.clone(), Some(route)), bazaar: bazaar_extension(route) })
    }
}
