//! Shared parts of tests of several surfaces.

pub(crate) mod calendar;
pub(crate) mod certificates;
pub(crate) mod collector;
pub(crate) mod https;
pub(crate) mod oidc_provider;
pub(crate) mod script;
pub(crate) mod shop;
pub(crate) mod sockets;
pub(crate) mod upstream;
pub(crate) mod wire;

pub(crate) use metering_tests::wait;
