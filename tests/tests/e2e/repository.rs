//! Checks of the repository itself.

mod documents;
