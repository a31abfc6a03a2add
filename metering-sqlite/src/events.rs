//! Events with their deliveries: what charges write, and what depends on SQLite's indexes. An event is written in the
//! transaction of its cause, and its deliveries with it ([`outbox`]).

#[cfg(test)]
mod excess;
pub(crate) mod lists;
pub(crate) mod outbox;
