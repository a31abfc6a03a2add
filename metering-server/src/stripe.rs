//! Plans sold by card, with Stripe Checkout: this service creates sessions, Stripe takes the money, and its signed events
//! credit and reverse payments, like those of any processor.
//!
//! Only what a session's metadata lists is credited: later changes of plans do not matter. No session is stored here.
//! If a refund or dispute arrives before its payment, the server requests the session from Stripe. Saved cards are
//! charged when balances are low ([`TopUps`]).

mod api;
mod cards;
mod checkout;
mod events;
mod signature;
mod top_ups;

pub(crate) use checkout::Stripe;
pub(crate) use signature::SIGNATURE_HEADER;
pub(crate) use top_ups::TopUps;
