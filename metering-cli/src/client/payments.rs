//! Buying credits from a wallet. What may have been sent is only ever sent again as the same bytes.

pub(crate) mod payment;
pub(crate) mod plans;
pub(crate) mod topup;
pub(crate) mod wallet;
