//! Presets: the price, errors and requests of a well-known API's routes, expanded into the catalogue's own keys. Only
//! this expansion uses presets.

mod data;
mod expansion;
mod listing;
mod sold;
mod units;

pub(super) use expansion::Expansion;
pub use expansion::ModelFiles;

#[cfg(test)]
mod tests;
