//! Presets: what a route of a well-known API says of its price, its errors and its requests, written out in the catalogue's
//! own keys. Nothing but this expansion knows of presets.

mod data;
mod expansion;
mod listing;
mod sold;
mod units;

pub(super) use expansion::Expansion;
pub use expansion::ModelFiles;

#[cfg(test)]
mod tests;
