//! Checks of the repository itself.

mod documents;
mod imports;
mod metrics;
mod module;
mod modules;
mod names;
