//! Buying credits from a wallet, and for operators, reporting a processor's payments. A wallet's payment that may have
//! been sent is only ever resent as the same bytes.

pub(crate) mod auto_topup;
pub(crate) mod payment;
pub(crate) mod plans;
pub(crate) mod processor;
pub(crate) mod receipts;
pub(crate) mod topup;
pub(crate) mod wallet;
