//! Account statements: verifies one with the service's keys and a checkpoint of its log, without trusting the service.

mod gap;
mod line;
mod receipts;
mod signed;

use metering_core::access::AccountIdError;
use metering_core::clock::CalendarPeriod;
use metering_core::wire::{
    AccountStateDocument, AccountStatementDocument, StatementGapDocument, StatementLineDocument,
};
use metering_core::{AccountId, Credits, Timestamp};
use metering_log::checkpoint::Checkpoint;
use metering_log::keys::{JwkSet, JwsError};
use metering_log::tree::{ProofError, TreeHash, verify_inclusion};
use serde::{Deserialize, Serialize};

use crate::bundle::ChainHead;
use crate::leaf::{Opening, entry};
use crate::payload::ReceiptPayload;
pub(crate) use gap::gap_of;
pub(crate) use line::ProvenLeaf;
use receipts::Unmatched;
pub(crate) use signed::SignedStatement;

/// An unverified page of a statement, as the service sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccountStatement(AccountStatementDocument);

/// The contents of a verified page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementSummary {
    /// The public URL of the service. The caller must check that the keys belong to this service.
    pub issuer: String,
    /// The account.
    pub account: AccountId,
    /// The day or month.
    pub period: String,
    /// The start of the period, or of the log.
    pub from: Timestamp,
    /// What it lacks of the period before that.
    pub gap: Option<StatementGapDocument>,
    /// Until when postings are in it.
    pub until: Timestamp,
    /// Whether the service states that nothing will be added.
    pub complete: bool,
    /// The origin of the log.
    pub log: String,
    /// The size and the root of the log's tree.
    pub tree: (u64, TreeHash),
    /// The account before the lines; `None` if there are no lines and the service does not say.
    pub opening: Option<ChainHead>,
    /// The lines.
    pub lines: Vec<Opening>,
    /// The account after the lines.
    pub closing: Option<ChainHead>,
    /// The position after which its lines begin; `None` for the first page.
    pub after: Option<u64>,
    /// The position after which the lines of the next page begin; `None` for the last page.
    pub next: Option<u64>,
}

