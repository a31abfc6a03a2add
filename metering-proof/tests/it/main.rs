//! Making receipts and verifying them.

mod batch_signer;
