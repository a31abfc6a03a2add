//! Whether the chains can be read: from each source, and whether the sources agree.

use std::time::Duration;

use metering_config::server::Config;
use metering_core::chains::{Address, BlockHash, ChainError, ChainReader};
use metering_core::{Clock, SystemClock};
use metering_evm::{ChainConfig, EvmReader, RpcUrl, SourceLimits};

use super::findings::Findings;

const CHECK: &str = "chain";
const WAIT: Duration = Duration::from_secs(20);
/// Every chain in use makes blocks far more often than this.
const STALE: i64 = 10 * 60;
/// By how much the clocks of chains and machines may differ. Ethereum's blocks carry the time of their slot.
const AHEAD: i64 = 60;
/// How much older than another's the newest block of a source may be.
const BEHIND: i64 = 60;

/// What a source showed.
struct Seen<'a> {
    url: &'a RpcUrl,
    reader: EvmReader,
    block: u64,
    /// When its newest block was made, in seconds since 1970.
    time: i64,
}

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    for (section, chain) in &config.chains {
        if chain.rpc_urls.is_empty() {
            findings.warning(
                CHECK,
                format_args!("{section}: no rpc_urls: plans are listed, but cannot be bought"),
                format_args!("set chains.{section}.rpc_urls, better to two URLs of different providers"),
            );
            continue;
        }
        if let Err(error) = chain.validate() {
            findings.problem(CHECK, format_args!("{section}: {error}"), "correct this key");
            continue;
        }
        let tokens = config.pay.offers.iter().filter(|offer| offer.chain == *section).map(|offer| offer.asset);
        check_sources(section, chain, &tokens.collect::<Vec<_>>(), findings).await;
    }
}

async fn check_sources(section: &str, chain: &ChainConfig, tokens: &[Address], findings: &mut Findings) {
    let needed = usize::try_from(chain.agree).unwrap_or(usize::MAX);
    let mut seen: Vec<Seen<'_>> = Vec::new();
    let mut failures = Vec::new();
    for (index, url) in chain.rpc_urls.iter().enumerate() {
        match look(chain, index, url).await {
            Ok(source) => seen.push(source),
            Err(problem) => failures.push(problem),
        }
    }
    let enough = seen.len() >= needed;
    for problem in failures {
        let found = format!("{section}: {problem}");
        match enough {
            true => findings.warning(CHECK, found, "the other sources are enough; correct or replace this one"),
            false => unreadable(section, found, findings),
        }
    }
    let newest = seen.iter().map(|source| source.time).max().unwrap_or_default();
    let now = SystemClock.now().unix_seconds();
    let lag = |source: &Seen<'_>| newest - source.time;
    let can_spare = seen.iter().filter(|source| lag(source) <= BEHIND).count() >= needed;
    for source in &seen {
        let host = format!("{section}: {}", source.url.host());
        judge(&host, source.block, now - source.time, (lag(source), can_spare), findings);
    }
    for source in &seen {
        check_limits(section, chain, tokens, source, findings).await;
    }
    if let Some(found) = contradiction(&seen).await {
        let advice = "one of them is on a fork, or lies: compare with a block explorer, remove it from rpc_urls, and look \
                      for its payments with `metering admin payments records`";
        findings.problem(CHECK, format_args!("{section}: {found}"), advice);
    }
}

/// Queries a single source.
async fn look<'a>(chain: &ChainConfig, index: usize, url: &'a RpcUrl) -> Result<Seen<'a>, String> {
    let alone = chain.with_source(index).ok_or_else(|| format!("{}: no such source", url.host()))?;
    let reader = alone.reader().map_err(|error| error.to_string())?;
    let reader = reader.ok_or_else(|| format!("{}: no URL", url.host()))?;
    let asked = async {
        reader.check().await?;
        let block = reader.heights().await?.newest;
        Ok::<_, ChainError>((block, reader.newest_block_time().await?))
    };
    match tokio::time::timeout(WAIT, asked).await {
        Ok(Ok((block, seconds))) => Ok(Seen { url, reader, block, time: i64::try_from(seconds).unwrap_or(i64::MAX) }),
        Ok(Err(error @ ChainError::WrongChain { .. })) => Err(format!("{}: {error}", url.host())),
        // It counts the sources that responded first, so it does not judge a single one.
        Ok(Err(ChainError::Unavailable(why))) => Err(why.split_once(": ").map_or(&*why, |(_, why)| why).to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("{}: no response within {} s", url.host(), WAIT.as_secs())),
    }
}

