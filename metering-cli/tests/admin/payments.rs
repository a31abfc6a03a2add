//! Money that arrived by chain: listed, assigned and recorded, against a chain that is played on a loopback port.

mod assign;
mod configuration;
mod list;
mod scene;
