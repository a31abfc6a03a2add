//! Decides what to believe from the responses of several sources. Pure functions, tested without any source.

use std::cmp::Reverse;

use metering_core::{AccountCode, BlockHash, ChainError, Depth, Evidence, Heights, PendingTransaction, Sighting};

use crate::block_time::BlockTime;
use crate::poll::{Said, Standing};

/// The identical evidence of one or more sources, with each one's depth, which may differ.
#[derive(Debug)]
struct Account<'a> {
    evidence: &'a Evidence,
    depths: Vec<Depth>,
}

/// Whether the sources' sightings so far are sufficient.
pub(crate) fn standing(agree: usize, said: &[Said<Sighting>]) -> Standing {
    match verdict(agree, said) {
        Some(Ok(Sighting::Mined(evidence))) if evidence.depth.is_enough() => Standing::Final,
        // Not final: a source that has stopped syncing also says that a transaction is unknown or not deep enough.
        Some(Ok(_)) => Standing::Sufficient,
        Some(Err(_)) | None => Standing::Open,
    }
}

/// What to believe of the transaction if at least `agree` sources responded; `None` if fewer did.
///
/// It is mined if `agree` sources give the same evidence, at the depth that `agree` of them report. It is pending if
/// `agree` sources know it, and unknown if `agree` sources do not know it. Everything else is disagreement.
pub(crate) fn verdict(agree: usize, said: &[Said<Sighting>]) -> Option<Result<Sighting, ChainError>> {
    let accounts = accounts(said);
    let mut believed = accounts.iter().filter(|account| account.depths.len() >= agree);
    if let (Some(account), None) = (believed.next(), believed.next()) {
        let depth = depth(agree, &account.depths);
        return Some(Ok(Sighting::Mined(Evidence { depth, ..account.evidence.clone() })));
    }
    if accounts.len() > 1 {
        return Some(Err(disagreement(said)));
    }
    if said.len() < agree {
        return None;
    }
    let required = said.iter().filter_map(|said| match &said.answer {
        Sighting::Unknown => None,
        Sighting::Pending { required, .. } => Some(*required),
        Sighting::Mined(evidence) => Some(evidence.depth.required),
    });
    let known: Vec<u64> = required.collect();
    if known.len() >= agree {
        let required = known.into_iter().max().unwrap_or(1);
        return Some(Ok(Sighting::Pending { required, transaction: pending(agree, said) }));
    }
    if said.len() - known.len() >= agree {
        return Some(Ok(Sighting::Unknown));
    }
    Some(Err(disagreement(said)))
}

/// What the transaction will do, if at least `agree` sources say the same and none contradicts them.
fn pending(agree: usize, said: &[Said<Sighting>]) -> Option<Box<PendingTransaction>> {
    let shown = said.iter().filter_map(|said| match &said.answer {
        Sighting::Pending { transaction, .. } => transaction.as_ref(),
        Sighting::Unknown | Sighting::Mined(_) => None,
    });
    let shown: Vec<_> = shown.collect();
    let alike = shown.windows(2).all(|pair| pair[0] == pair[1]);
    shown.first().filter(|_| alike && shown.len() >= agree).map(|transaction| (*transaction).clone())
}

/// Groups the responses by their evidence, with the depth that each source reports.
fn accounts(said: &[Said<Sighting>]) -> Vec<Account<'_>> {
    let mut accounts: Vec<Account<'_>> = Vec::new();
    for said in said {
        let Sighting::Mined(evidence) = &said.answer else { continue };
        match accounts.iter_mut().find(|account| same_but_depth(account.evidence, evidence)) {
            Some(account) => account.depths.push(evidence.depth),
            None => accounts.push(Account { evidence, depths: vec![evidence.depth] }),
        }
    }
    accounts
}

fn same_but_depth(one: &Evidence, other: &Evidence) -> bool {
    let Evidence { succeeded, block, depth: _, native, transfers } = one;
    (succeeded, block, native, transfers) == (&other.succeeded, &other.block, &other.native, &other.transfers)
}

