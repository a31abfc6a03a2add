//! Calls that pay, against a stand-in for a service that asks for payments.

mod calls;
mod limits;
mod resuming;
mod shop;
mod topup;
