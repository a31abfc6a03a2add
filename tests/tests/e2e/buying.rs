//! Buying credits: quotes, payments on a real chain, claims and top-ups.

mod attacks;
mod block_times;
mod confirmations;
mod customer_journey;
mod races;
mod rate_limits;
mod receipts;
mod topups;
