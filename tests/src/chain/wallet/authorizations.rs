//! Signed transfers of USDC (EIP-3009), which anyone may submit, and the test token that executes them. Methods panic
//! if the wallet or the chain refuses.

use serde_json::{Value, json};

use super::{Wallet, text};
use crate::chain::account::Account;
use crate::chain::write::Write;

/// Where USDC is on Base Sepolia (chain 84532), in lower case. Stock clients of x402 pay this token by default there.
pub const USDC: &str = "0x036cbd53842c5426634e7929541ec2318f3dcf7e";

/// Where Permit2 is on every chain.
const PERMIT2: &str = "0x000000000022d473030f116ddee9f6b43ac78ba3";

/// Where x402's proxy for the scheme `upto` is on every chain.
const UPTO_PROXY: &str = "0x4020a4f3b7b90cca423b9fabcc0ce57c6c240002";

/// A transfer to be signed.
#[derive(Debug, Clone)]
pub struct TransferAuthorization {
    /// The wallet whose tokens are moved.
    pub from: String,
    /// Who receives them.
    pub to: String,
    /// How many of the smallest unit.
    pub value: u128,
    /// Not valid up to and including this time (Unix seconds).
    pub valid_after: u64,
    /// Not valid from this time on (Unix seconds).
    pub valid_before: u64,
    /// 32 bytes as `0x` and hex.
    pub nonce: String,
}

impl Wallet {
    /// Places the token at the address that USDC has on Base Sepolia. Its signatures are bound to this chain's id.
    #[track_caller]
    pub fn place_usdc(&self) {
        self.place("UsdCoin", USDC);
    }

    /// Places stand-ins for Permit2 and for x402's proxy for `upto` at their addresses.
    #[track_caller]
    pub fn place_permit2(&self) {
        self.place("Permit2", PERMIT2);
        self.place("UptoProxy", UPTO_PROXY);
    }

    /// Places a contract without a constructor at an address.
    #[track_caller]
    fn place(&self, contract: &str, address: &str) {
        let deployed = self.deploy(contract, json!([]));
        let code = self.rpc.call("eth_getCode", json!([deployed, "latest"]));
        let _ = self.rpc.call("anvil_setCode", json!([address, code]));
    }

    /// Lets Permit2 transfer so many units of an account's USDC. It is mined when this returns.
    #[track_caller]
    pub fn approve_permit2(&self, by: &Account, units: u128) {
        let approve = Write::new("UsdCoin", USDC, "approve", json!([PERMIT2, units.to_string()]));
        self.wait_until_mined(&self.write(by, &approve));
    }

    /// Signs a transfer of USDC on the chain with this id: 65 bytes as `0x` and hex. The signer need not be the owner
    /// of the tokens, since contract wallets sign with the keys of their owners.
    #[track_caller]
    #[must_use]
    pub fn sign_transfer(&self, by: &Account, chain_id: u64, transfer: &TransferAuthorization) -> String {
        let fields = fields(&[
            ("from", "address"),
            ("to", "address"),
            ("value", "uint256"),
            ("validAfter", "uint256"),
            ("validBefore", "uint256"),
            ("nonce", "bytes32"),
        ]);
        let message = json!({
            "from": transfer.from, "to": transfer.to, "value": transfer.value.to_string(),
            "validAfter": transfer.valid_after.to_string(), "validBefore": transfer.valid_before.to_string(),
            "nonce": transfer.nonce,
        });
        self.sign_typed(by, chain_id, "TransferWithAuthorization", &fields, &message)
    }

    /// Cancels an authorization of USDC that was not executed yet. It is mined when this returns.
    #[track_caller]
    pub fn cancel_transfer(&self, by: &Account, chain_id: u64, nonce: &str) {
        let fields = fields(&[("authorizer", "address"), ("nonce", "bytes32")]);
        let message = json!({ "authorizer": by.address(), "nonce": nonce });
        let signature = self.sign_typed(by, chain_id, "CancelAuthorization", &fields, &message);
        let (r, s, v) = (&signature[..66], format!("0x{}", &signature[66..130]), &signature[130..]);
        let v = u8::from_str_radix(v, 16).expect("a signature ends with a byte").to_string();
        let args = json!([by.address(), nonce, v, r, s]);
        self.wait_until_mined(&self.write(by, &Write::new("UsdCoin", USDC, "cancelAuthorization", args)));
    }

    /// Makes USDC refuse every transfer from or to an address.
    #[track_caller]
    pub fn blacklist(&self, address: &str) {
        let blacklist = Write::new("UsdCoin", USDC, "blacklist", json!([address]));
        self.wait_until_mined(&self.write(&self.account(0), &blacklist));
    }

    #[track_caller]
    fn sign_typed(&self, by: &Account, chain_id: u64, kind: &str, fields: &Value, message: &Value) -> String {
        let domain = json!({ "name": "USDC", "version": "2", "chainId": chain_id, "verifyingContract": USDC });
        let params = json!({
            "privateKey": by.private_key(), "domain": domain, "type": kind, "fields": fields, "message": message,
        });
        text(&self.request("signTypedData", &params))
    }
}

fn fields(fields: &[(&str, &str)]) -> Value {
    fields.iter().map(|(name, kind)| json!({ "name": name, "type": kind })).collect()
}