/// The depth that at least `agree` sources report or exceed, relative to the required depth.
fn depth(agree: usize, depths: &[Depth]) -> Depth {
    let mut depths = depths.to_vec();
    depths.sort_by_key(|depth| Reverse(i128::from(depth.confirmations) - i128::from(depth.required)));
    depths.get(agree - 1).copied().expect("the caller has checked that there are at least `agree` depths")
}

/// The heights that at least `agree` sources have reached; `None` if fewer responded.
pub(crate) fn heights(agree: usize, said: &[Said<Heights>]) -> Option<Heights> {
    let height = |of: fn(&Heights) -> u64| {
        let mut heights: Vec<u64> = said.iter().map(|said| of(&said.answer)).collect();
        heights.sort_unstable_by_key(|height| Reverse(*height));
        heights.get(agree.checked_sub(1)?).copied()
    };
    Some(Heights {
        newest: height(|heights| heights.newest)?,
        confirmed: height(|heights| heights.confirmed)?,
        finalized: height(|heights| heights.finalized)?,
    })
}

/// The smallest number of confirmations that at least `agree` sources consider enough, so fewer than `agree` liars
/// cannot lower it; `None` if too few responded.
pub(crate) fn confirmations(agree: usize, said: &[Said<BlockTime>]) -> Option<BlockTime> {
    let mut measured: Vec<BlockTime> = said.iter().map(|said| said.answer).collect();
    measured.sort_unstable_by_key(|measured| measured.confirmations);
    measured.get(agree.checked_sub(1)?).copied()
}

/// The block hash that at least `agree` sources give at each of `count` heights; `None` where they do not agree or the
/// chain has no such block.
pub(crate) fn hashes(agree: usize, count: usize, said: &[Said<Vec<Option<BlockHash>>>]) -> Vec<Option<BlockHash>> {
    let at = |place: usize| {
        let given: Vec<_> = said.iter().filter_map(|said| said.answer.get(place).copied().flatten()).collect();
        let votes = |hash: &BlockHash| given.iter().filter(|other| *other == hash).count();
        given.iter().find(|hash| votes(hash) >= agree).copied()
    };
    (0..count).map(at).collect()
}

/// The response that at least `agree` sources give.
pub(crate) fn common<T: Copy + PartialEq>(agree: usize, said: &[Said<T>]) -> Option<T> {
    let count = |answer: T| said.iter().filter(|said| said.answer == answer).count();
    said.iter().map(|said| said.answer).find(|answer| count(*answer) >= agree)
}

/// The error when sources contradict each other: what each of them says.
pub(crate) fn disagreement<T: Describe>(said: &[Said<T>]) -> ChainError {
    let each: Vec<_> = said.iter().map(|said| format!("{} says {}", said.host, said.answer.describe())).collect();
    ChainError::Disagreement(each.join("; "))
}

/// Describes a response in a few words.
pub(crate) trait Describe {
    fn describe(&self) -> String;
}

impl Describe for Sighting {
    fn describe(&self) -> String {
        match self {
            Self::Unknown => "that it is unknown".to_owned(),
            Self::Pending { .. } => "that it is not in a block yet".to_owned(),
            Self::Mined(Evidence { succeeded, block, transfers, .. }) => format!(
                "that it {} in block {} (0x{}…) with {} token transfers",
                if *succeeded { "succeeded" } else { "failed" },
                block.number,
                hex::encode(&block.hash[..4]),
                transfers.len(),
            ),
        }
    }
}

impl Describe for bool {
    fn describe(&self) -> String {
        if *self { "yes".to_owned() } else { "no".to_owned() }
    }
}

impl Describe for AccountCode {
    fn describe(&self) -> String {
        match self {
            Self::Empty => "no code".to_owned(),
            Self::Delegated => "a delegation".to_owned(),
            Self::Contract => "a contract".to_owned(),
        }
    }
}

impl Describe for Option<u8> {
    fn describe(&self) -> String {
        self.map_or_else(|| "none".to_owned(), |number| number.to_string())
    }
}

#[cfg(test)]
mod tests;
