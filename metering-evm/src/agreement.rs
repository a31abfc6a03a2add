//! Decides what to believe from the responses of several sources. Pure functions, tested without any source.

use std::cmp::Reverse;

use metering_core::chains::{
    AccountCode, BlockHash, ChainError, Depth, Evidence, Heights, PendingTransaction, TransactionStatus, TxHash,
};
use metering_pay::offers::{Asset, Spendable};

use crate::block_time::BlockTime;
use crate::poll::{PollState, SourceResponse};

/// The identical evidence of one or more sources, with each one's depth, which may differ.
#[derive(Debug)]
struct EvidenceGroup<'a> {
    evidence: &'a Evidence,
    depths: Vec<Depth>,
}

/// Whether the sources' sightings so far are sufficient.
pub(crate) fn state(agree: usize, responses: &[SourceResponse<TransactionStatus>]) -> PollState {
    match agreed_status(agree, responses) {
        Some(Ok(TransactionStatus::Mined(evidence))) if evidence.depth.is_enough() => PollState::Final,
        // Not final: a source that has stopped syncing also reports that a transaction is unknown or has too few
        // confirmations.
        Some(Ok(_)) => PollState::Sufficient,
        Some(Err(_)) | None => PollState::Open,
    }
}

/// What to believe of the transaction if at least `agree` sources responded; `None` if fewer did.
///
/// It is mined if `agree` sources give the same evidence, at the depth that `agree` of them report. It is pending if
/// `agree` sources know it, and unknown if `agree` sources do not know it. Everything else is disagreement.
pub(crate) fn agreed_status(
    agree: usize,
    responses: &[SourceResponse<TransactionStatus>],
) -> Option<Result<TransactionStatus, ChainError>> {
    let groups = groups(responses);
    let mut believed = groups.iter().filter(|group| group.depths.len() >= agree);
    if let (Some(group), None) = (believed.next(), believed.next()) {
        let depth = depth(agree, &group.depths);
        return Some(Ok(TransactionStatus::Mined(Evidence { depth, ..group.evidence.clone() })));
    }
    if groups.len() > 1 {
        return Some(Err(disagreement(responses)));
    }
    if responses.len() < agree {
        return None;
    }
    let required = responses.iter().filter_map(|response| match &response.value {
        TransactionStatus::Unknown => None,
        TransactionStatus::Pending { required, .. } => Some(*required),
        TransactionStatus::Mined(evidence) => Some(evidence.depth.required),
    });
    let known: Vec<u64> = required.collect();
    if known.len() >= agree {
        let required = known.into_iter().max().unwrap_or(1);
        return Some(Ok(TransactionStatus::Pending { required, transaction: pending(agree, responses) }));
    }
    if responses.len() - known.len() >= agree {
        return Some(Ok(TransactionStatus::Unknown));
    }
    Some(Err(disagreement(responses)))
}

/// What the transaction will do, if at least `agree` sources report the same and none contradicts them.
fn pending(agree: usize, responses: &[SourceResponse<TransactionStatus>]) -> Option<Box<PendingTransaction>> {
    let shown = responses.iter().filter_map(|response| match &response.value {
        TransactionStatus::Pending { transaction, .. } => transaction.as_ref(),
        TransactionStatus::Unknown | TransactionStatus::Mined(_) => None,
    });
    let shown: Vec<_> = shown.collect();
    let alike = shown.windows(2).all(|pair| pair[0] == pair[1]);
    shown.first().filter(|_| alike && shown.len() >= agree).map(|transaction| (*transaction).clone())
}