/// Finds two sources that report different blocks at a height that all have reached and that is deep enough to agree
/// on.
async fn contradiction(seen: &[Seen<'_>]) -> Option<String> {
    let mut deepest = u64::MAX;
    for source in seen {
        deepest = deepest.min(source.reader.heights().await.ok()?.confirmed);
    }
    let mut hashes: Vec<(String, BlockHash)> = Vec::new();
    for source in seen {
        // A source that does not respond now is a separate finding on the next run.
        if let Ok(Some(hash)) =
            source.reader.block_hashes(&[deepest]).await.map(|hashes| hashes.first().copied().flatten())
        {
            hashes.push((source.url.host(), hash));
        }
    }
    let (first, hash) = hashes.first()?;
    let (other, _) = hashes.iter().find(|(_, other)| other != hash)?;
    Some(format!("{first} and {other} have different blocks at height {deepest}"))
}

/// Sends a batch and a search as large as the server's. The server adapts to a source that accepts less.
async fn check_limits(
    section: &str,
    chain: &ChainConfig,
    tokens: &[Address],
    source: &Seen<'_>,
    findings: &mut Findings,
) {
    // The limit is the same for an address without logs.
    let own = [chain.recipient];
    let tokens = if tokens.is_empty() { &own } else { tokens };
    let host = source.url.host();
    let limits = match tokio::time::timeout(WAIT, source.reader.try_limits(chain.recipient, tokens)).await {
        Ok(Ok(limits)) => limits,
        Ok(Err(error)) => {
            let advice = "payments cannot be found with this source alone; ask its provider, or replace it in rpc_urls";
            return findings.warning(
                CHECK,
                format_args!("{section}: {host}: a search for logs failed: {error}"),
                advice,
            );
        }
        Err(_) => {
            let found = format!("{section}: {host}: a search for logs took more than {} s", WAIT.as_secs());
            return findings.warning(
                CHECK,
                found,
                format_args!("set chains.{section}.log_blocks_max to a smaller number"),
            );
        }
    };
    for SourceLimits { batch_calls, log_blocks, .. } in limits {
        if let Some(blocks) = log_blocks {
            findings.warning(
                CHECK,
                format_args!("{section}: {host}: takes about {blocks} blocks in one search for logs (eth_getLogs)"),
                format_args!(
                    "it is asked for fewer by itself; chains.{section}.log_blocks_max saves the refused requests"
                ),
            );
        }
        if let Some(calls) = batch_calls {
            findings.warning(
                CHECK,
                format_args!("{section}: {host}: takes batches of {calls} calls at most"),
                "batches are split by themselves, and cost more requests; ask the provider for larger ones",
            );
        }
    }
}

fn unreadable(section: &str, found: String, findings: &mut Findings) {
    let advice = format!(
        "payments on it are credited once it can be read again; check chains.{section}.rpc_urls, or add the URL of \
         another provider"
    );
    findings.problem(CHECK, found, advice);
}

/// Judges the age of a source's newest block, its lag behind another one, and whether that other one is enough.
fn judge(source: &str, block: u64, age: i64, (lag, can_spare): (i64, bool), findings: &mut Findings) {
    if age > STALE {
        let found = format!("{source}: the newest block, {block}, is {age} s old");
        findings.problem(CHECK, found, "the chain or this node has stopped: compare with a block explorer");
    } else if age < -AHEAD {
        let found = format!("{source}: the newest block, {block}, is {} s in the future", -age);
        findings.problem(CHECK, found, "the clock of this machine is slow: check NTP");
    } else if lag > BEHIND {
        let found = format!("{source}: the newest block, {block}, is {lag} s older than another source's");
        let advice = "this node lags behind: replace it in rpc_urls by one of another provider";
        match can_spare {
            true => findings.warning(CHECK, found, advice),
            false => findings.problem(CHECK, found, format_args!("payments wait for it; {advice}")),
        }
    } else {
        findings.ok(CHECK, format_args!("{source}: block {block}, {} s old", age.max(0)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::State;
    use super::*;

    #[test]
    fn sources_that_stand_still_or_lag_and_slow_clocks_are_noticed() {
        // age, lag and whether others are enough, state
        let table = [
            (0, (0, true), State::Ok),
            (STALE, (0, true), State::Ok),
            (STALE + 1, (0, true), State::Problem),
            (-AHEAD, (0, true), State::Ok),
            (-AHEAD - 1, (0, true), State::Problem),
            (BEHIND, (BEHIND, true), State::Ok),
            (BEHIND + 1, (BEHIND + 1, true), State::Warning),
            (BEHIND + 1, (BEHIND + 1, false), State::Problem),
        ];
        for (age, lag, state) in table {
            let mut findings = Findings::default();
            judge("base: rpc.example.com", 7, age, lag, &mut findings);
            assert_eq!(findings.of(CHECK).first().map(|(state, _)| *state), Some(state), "{age} {lag:?}");
        }
    }
}
