//! Wallet operations of users. viem, in a process that all chains use, makes the keys, signatures and transactions.
//!
//! Setup methods (deploy, mint, approve) return once a block includes their transaction, and mine that block if none
//! comes by itself. Payment methods return the transaction's hash immediately: the test decides when it is mined.
//! Amounts are in the smallest unit, as any decimal number: `5_000_000`, `"5003817"`. Addresses and hashes are
//! lower-case hex with `0x`.

pub mod authorizations;
mod contracts;
mod payments;

use std::process::Command;

use serde_json::{Value, json};

use super::account::Account;
use super::packages;
use super::rpc::Rpc;
use super::write::Write;
use crate::worker;

/// The wallets of a chain.
#[derive(Debug)]
pub struct Wallet {
    node_url: String,
    rpc: Rpc,
}

impl Wallet {
    pub(crate) fn new(node_url: String, rpc: Rpc) -> Self {
        Self { node_url, rpc }
    }

    /// One of the accounts that are rich from the start, 0 to 9 by default. Account 0 deploys and mints.
    #[track_caller]
    #[must_use]
    pub fn account(&self, index: u32) -> Account {
        account_of(&self.request("account", &json!({ "index": index })))
    }

    /// A new account without coins, so it cannot send transactions.
    #[track_caller]
    #[must_use]
    pub fn poor_account(&self) -> Account {
        account_of(&self.request("newAccount", &json!({})))
    }

    /// A new account with 1,000 native coins.
    #[track_caller]
    #[must_use]
    pub fn new_account(&self) -> Account {
        let account = self.poor_account();
        let balance = format!("{:#x}", 1_000 * 10_u128.pow(18));
        let _ = self.rpc.call("anvil_setBalance", json!([account.address(), balance]));
        account
    }

    /// Signs a message as wallets do (EIP-191, `personal_sign`): 65 bytes as `0x` and hex.
    #[track_caller]
    #[must_use]
    pub fn sign_message(&self, by: &Account, message: &str) -> String {
        text(&self.request("signMessage", &json!({ "privateKey": by.private_key(), "message": message })))
    }

    /// Deploys a contract, named after its file in `tests/chain/contracts`, and returns its address.
    #[track_caller]
    pub fn deploy(&self, contract: &str, args: Value) -> String {
        let deployer = self.account(0);
        let params = json!({ "privateKey": deployer.private_key(), "contract": contract, "args": args });
        let deployed = self.request("deploy", &params);
        self.wait_until_mined(&text(&deployed["hash"]));
        text(&deployed["address"]).to_ascii_lowercase()
    }

    /// Sends a contract call, and returns the transaction's hash.
    ///
    /// # Panics
    /// If the wallet refuses. It refuses transactions that would fail, unless they are [`Write::without_simulation`].
    #[track_caller]
    pub fn write(&self, by: &Account, write: &Write) -> String {
        let mut params = write.params();
        params["privateKey"] = json!(by.private_key());
        text(&self.request("write", &params))
    }

    /// Reads from a contract; numbers are returned as decimal strings.
    #[track_caller]
    pub fn read(&self, contract: &str, address: &str, function: &str, args: Value) -> Value {
        let params = json!({ "contract": contract, "address": address, "function": function, "args": args });
        self.request("read", &params)
    }

    /// The call data for a contract's function, as hex.
    #[track_caller]
    #[must_use]
    pub fn encode(&self, contract: &str, function: &str, args: Value) -> String {
        text(&self.request("encode", &json!({ "contract": contract, "function": function, "args": args })))
    }

    #[track_caller]
    fn request(&self, method: &str, params: &Value) -> Value {
        let mut command = Command::new("node");
        command.arg(packages::folder().join("wallet.mjs"));
        let request = json!({ "url": self.node_url, "method": method, "params": params });
        worker::ask(&mut command, &request).unwrap_or_else(|error| panic!("the wallet refused {method}: {error}"))
    }

    /// Waits until a block includes the transaction, and mines one if none comes by itself.
    #[track_caller]
    fn wait_until_mined(&self, hash: &str) {
        let automatic = self.rpc.call("anvil_getAutomine", json!([])) == true;
        if !automatic && self.rpc.call("anvil_getIntervalMining", json!([])).is_null() {
            let _ = self.rpc.call("anvil_mine", json!(["0x1"]));
        }
        let receipt = self.rpc.mined(hash);
        assert_eq!(receipt["status"], "0x1", "{hash} failed: {receipt}");
    }
}

#[track_caller]
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

#[track_caller]
fn account_of(value: &Value) -> Account {
    Account::new(text(&value["address"]), text(&value["privateKey"]))
}
