//! `metering catch-up` and `metering stream` as a person or a script runs them: the real program, against a service
//! that fails as the test says.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod crashes;
mod disk;
mod failures;
mod fixture;
mod interruptions;
mod money;
mod outputs;
mod runs;
mod service;
mod stream_failures;
mod streams;
