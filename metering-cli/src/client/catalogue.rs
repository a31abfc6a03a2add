//! What the service sells: its routes.

pub(crate) mod routes;
