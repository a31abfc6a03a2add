//! Tests of the PostgreSQL backend: the storage contract, and what only several nodes and a network can get wrong.
#![allow(clippy::unwrap_used, reason = "tests")]

mod authorizations;
mod bad_postings;
mod contract;
mod event_deliveries;
mod event_heads;
mod events;
mod expiry;
mod hold_moves;
mod hold_races;
mod hold_scene;
mod holds;
mod key_moves;
mod keys;
mod lost_commits;
mod moved;
mod opening;
mod operators;
mod pooler;
mod prices;
mod recent_activity;
mod reused;
mod round_trips;
mod unreachable;
mod upgrade;
mod versions;
mod volume_moves;
mod volumes;
mod webhook_deletion;
