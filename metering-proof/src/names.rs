//! The meaning of the numbers in bundles: accounts, with the salts of their leaves, and usage lines.

use std::collections::HashMap;

use metering_core::store::{LogEpoch, LogSecret};
use metering_core::{AccountId, UsageLine};

use crate::salt::AccountSalts;

/// The names of an epoch that were looked up.
#[derive(Debug)]
pub struct Names {
    epoch: u32,
    secret: LogSecret,
    accounts: HashMap<u32, (AccountId, AccountSalts)>,
    lines: HashMap<u32, UsageLine>,
}

/// A number in a bundle is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnknownName {
    /// An account's.
    #[error("no account has the number {0} in the log")]
    Account(u32),
    /// A usage line's.
    #[error("no usage line has the number {0} in the log")]
    Line(u32),
}

impl Names {
    /// How many accounts are remembered.
    const ACCOUNTS_MAX: usize = 65_536;

    /// An epoch without any names yet.
    #[must_use]
    pub fn new(epoch: &LogEpoch) -> Self {
        let (epoch, secret) = (epoch.number, epoch.secret.clone());
        Self { epoch, secret, accounts: HashMap::new(), lines: HashMap::new() }
    }

    /// The epoch's number.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Adds an account by its log number.
    pub fn add_account(&mut self, number: u32, id: &AccountId) {
        self.accounts.entry(number).or_insert_with(|| (id.clone(), AccountSalts::new(&self.secret, id)));
    }

    /// Adds a usage line by its log number.
    pub fn add_line(&mut self, number: u32, line: UsageLine) {
        self.lines.insert(number, line);
    }

    /// Forgets accounts when there are many.
    pub fn trim(&mut self) {
        if self.accounts.len() > Self::ACCOUNTS_MAX {
            self.accounts.clear();
        }
    }

    /// The account with a log number, and the salts of its leaves.
    ///
    /// # Errors
    /// When the account was not added.
    pub fn account(&self, number: u32) -> Result<&(AccountId, AccountSalts), UnknownName> {
        self.accounts.get(&number).ok_or(UnknownName::Account(number))
    }

    /// The usage line with a log number.
    ///
    /// # Errors
    /// When the usage line was not added.
    pub fn line(&self, number: u32) -> Result<&UsageLine, UnknownName> {
        self.lines.get(&number).ok_or(UnknownName::Line(number))
    }
}
