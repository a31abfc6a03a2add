//! The paying commands of the client, against a service and a chain that do what the test says: the real program, as a
//! separate process that can be killed at any moment.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod abandoning;
mod fixture;
mod interruptions;
mod node;
mod paid_elsewhere;
mod paying;
mod refusals;
mod rotation;
mod service;
mod stand_in;
mod topping_up;
mod waiting;
