//! Events with their deliveries: what charges write, and what depends on PostgreSQL's indexes.

pub(crate) mod lists;
pub(crate) mod outbox;
#[cfg(test)]
mod plans;
