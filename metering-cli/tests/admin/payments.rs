//! Payments on a chain: listed, assigned and recorded, against a chain simulated on a loopback port.

mod assign;
mod configuration;
mod list;
mod scene;
