//! Checks of the repository itself.

mod documents;
mod imports;
mod module;
mod modules;
