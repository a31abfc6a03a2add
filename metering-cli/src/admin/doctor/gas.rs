//! Whether the wallet that executes payments can pay for gas.

use std::collections::BTreeSet;
use std::time::Duration;

use metering_config::server::{Config, PayConfig, Settle};
use metering_evm::{ChainConfig, GasWallet, Wallet};
use metering_pay::offers::{GasFunds, Submitter};
use zeroize::Zeroizing;

use super::findings::Findings;

const CHECK: &str = "gas";
const WAIT: Duration = Duration::from_secs(20);

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    if config.pay.settle != Settle::Own {
        return;
    }
    let sections: BTreeSet<_> = config.pay.offers.iter().map(|offer| &offer.chain).collect();
    for offer in config.pay.offers.iter().filter(|offer| offer.coin_price.is_none()) {
        findings.warning(
            CHECK,
            format_args!(
                "{}: a payment of {} may cost more gas than it is worth, up to {}",
                offer.chain, offer.asset, config.pay.max_fee
            ),
            "set coin_price in pay.offers: what a coin of the chain costs in the token",
        );
    }
    for section in sections {
        let Some(chain) = config.chains.get(section) else { continue };
        match funds(&config.pay, chain).await {
            Ok((wallet, funds)) if funds.is_low() => findings.problem(
                CHECK,
                format_args!("{section}: {wallet} can pay for {} more payments", funds.transactions()),
                "send coins of the chain to this wallet: payments with requests fail without them",
            ),
            Ok((wallet, funds)) => findings
                .ok(CHECK, format_args!("{section}: {wallet} can pay for {} payments or more", funds.transactions())),
            Err(problem) => findings.problem(
                CHECK,
                format_args!("{section}: {problem}"),
                "check pay.gas_key_file, and the chain's rpc_urls",
            ),
        }
    }
}

async fn funds(pay: &PayConfig, chain: &ChainConfig) -> Result<(String, GasFunds), String> {
    let file = pay.gas_key_file.as_ref().ok_or("pay.gas_key_file is not set")?;
    let key = std::fs::read(file).map(Zeroizing::new).map_err(|error| format!("{}: {error}", file.display()))?;
    let wallet = Wallet::from_key_file(&key, None).map_err(|error| format!("{}: {error}", file.display()))?;
    let gas = GasWallet::new(wallet, &chain.rpc_urls, chain.chain_id, chain.request_timeout);
    let gas = gas.map_err(|error| error.to_string())?;
    let funds = tokio::time::timeout(WAIT, gas.funds()).await;
    let funds = funds.map_err(|_| format!("no response within {} s", WAIT.as_secs()))?;
    Ok((gas.wallet().to_string(), funds.map_err(|error| error.to_string())?))
}
