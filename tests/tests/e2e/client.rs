//! The command-line client against a real server.

mod catch_up;
mod lifecycle;
mod payments;
mod requests;
mod webhooks;
