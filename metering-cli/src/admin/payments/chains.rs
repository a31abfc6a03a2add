//! The chains of a server's configuration, opened for reading.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metering_admin::payments::ReadableChain;
use metering_config::Sources;
use metering_config::server::{CurrencyConfig, ReceiptsConfig};
use metering_core::chains::{Chain, ChainError};
use metering_core::payments::ExchangeRates;
use metering_evm::{ChainConfig, ChainConfigError, EvmReader};
use serde::Deserialize;

use crate::failure::Failure;

/// The chains section of the configuration.
#[derive(Debug, Deserialize)]
struct Sections {
    #[serde(default)]
    chains: BTreeMap<String, ChainConfig>,
}

/// The receipts section.
#[derive(Debug, Deserialize)]
struct ReceiptsSection {
    #[serde(default)]
    receipts: ReceiptsConfig,
}

/// The names of the chains that are configured.
#[derive(Debug, Default)]
pub(in crate::admin) struct Chains {
    /// Those that can be read.
    pub(in crate::admin) readable: Vec<String>,
    /// Those without `rpc_urls`.
    pub(in crate::admin) unreadable: Vec<String>,
}

/// A chain that can be read.
#[derive(Debug)]
pub(in crate::admin) struct OpenChain {
    /// The name of its section.
    name: String,
    chain: Chain,
    reader: EvmReader,
}

/// The chain of that name.
pub(in crate::admin) async fn open_one(sources: &Sources, name: &str) -> Result<OpenChain, Failure> {
    let sections = read(sources)?;
    let location = config_location(sources);
    let Some(config) = sections.get(name) else {
        let names: Vec<&str> = sections.keys().map(String::as_str).collect();
        let there = if names.is_empty() { "no chains".to_owned() } else { names.join(", ") };
        return Err(Failure::NotFound(format!("no chain {name} in {location}; it has {there}")));
    };
    match open(name, config)? {
        Some(chain) => chain.checked().await,
        None => Err(Failure::Failed(format!(
            "cannot read chain {name}: set rpc_urls in its section of {location}, or METERING_CHAINS__{}__RPC_URLS",
            name.to_uppercase()
        ))),
    }
}

/// The names of all chains.
pub(in crate::admin) fn all(sources: &Sources) -> Result<Chains, Failure> {
    let mut chains = Chains::default();
    for (name, config) in read(sources)? {
        let names = if open(&name, &config)?.is_some() { &mut chains.readable } else { &mut chains.unreadable };
        names.push(name);
    }
    chains.if_readable(&config_location(sources))
}

/// The rates in the configuration, for the value of a payment that is assigned. Rates that a server fetches are known
/// only to that server.
pub(in crate::admin) fn rates(sources: &Sources) -> Result<Option<Arc<ExchangeRates>>, Failure> {
    let ReceiptsSection { receipts } = sources.read()?;
    Ok(receipts.currency.as_ref().map(CurrencyConfig::exchange_rates).transpose()?.map(Arc::new))
}

/// The ids of the chains that are configured.
pub(in crate::admin) fn configured_ids(sources: &Sources) -> Result<BTreeSet<u64>, Failure> {
    Ok(read(sources)?.values().map(|config| config.chain_id).collect())
}

impl Chains {
    /// The chains, if at least one can be read. `place` names where they are configured.
    pub(in crate::admin) fn if_readable(self, place: &str) -> Result<Self, Failure> {
        if self.readable.is_empty() {
            return Err(Failure::Failed(format!("no chain in {place} has rpc_urls to read it from")));
        }
        Ok(self)
    }
}

/// Reads the sections of the file, overridden by variables. No message repeats a value: it may contain an RPC key.
fn read(sources: &Sources) -> Result<BTreeMap<String, ChainConfig>, Failure> {
    let Sections { chains } = sources.read()?;
    if chains.is_empty() && sources.file().is_none() {
        let missing = "no chain is configured; name the server's configuration file with --config FILE";
        return Err(Failure::Usage(missing.to_owned()));
    }
    Ok(chains)
}

