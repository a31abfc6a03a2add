//! Whether the chains can be read, serve the configured chain, and make progress.

use std::time::Duration;

use metering_config::server::Config;
use metering_core::chains::{ChainError, ChainReader};
use metering_core::{Clock, SystemClock};
use metering_evm::EvmReader;

use super::findings::Findings;

const CHECK: &str = "chain";
const WAIT: Duration = Duration::from_secs(20);
/// Every chain in use makes blocks far more often than this.
const STALE: i64 = 10 * 60;
/// By how much the clocks of chains and machines may differ. Ethereum's blocks carry the time of their slot.
const AHEAD: i64 = 60;

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    for (section, chain) in &config.chains {
        match chain.reader() {
            Ok(Some(reader)) => match tokio::time::timeout(WAIT, look(&reader)).await {
                Ok(Ok((block, time))) => judge(section, block, SystemClock.now().unix_seconds() - time, findings),
                Ok(Err(error)) => unreadable(section, &error, findings),
                Err(_) => unreadable(section, &format!("no response within {} s", WAIT.as_secs()), findings),
            },
            Ok(None) => findings.warning(
                CHECK,
                format_args!("{section}: no rpc_urls: plans are listed, but cannot be bought"),
                format_args!("set chains.{section}.rpc_urls, better to two URLs of different providers"),
            ),
            Err(error) => findings.problem(CHECK, format_args!("{section}: {error}"), "correct this key"),
        }
    }
}

/// The newest block's number and time, in seconds since 1970.
async fn look(reader: &EvmReader) -> Result<(u64, i64), ChainError> {
    reader.check().await?;
    let newest = reader.heights().await?.newest;
    let seconds = reader.newest_block_time().await?;
    Ok((newest, i64::try_from(seconds).unwrap_or(i64::MAX)))
}

fn unreadable(section: &str, error: &dyn std::fmt::Display, findings: &mut Findings) {
    let advice = format!(
        "payments on it are credited once it can be read again; check chains.{section}.rpc_urls, or add the URL of \
         another provider"
    );
    findings.problem(CHECK, format_args!("{section}: {error}"), advice);
}

fn judge(section: &str, block: u64, age: i64, findings: &mut Findings) {
    if age > STALE {
        let found = format!("{section}: the newest block, {block}, is {age} s old");
        findings.problem(CHECK, found, "the chain or its RPC nodes stand still: compare with a block explorer");
    } else if age < -AHEAD {
        let found = format!("{section}: the newest block, {block}, is {} s in the future", -age);
        findings.problem(CHECK, found, "the clock of this machine is slow: check NTP");
    } else {
        findings.ok(CHECK, format_args!("{section}: block {block}, {} s old", age.max(0)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::State;
    use super::*;

    #[test]
    fn chains_that_stand_still_and_slow_clocks_are_noticed() {
        for (age, state) in [
            (0, State::Ok),
            (STALE, State::Ok),
            (STALE + 1, State::Problem),
            (-AHEAD, State::Ok),
            (-AHEAD - 1, State::Problem),
        ] {
            let mut findings = Findings::default();
            judge("base", 7, age, &mut findings);
            assert_eq!(findings.of(CHECK).first().map(|(state, _)| *state), Some(state), "{age}");
        }
    }
}
