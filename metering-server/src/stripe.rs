//! Plans sold by card, with Stripe Checkout: sessions are made here, Stripe takes the money, and its signed events have it
//! credited and reversed, as any processor's payments.
//!
//! What a session sells is written into its metadata when it is made, and only that is credited: later changes of plans do
//! not matter. Nothing is kept here. A refund or dispute may be known before its payment: then Stripe is asked for the
//! session.

mod api;
mod checkout;
mod events;
mod signature;

pub(crate) use checkout::Stripe;
pub(crate) use signature::SIGNATURE_HEADER;