/// Where the chains are configured, for messages.
pub(in crate::admin) fn config_location(sources: &Sources) -> String {
    sources.file().map_or_else(|| "the environment".to_owned(), |file| file.display().to_string())
}

fn open(name: &str, config: &ChainConfig) -> Result<Option<OpenChain>, Failure> {
    let invalid = |error: ChainConfigError| {
        Failure::Failed(format!("configuration key chains.{name}.{}: {}", error.key, error.problem))
    };
    let reader = config.reader().map_err(invalid)?;
    Ok(reader.map(|reader| OpenChain { name: name.to_owned(), chain: config.chain(name), reader }))
}

impl OpenChain {
    /// The chain, after its sources confirm that they serve it.
    async fn checked(self) -> Result<Self, Failure> {
        self.reader.check().await.map_err(|error| unreadable(&self.name, &error))?;
        Ok(self)
    }

    /// The chain, for the rules of core.
    pub(in crate::admin) fn readable(&self) -> ReadableChain<'_> {
        ReadableChain { name: &self.name, chain: &self.chain, reader: &self.reader }
    }
}

/// The failure for a chain that cannot be read.
pub(super) fn unreadable(name: &str, error: &ChainError) -> Failure {
    Failure::Failed(format!("cannot read chain {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "[chains.base]\nchain_id = 8453\nrecipient = \"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed\"\n";

    fn sections(text: &str, variables: &[(&str, &str)]) -> Result<BTreeMap<String, ChainConfig>, Failure> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("metering.toml");
        std::fs::write(&file, text).unwrap();
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        read(&Sources::new(Some(file), variables)?)
    }

    #[test]
    fn variables_win_over_the_file_and_other_keys_do_not_matter() {
        let text = format!("listen = 5\n[http]\nnonsense = true\n{BASE}rpc_urls = [\"http://127.0.0.1:1\"]\n");
        let variables = [
            ("METERING_CHAINS__BASE__RPC_URLS", "http://127.0.0.1:2,http://127.0.0.1:3"),
            ("METERING_CHAINS__BASE__AGREE", "2"),
            ("METERING_LISTEN", "nowhere"),
            ("METERING_DATA", "/somewhere"),
        ];
        let base = &sections(&text, &variables).unwrap()["base"];
        let urls: Vec<String> = base.rpc_urls.iter().map(ToString::to_string).collect();
        assert_eq!(urls, ["http://127.0.0.1:2/", "http://127.0.0.1:3/"]);
        assert_eq!((base.chain_id, base.agree), (8453, 2));
        assert_eq!(sections(&text, &[]).unwrap()["base"].rpc_urls.len(), 1);
        assert!(sections("listen = \"127.0.0.1:1\"", &[]).unwrap().is_empty());
    }

    #[test]
    fn invalid_settings_are_named_without_secrets() {
        let with = |line: &str| format!("{BASE}{line}\n");
        type Variables = &'static [(&'static str, &'static str)];
        // text, variables, message
        let table: [(String, Variables, &str); 6] = [
            (with("rpc_urls = [https://rpc.example.com/secretkey]"), &[], "line 4"),
            (with("rpc_urls = \"wss://rpc.example.com/secretkey\""), &[], "chains.base.rpc_urls"),
            (with("rpc_url = \"https://rpc.example.com/secretkey\""), &[], "unknown field `rpc_url`"),
            (with(""), &[("METERING_CHAINS__BASE__RPC_URLS", "secretkey")], "chains.base.rpc_urls"),
            (with("finality = \"soon\""), &[], "chains.base.finality"),
            ("[chains.base]\nchain_id = 1\n".to_owned(), &[], "chains.base.recipient"),
        ];
        for (text, variables, expected) in table {
            let message = sections(&text, variables).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!message.contains("secretkey"), "{message}");
        }
    }
}
