//! Setting a scene: contracts, and who has how many tokens. `tests/chain/contracts` says what each contract is for.
//! All of it is in a block when it returns, and panics when wallet or chain refuse.

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

    /// An ERC-20 that keeps 1 % of each transfer, for account 0. It takes the calls of a plain one.
    #[track_caller]
    #[must_use]
    pub fn deploy_fee_token(&self, symbol: &str, decimals: u8) -> String {
        self.deploy("FeeToken", json!([symbol, symbol, decimals.to_string()]))
    }

    /// A contract that reports transfers that never were.
    #[track_caller]
    #[must_use]
    pub fn deploy_forger(&self) -> String {
        self.deploy("ForgedTransfers", json!([]))
    }

    /// A contract that moves more than once in one transaction, and hands on the native coin.
    #[track_caller]
    #[must_use]
    pub fn deploy_batcher(&self) -> String {
        self.deploy("Batcher", json!([]))
    }

    /// A wallet that is a contract, whose signatures are its owner's (EIP-1271).
    #[track_caller]
    #[must_use]
    pub fn deploy_contract_wallet(&self, owner: &Account) -> String {
        self.deploy("ContractWallet", json!([owner.address()]))
    }

    /// A contract that pays tokens with as many empty logs as it is told to write.
    #[track_caller]
    #[must_use]
    pub fn deploy_flooder(&self) -> String {
        self.deploy("Flooder", json!([]))
    }

    /// A contract that refuses everything.
    #[track_caller]
    #[must_use]
    pub fn deploy_reverter(&self) -> String {
        self.deploy("Reverter", json!([]))
    }

    /// Makes tokens.
    #[track_caller]
    pub fn mint(&self, token: &str, to: &str, amount: impl ToString) {
        let mint = Write::new("Token", token, "mint", json!([to, amount.to_string()]));
        self.settle(&self.write(&self.account(0), &mint));
    }

    /// Lets `spender`, a relayer or a batcher, move tokens of `owner`.
    #[track_caller]
    pub fn approve(&self, owner: &Account, token: &str, spender: &str, amount: impl ToString) {
        let approve = Write::new("Token", token, "approve", json!([spender, amount.to_string()]));
        self.settle(&self.write(owner, &approve));
    }

    /// How many tokens somebody has, as a decimal number.
    #[track_caller]
    #[must_use]
    pub fn token_balance(&self, token: &str, holder: &str) -> String {
        text(&self.read("Token", token, "balanceOf", json!([holder])))
    }
}
