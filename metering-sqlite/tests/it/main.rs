//! Tests of the SQLite backend: the storage contract, and what only a backend on disk can get wrong.
#![allow(clippy::unwrap_used, reason = "tests")]

mod authorizations;
mod contract;
mod corruption;
mod damage;
mod dice;
mod disk;
mod embedding;
mod erasure;
mod events;
mod examples;
mod expiry;
mod holds;
mod journal;
mod keys;
mod links;
mod lost_files;
mod metering;
mod migration;
mod moving;
mod operators;
mod payments;
mod scene;
