//! The integration tests of the crate, in one binary.

#[cfg(feature = "conformance")]
mod contract_list;
#[cfg(feature = "conformance")]
mod memory_store;
