//! The service's catalogue of routes.

pub(crate) mod routes;
