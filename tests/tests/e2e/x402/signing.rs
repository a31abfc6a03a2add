//! Payments of the cheapest offer, signed by hand.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metering_tests::chain::account::Account;
use metering_tests::chain::wallet::authorizations::{TransferAuthorization, USDC};
use serde_json::json;

use super::market::{CHAIN_ID, Market, UNITS};

/// A transfer from this address that pays the cheapest offer.
pub(super) fn transfer(market: &Market, from: &str, nonce: u8) -> TransferAuthorization {
    TransferAuthorization {
        from: from.to_owned(),
        to: market.recipient.address(),
        value: UNITS,
        valid_after: 0,
        valid_before: market.chain.block_time() + 3_600,
        nonce: format!("0x{}", format!("{nonce:02x}").repeat(32)),
    }
}

/// The value of `PAYMENT-SIGNATURE`: this payer pays the cheapest offer.
pub(super) fn signed(market: &Market, payer: &Account, nonce: u8) -> String {
    let transfer = transfer(market, &payer.address(), nonce);
    payment(&transfer, &market.chain.wallet().sign_transfer(payer, CHAIN_ID, &transfer))
}

/// The value of `PAYMENT-SIGNATURE` for a transfer with this signature.
pub(super) fn payment(transfer: &TransferAuthorization, signature: &str) -> String {
    let accepted = json!({
        "scheme": "exact", "network": "eip155:84532", "amount": UNITS.to_string(), "asset": USDC,
        "payTo": transfer.to, "maxTimeoutSeconds": 300, "extra": {"name": "USDC", "version": "2"},
    });
    let authorization = json!({
        "from": transfer.from, "to": transfer.to, "value": UNITS.to_string(), "validAfter": "0",
        "validBefore": transfer.valid_before.to_string(), "nonce": transfer.nonce,
    });
    let payload = json!({"signature": signature, "authorization": authorization});
    STANDARD.encode(json!({"x402Version": 2, "accepted": accepted, "payload": payload}).to_string())
}