/// Groups the responses by their evidence, with the depth that each source reports.
fn groups(responses: &[SourceResponse<TransactionStatus>]) -> Vec<EvidenceGroup<'_>> {
    let mut groups: Vec<EvidenceGroup<'_>> = Vec::new();
    for response in responses {
        let TransactionStatus::Mined(evidence) = &response.value else { continue };
        match groups.iter_mut().find(|group| same_but_depth(group.evidence, evidence)) {
            Some(group) => group.depths.push(evidence.depth),
            None => groups.push(EvidenceGroup { evidence, depths: vec![evidence.depth] }),
        }
    }
    groups
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
pub(crate) fn heights(agree: usize, responses: &[SourceResponse<Heights>]) -> Option<Heights> {
    let height = |of: fn(&Heights) -> u64| {
        let mut heights: Vec<u64> = responses.iter().map(|response| of(&response.value)).collect();
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
pub(crate) fn confirmations(agree: usize, responses: &[SourceResponse<BlockTime>]) -> Option<BlockTime> {
    let mut measured: Vec<BlockTime> = responses.iter().map(|response| response.value).collect();
    measured.sort_unstable_by_key(|measured| measured.confirmations);
    measured.get(agree.checked_sub(1)?).copied()
}

/// The block hash that at least `agree` sources give at each of `count` heights; `None` where they do not agree or the
/// chain has no such block.
pub(crate) fn hashes(
    agree: usize,
    count: usize,
    responses: &[SourceResponse<Vec<Option<BlockHash>>>],
) -> Vec<Option<BlockHash>> {
    let at = |index: usize| {
        let given: Vec<_> =
            responses.iter().filter_map(|response| response.value.get(index).copied().flatten()).collect();
        let votes = |hash: &BlockHash| given.iter().filter(|other| *other == hash).count();
        given.iter().find(|hash| votes(hash) >= agree).copied()
    };
    (0..count).map(at).collect()
}

/// The response that at least `agree` sources give.
pub(crate) fn common<T: Clone + PartialEq>(agree: usize, responses: &[SourceResponse<T>]) -> Option<T> {
    let count = |value: &T| responses.iter().filter(|response| response.value == *value).count();
    responses.iter().map(|response| &response.value).find(|value| count(value) >= agree).cloned()
}

/// The response that at least `agree` sources give, if sources give it only once something has happened. `before` is
/// what they say until then; it counts only if no other response does, since lagging sources say it too.
pub(crate) fn newest<T: Clone + PartialEq>(agree: usize, before: &T, responses: &[SourceResponse<T>]) -> Option<T> {
    let after: Vec<_> = responses.iter().filter(|response| response.value != *before).cloned().collect();
    common(agree, &after).or_else(|| common(agree, responses))
}

/// The error when sources contradict each other: what each of them says.
pub(crate) fn disagreement<T: Describe>(responses: &[SourceResponse<T>]) -> ChainError {
    let each: Vec<_> =
        responses.iter().map(|response| format!("{} says {}", response.host, response.value.describe())).collect();
    ChainError::Disagreement(each.join("; "))
}

/// Describes a response in a few words.
pub(crate) trait Describe {
    fn describe(&self) -> String;
}

impl Describe for TransactionStatus {
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

impl Describe for Option<[u8; 32]> {
    fn describe(&self) -> String {
        self.map_or_else(|| "no code".to_owned(), |hash| format!("code with the hash 0x{}…", hex::encode(&hash[..4])))
    }
}

impl Describe for Option<u8> {
    fn describe(&self) -> String {
        self.map_or_else(|| "none".to_owned(), |number| number.to_string())
    }
}

impl Describe for Option<TxHash> {
    fn describe(&self) -> String {
        self.map_or_else(|| "that there is none".to_owned(), |hash| format!("that it is {hash}"))
    }
}

impl Describe for Spendable {
    fn describe(&self) -> String {
        let Self { balance, allowance } = self;
        format!("that the wallet has {} units, of which Permit2 may transfer {}", balance.get(), allowance.get())
    }
}

impl Describe for Option<Asset> {
    fn describe(&self) -> String {
        match self {
            None => "that there is no such token".to_owned(),
            Some(Asset { domain, decimals }) => {
                format!("that it is {:?}, version {:?}, with {decimals} decimals", domain.name, domain.version)
            }
        }
    }
}

#[cfg(test)]
mod tests;
