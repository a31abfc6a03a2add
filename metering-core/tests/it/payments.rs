//! Buying, claiming, topping up and rotating through the service, with in-memory chains.

mod chain;
mod claims;
mod email;
mod members;
mod not_before;
mod other_quotes;
mod quotes;
mod receipts;
mod rotation;
mod scene;
mod settling;
mod theft;
mod top_up_quotes;
mod top_up_states;
mod topups;
mod values;
mod wallet;
mod watching;
