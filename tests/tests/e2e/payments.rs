//! Payments as the server and its operator see them: the watcher, chains that fail or reorganise, unclaimed payments.

mod auto_top_ups;
mod cards;
mod chain_faults;
mod processors;
mod reorganisations;
mod rpc_secrets;
mod sources;
mod startup;
mod unclaimed;
mod unreadable;
mod watcher;
