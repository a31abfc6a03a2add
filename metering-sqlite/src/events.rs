//! Lists of deliveries, and tests of what depends on SQLite's indexes.

#[cfg(test)]
mod excess;
pub(crate) mod lists;
#[cfg(test)]
mod plans;
