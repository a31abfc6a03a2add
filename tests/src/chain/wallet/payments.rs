//! Payments and lookalikes. Each returns the transaction's hash immediately, and panics if the wallet refuses. The
//! wallet simulates every transaction before it sends it, except where a name ends in `unsimulated`.

use serde_json::{Value, json};

use super::{Wallet, text};
use crate::chain::account::Account;
use crate::chain::write::Write;

/// Gas limit for native coins that are sent without simulation.
const ENOUGH_GAS: u64 = 100_000;

impl Wallet {
    /// Pays tokens.
    #[track_caller]
    pub fn transfer(&self, from: &Account, token: &str, to: &str, amount: impl ToString) -> String {
        self.write(from, &transfer(token, to, &amount.to_string()))
    }

    /// Pays tokens on a Tempo chain, in a transaction of type `0x76`: it has a list of calls, and no target, value or
    /// input. Needs a chain started with `--network tempo`.
    #[track_caller]
    pub fn transfer_by_calls(&self, from: &Account, token: &str, to: &str, amount: impl ToString) -> String {
        let amount = amount.to_string();
        let params = json!({ "privateKey": from.private_key(), "token": token, "to": to, "amount": amount });
        text(&self.request("transferByCalls", &params))
    }

    /// Pays tokens that `from` may not have; the transaction is then mined as reverted.
    #[track_caller]
    pub fn transfer_unsimulated(&self, from: &Account, token: &str, to: &str, amount: impl ToString) -> String {
        self.write(from, &transfer(token, to, &amount.to_string()).without_simulation())
    }

    /// Pays with another wallet's tokens, as relayers do. `from` must have approved `by` before.
    #[track_caller]
    pub fn transfer_from(&self, by: &Account, token: &str, from: &str, to: &str, amount: impl ToString) -> String {
        self.write(by, &Write::new("Token", token, "transferFrom", json!([from, to, amount.to_string()])))
    }

    /// Pays the same recipient twice in one transaction. `from` must have approved the batcher before.
    #[track_caller]
    pub fn transfer_twice(
        &self,
        from: &Account,
        batcher: &str,
        token: &str,
        to: &str,
        first: impl ToString,
        second: impl ToString,
    ) -> String {
        let args = json!([token, from.address(), to, first.to_string(), second.to_string()]);
        self.write(from, &Write::new("Batcher", batcher, "transferTwice", args))
    }

    /// Pays two recipients in one transaction. `from` must have approved the batcher before.
    #[track_caller]
    pub fn transfer_to_both(
        &self,
        from: &Account,
        batcher: &str,
        token: &str,
        one: (&str, impl ToString),
        other: (&str, impl ToString),
    ) -> String {
        let args = json!([token, from.address(), one.0, one.1.to_string(), other.0, other.1.to_string()]);
        self.write(from, &Write::new("Batcher", batcher, "transferToBoth", args))
    }

    /// Pays tokens and writes so many empty logs, by tens. `from` must have approved the flooder before. More than
    /// 38,000 need a chain without a gas limit per transaction (EIP-7825), such as one of the hard fork `cancun`.
    #[track_caller]
    pub fn transfer_flooding(
        &self,
        from: &Account,
        flooder: &str,
        token: &str,
        to: &str,
        amount: impl ToString,
        logs: u32,
    ) -> String {
        let args = json!([token, to, amount.to_string(), logs.to_string()]);
        self.write(from, &Write::new("Flooder", flooder, "transfer", args))
    }

    /// Emits a transfer event of the forger's own token, which does not exist.
    #[track_caller]
    pub fn forge(&self, by: &Account, forger: &str, from: &str, to: &str, amount: impl ToString) -> String {
        self.write(by, &Write::new("ForgedTransfers", forger, "forge", json!([from, to, amount.to_string()])))
    }

    /// Pays tokens of a contract wallet, sent by its owner.
    #[track_caller]
    pub fn transfer_by_contract(
        &self,
        owner: &Account,
        contract_wallet: &str,
        token: &str,
        to: &str,
        amount: impl ToString,
    ) -> String {
        let call = self.encode("Token", "transfer", json!([to, amount.to_string()]));
        self.write(owner, &Write::new("ContractWallet", contract_wallet, "execute", json!([token, "0", call])))
    }

    /// Pays the native coin.
    #[track_caller]
    pub fn send_native(&self, from: &Account, to: &str, amount: impl ToString) -> String {
        self.send(from, json!({ "to": to, "value": amount.to_string() }))
    }

    /// Pays the native coin with call data, as hex.
    #[track_caller]
    pub fn send_native_with_data(&self, from: &Account, to: &str, amount: impl ToString, data: &str) -> String {
        self.send(from, json!({ "to": to, "value": amount.to_string(), "data": data }))
    }

    /// Pays the native coin to a recipient that may refuse it, such as a reverter; the transaction is then mined as
    /// reverted.
    #[track_caller]
    pub fn send_native_unsimulated(&self, from: &Account, to: &str, amount: impl ToString) -> String {
        self.send(from, json!({ "to": to, "value": amount.to_string(), "gas": ENOUGH_GAS }))
    }

    /// Pays the native coin through a batcher: `to` gets it from the contract, not from the transaction itself.
    #[track_caller]
    pub fn forward_native(&self, from: &Account, batcher: &str, to: &str, amount: impl ToString) -> String {
        self.write(from, &Write::new("Batcher", batcher, "forward", json!([to])).value(amount))
    }

    #[track_caller]
    fn send(&self, from: &Account, mut params: Value) -> String {
        params["privateKey"] = json!(from.private_key());
        text(&self.request("sendNative", &params))
    }
}

fn transfer(token: &str, to: &str, amount: &str) -> Write {
    Write::new("Token", token, "transfer", json!([to, amount]))
}
