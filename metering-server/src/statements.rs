//! Makes statements off the workers: one at a time per account and only a few overall, since each may read a month of
//! the log.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use metering_core::access::Account;
use metering_core::clock::CalendarPeriod;
use metering_core::wire::{AccountStatementDocument, ErrorCode};
use metering_core::{AccountId, Error, Timestamp};
use metering_proof::StatementError;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::http::Problem;

/// How many statements are built concurrently; others wait.
const AT_ONCE: usize = 2;

/// What makes statements.
#[derive(Debug, Clone)]
pub(crate) struct Statements {
    maker: Arc<metering_proof::Statements>,
    slots: Arc<Semaphore>,
    accounts: Accounts,
}

/// The accounts whose statements are being made.
type Accounts = Arc<Mutex<HashSet<AccountId>>>;

/// The only statement of an account that is being made, until it is dropped.
struct Turn {
    accounts: Accounts,
    account: AccountId,
}

impl Statements {
    pub(crate) fn new(maker: metering_proof::Statements) -> Self {
        Self { maker: Arc::new(maker), slots: Arc::new(Semaphore::new(AT_ONCE)), accounts: Accounts::default() }
    }

    /// A page of an account's statement: the lines after a position.
    ///
    /// # Errors
    /// 404 without a log of that time; 429 while another statement of the account is being made.
    pub(crate) async fn page(
        &self,
        account: Account,
        period: CalendarPeriod,
        after: Option<u64>,
        now: Timestamp,
    ) -> Result<AccountStatementDocument, Problem> {
        let turn = Turn::take(&self.accounts, &account.id)?;
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| Problem::internal())?;
        let (maker, runtime) = (Arc::clone(&self.maker), Handle::current());
        // It runs to completion even if the client disconnects, and keeps its slot until then.
        let made = spawn_blocking(move || {
            let _taken = (turn, slot);
            runtime.block_on(maker.page(&account, period, after, now))
        });
        match made.await {
            Ok(page) => page.map_err(problem),
            Err(error) => {
                tracing::error!(%error, "making a statement failed");
                Err(Problem::internal())
            }
        }
    }
}

impl Turn {
    fn take(accounts: &Accounts, account: &AccountId) -> Result<Self, Problem> {
        let is_first = accounts.lock().unwrap_or_else(PoisonError::into_inner).insert(account.clone());
        if is_first {
            return Ok(Self { accounts: Arc::clone(accounts), account: account.clone() });
        }
        let message = "A statement of this account is being made. Try again when it is done; nothing was charged.";
        Err(Problem::new(ErrorCode::RateLimited, message).retry_after(1))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.account);
    }
}

fn problem(error: StatementError) -> Problem {
    match error {
        StatementError::NoLog
        | StatementError::NoCheckpoint
        | StatementError::BeforeLog(_)
        | StatementError::NotBegun(_)
        | StatementError::Pruned(_) => Problem::new(ErrorCode::StatementNotFound, error.to_string()),
        other => {
            tracing::error!(error = %other, "a statement could not be made");
            Error::StorageUnavailable.into()
        }
    }
}