/// Why a statement is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatementFault {
    /// Its signature is damaged, or was not made with a key of the set.
    #[error("the signature of the statement does not verify: {0}")]
    Signature(#[from] JwsError),
    /// The key signed a different kind of statement.
    #[error("what was signed is not the statement of an account")]
    OtherStatement,
    /// It names no account.
    #[error("the statement names no account: {0}")]
    Account(#[from] AccountIdError),
    /// The signed contents differ from the statement.
    #[error("the statement was changed: it is not what was signed")]
    Changed,
    /// It was signed for a different tree from the checkpoint's.
    #[error(
        "the checkpoint is not the one that was signed for the statement: the log showed two histories, or the checkpoint \
         was replaced"
    )]
    OtherCheckpoint,
    /// It contradicts its own period.
    #[error("the statement contradicts its period: {0}")]
    Period(&'static str),
    /// A part of a line cannot be read.
    #[error("line {number} is damaged: its {part} is not valid")]
    Damaged {
        /// The number of the line.
        number: u64,
        /// The part.
        part: &'static str,
    },
    /// A line is about another account.
    #[error("line {0} is about another account")]
    OtherAccount(u64),
    /// Lines are missing.
    #[error("line {expected} is missing: line {found} is in its place")]
    Missing {
        /// The number that should be there.
        expected: u64,
        /// The number that is there.
        found: u64,
    },
    /// The funds are not the sum of the lines.
    #[error("the funds after line {0} are not the previous funds plus its amount")]
    WrongFunds(u64),
    /// The opening or closing balance does not match the lines.
    #[error("the {0} balance does not match the lines")]
    WrongBalance(&'static str),
    /// Two lines have the same position, or positions are not increasing.
    #[error("line {0} is not after the line before it in the log")]
    Order(u64),
    /// A line is not in the log.
    #[error("line {number} is not in the log: {error}")]
    NotInLog {
        /// The number of the line.
        number: u64,
        /// Why.
        error: ProofError,
    },
    /// A page does not continue the previous one.
    #[error("the pages do not belong together: {0}")]
    OtherPage(&'static str),
}

impl AccountStatement {
    /// A page, as a service sends it.
    #[must_use]
    pub fn new(page: AccountStatementDocument) -> Self {
        Self(page)
    }

    /// The signed checkpoint of the log that came with it, for a [`Policy`](metering_log::checkpoint::Policy) to open.
    #[must_use]
    pub fn checkpoint(&self) -> &str {
        &self.0.checkpoint
    }

    /// Its contents, once verified: one of these keys signed it, and this checkpoint's tree contains all of its lines.
    /// The caller must check that the keys belong to the issuer and that the checkpoint is trusted.
    ///
    /// # Errors
    /// When it was not signed with one of them, was changed, or does not match the log.
    pub fn verify(&self, keys: &JwkSet, checkpoint: &Checkpoint) -> Result<StatementSummary, StatementFault> {
        let page = &self.0;
        let signed = SignedStatement::read(&page.signature, keys)?.ok_or(StatementFault::OtherStatement)?;
        let account = page.org_id.parse::<AccountId>()?;
        let (size, root) = (checkpoint.size(), checkpoint.root());
        if (signed.log.as_str(), signed.size, signed.root) != (checkpoint.origin(), size, root) {
            return Err(StatementFault::OtherCheckpoint);
        }
        let lines = self.lines(&account, checkpoint)?;
        let opening = page.opening.as_ref().map(|state| read_state(state, "opening")).transpose()?;
        let closing = page.closing.as_ref().map(|state| read_state(state, "closing")).transpose()?;
        let follows = lines.iter().try_fold(opening, |state, line| after(state, line).map(Some))?;
        if follows != closing {
            return Err(StatementFault::WrongBalance("closing"));
        }
        let expected = SignedStatement::of(page, signed.iss.clone(), signed.iat, checkpoint);
        if expected.as_ref() != Ok(&signed) {
            return Err(StatementFault::Changed);
        }
        check_period(page, &lines, &signed.log)?;
        Ok(StatementSummary {
            issuer: signed.iss,
            account,
            period: page.period.clone(),
            from: page.from,
            gap: page.gap.clone(),
            until: page.until,
            complete: page.complete,
            log: signed.log,
            tree: (size, root),
            opening,
            lines,
            closing,
            after: page.after,
            next: page.next,
        })
    }

    /// The openings of the lines, after checking that each belongs to the account and is in the log.
    fn lines(&self, account: &AccountId, checkpoint: &Checkpoint) -> Result<Vec<Opening>, StatementFault> {
        let mut before = None;
        let checked = self.0.lines.iter().map(|line| {
            if before >= Some(line.position) {
                return Err(StatementFault::Order(line.number));
            }
            before = Some(line.position);
            check(line, account, checkpoint)
        });
        checked.collect()
    }
}

/// Whether its times match the period. `from` may be later than its start: the log may have begun in it.
fn check_period(page: &AccountStatementDocument, lines: &[Opening], log: &str) -> Result<(), StatementFault> {
    let period = page.period.parse::<CalendarPeriod>();
    let period = period.map_err(|_| StatementFault::Period("it names neither a day nor a month"))?;
    if page.from < period.start() || page.from >= period.end() || page.until > period.end() {
        return Err(StatementFault::Period("it begins or ends outside of it"));
    }
    if page.complete && page.until != period.end() {
        return Err(StatementFault::Period("it claims to be complete, but ends before the period does"));
    }
    if lines.iter().any(|line| line.at >= period.end()) {
        return Err(StatementFault::Period("a line has a later time"));
    }
    gap::check(page, period.start(), log, lines).map_err(StatementFault::Period)
}

fn check(
    line: &StatementLineDocument,
    account: &AccountId,
    checkpoint: &Checkpoint,
) -> Result<Opening, StatementFault> {
    let number = line.number;
    let proven = ProvenLeaf::read(line).map_err(|part| StatementFault::Damaged { number, part })?;
    if proven.opening.account != *account {
        return Err(StatementFault::OtherAccount(number));
    }
    let leaf = TreeHash::leaf(&entry(&proven.salt, &proven.opening.to_bytes()));
    verify_inclusion(leaf, proven.position, checkpoint.size(), &proven.path, checkpoint.root())
        .map_err(|error| StatementFault::NotInLog { number, error })?;
    Ok(proven.opening)
}

/// The account after a line, if the line continues it.
fn after(before: Option<ChainHead>, line: &Opening) -> Result<ChainHead, StatementFault> {
    let before = before.ok_or(StatementFault::WrongBalance("opening"))?;
    if line.number != before.leaves {
        return Err(StatementFault::Missing { expected: before.leaves, found: line.number });
    }
    let after = before.after(line.amount).filter(|after| after.funds == line.funds);
    after.ok_or(StatementFault::WrongFunds(line.number))
}

fn read_state(state: &AccountStateDocument, which: &'static str) -> Result<ChainHead, StatementFault> {
    let atoms = state.funds.parse::<i64>().map_err(|_| StatementFault::WrongBalance(which))?;
    Ok(ChainHead { leaves: state.number, funds: Credits::from_atoms(atoms) })
}

impl From<ChainHead> for AccountStateDocument {
    fn from(state: ChainHead) -> Self {
        Self { number: state.leaves, funds: state.funds.atoms().to_string() }
    }
}

impl StatementSummary {
    /// Checks that this page continues another.
    ///
    /// # Errors
    /// When it is not the next page of the same statement.
    pub fn follows(&self, before: &Self) -> Result<(), StatementFault> {
        let of = |page: &Self| (page.issuer.clone(), page.account.clone(), page.period.clone(), page.log.clone());
        if of(self) != of(before) || (self.from, &self.gap) != (before.from, &before.gap) {
            return Err(StatementFault::OtherPage("they belong to different statements"));
        }
        if before.next.is_none() || self.after != before.next || self.opening != before.closing {
            return Err(StatementFault::OtherPage("one is missing, or they are out of order"));
        }
        if self.tree.0 == before.tree.0 && self.tree.1 != before.tree.1 {
            return Err(StatementFault::OtherPage("the log showed two histories of the same size"));
        }
        Ok(())
    }

    /// Receipts that no line covers. That includes receipts from outside the period.
    #[must_use]
    pub fn unmatched<'r>(&self, receipts: impl IntoIterator<Item = &'r ReceiptPayload>) -> Vec<&'r ReceiptPayload> {
        Unmatched::of(&self.account, &self.lines).among(receipts)
    }
}

#[cfg(test)]
mod tests;
