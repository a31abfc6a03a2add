//! Payments on a chain: listed, assigned and recorded, against a node on a loopback port. The rules are tested in
//! `metering-admin`.

mod assign;
mod configuration;
mod list;
mod scene;
