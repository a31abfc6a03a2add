//! Setup: deploys contracts and distributes tokens. `tests/chain/contracts` describes each contract. Everything is
//! mined when a method returns; each panics if the wallet or the chain refuses.

use serde_json::json;

use super::{Wallet, text};
use crate::chain::account::Account;
use crate::chain::write::Write;

impl Wallet {
    /// A plain ERC-20.
    #[track_caller]
    #[must_use]
    pub fn deploy_token(&self, symbol: &str, decimals: u8) -> String {
        self.deploy("Token", json!([symbol, symbol, decimals.to_string()]))
    }

    /// An ERC-20 that keeps 1 % of each transfer for account 0. It has the interface of a plain one.
    #[track_caller]
    #[must_use]
    pub fn deploy_fee_token(&self, symbol: &str, decimals: u8) -> String {
        self.deploy("FeeToken", json!([symbol, symbol, decimals.to_string()]))
    }

    /// A contract that emits events for transfers that never happened.
    #[track_caller]
    #[must_use]
    pub fn deploy_forger(&self) -> String {
        self.deploy("ForgedTransfers", json!([]))
    }

    /// A contract that makes several transfers in one transaction, and forwards the native coin.
    #[track_caller]
    #[must_use]
    pub fn deploy_batcher(&self) -> String {
        self.deploy("Batcher", json!([]))
    }

    /// A contract wallet that accepts its owner's signatures (EIP-1271).
    #[track_caller]
    #[must_use]
    pub fn deploy_contract_wallet(&self, owner: &Account) -> String {
        self.deploy("ContractWallet", json!([owner.address()]))
    }

    /// A contract wallet that accepts signatures of 97 bytes (EIP-1271): 32 zeros, and its owner's signature.
    #[track_caller]
    #[must_use]
    pub fn deploy_smart_wallet(&self, owner: &Account) -> String {
        self.deploy("SmartWallet", json!([owner.address()]))
    }

    /// A contract that pays tokens with a given number of empty logs.
    #[track_caller]
    #[must_use]
    pub fn deploy_flooder(&self) -> String {
        self.deploy("Flooder", json!([]))
    }

    /// A contract that reverts every call.
    #[track_caller]
    #[must_use]
    pub fn deploy_reverter(&self) -> String {
        self.deploy("Reverter", json!([]))
    }

    /// Mints tokens.
    #[track_caller]
    pub fn mint(&self, token: &str, to: &str, amount: impl ToString) {
        let mint = Write::new("Token", token, "mint", json!([to, amount.to_string()]));
        self.wait_until_mined(&self.write(&self.account(0), &mint));
    }

    /// Allows `spender`, a relayer or a batcher, to move tokens of `owner`.
    #[track_caller]
    pub fn approve(&self, owner: &Account, token: &str, spender: &str, amount: impl ToString) {
        let approve = Write::new("Token", token, "approve", json!([spender, amount.to_string()]));
        self.wait_until_mined(&self.write(owner, &approve));
    }

    /// A holder's token balance, as a decimal number.
    #[track_caller]
    #[must_use]
    pub fn token_balance(&self, token: &str, holder: &str) -> String {
        text(&self.read("Token", token, "balanceOf", json!([holder])))
    }
}
