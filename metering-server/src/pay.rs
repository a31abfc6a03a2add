//! Payable 402s: sets up who executes payments, reads the tokens that are offered, and takes over payments whose
//! process has ended. `gas` watches the wallets that pay for them.

mod gas;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use metering_config::ConfigError;
use metering_core::chains::{Address, ChainError};
use metering_evm::{ChainConfig, GasWallet, HttpFacilitator, Wallet};
use metering_pay::offers::{Offer, OfferError, Offers, PaymentLimit, RevertLimits, StatementSigner, TokenReader};
use metering_pay::wire::mpp::{ChallengeSecret, Realm};
use metering_pay::{ChallengeSettings, OfferChain, OfferSettings, Settler, SignedPayments};
use url::{Host, Url};
use zeroize::Zeroizing;

use crate::chains::Readers;
use crate::config::{Config, OfferConfig, PayConfig, Settle};
use crate::did::{Did, JwsSigner};
use crate::http::Shutdown;
pub(crate) use gas::{GasState, GasWatch};

/// How often to look for payments whose process has ended.
const TAKE_OVER_EVERY: Duration = Duration::from_secs(15);
/// How long to wait before reading the tokens again, after that failed.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// The ends of names that are not on the internet.
const LOCAL_NAMES: [&str; 4] = [".localhost", ".local", ".internal", ".test"];
/// The decimals of a chain's coin.
const COIN_DECIMALS: u8 = 18;

/// Why offers cannot be made.
#[derive(Debug, thiserror::Error)]
enum OfferProblem {
    #[error("the token's contract cannot be read: {0}")]
    Chain(#[from] ChainError),
    #[error("there is no token with signed authorizations (EIP-3009) at {0}")]
    NoToken(Address),
    #[error("coin_price has more decimal places than the token at {0}")]
    CoinPrice(Address),
    #[error(transparent)]
    Amount(#[from] OfferError),
}

/// Offers whose tokens were not read yet.
#[derive(Debug)]
pub(crate) struct Unread(Vec<UnreadOffer>);

#[derive(Debug)]
struct UnreadOffer {
    tokens: Arc<dyn TokenReader>,
    pay_to: Address,
    terms: OfferConfig,
    /// The wallet that executes its payments; `None` if a facilitator does.
    gas: Option<Arc<GasWallet>>,
}

/// The settings of a service that offers payments, without the offers: for those, the tokens' contracts must be read.
/// `None` if it offers none. `public_url` is where clients reach it.
///
/// # Errors
/// When a key file or a URL is not valid.
pub(crate) fn prepare(
    config: &Config,
    readers: &Readers,
    public_url: &str,
    limit: Arc<dyn PaymentLimit>,
) -> Result<Option<(OfferSettings, Unread)>, ConfigError> {
    let pay = &config.pay;
    if pay.settle == Settle::Off {
        return Ok(None);
    }
    let (mut chains, mut unread) = (BTreeMap::<u64, OfferChain>::new(), Vec::new());
    let mut wallets = BTreeMap::new();
    for terms in &pay.offers {
        let problem = |text: &dyn fmt::Display| ConfigError::key(format!("chains.{}", terms.chain), text);
        let Some(chain) = config.chains.get(&terms.chain) else { continue };
        let tokens: Arc<dyn TokenReader> = match chains.get(&chain.chain_id) {
            Some(known) => Arc::clone(&known.tokens),
            None => {
                let tokens = chain.reader().map_err(|error| problem(&error))?;
                let Some((tokens, reader)) = tokens.zip(readers.get(&chain.chain_id)) else {
                    return Err(problem(&"needs rpc_urls, because pay.offers names it"));
                };
                let (tokens, reader) = (Arc::new(tokens), Arc::clone(reader));
                let (settler, gas) = settler(pay, chain)?;
                wallets.extend(gas.map(|gas| (chain.chain_id, gas)));
                chains.insert(chain.chain_id, OfferChain { reader, tokens: Arc::clone(&tokens) as _, settler });
                tokens
            }
        };
        let gas = wallets.get(&chain.chain_id).cloned();
        unread.push(UnreadOffer { tokens, pay_to: chain.recipient, terms: terms.clone(), gas });
    }
    let settings = OfferSettings {
        chains,
        confirmations: pay.confirmations,
        wait: pay.wait.duration(),
        poll: pay.poll.duration(),
        replace_after: pay.replace_after.duration(),
        keyless: pay.keyless,
        usage: pay.upto,
        contract_wallets: pay.contract_wallets,
        reverts: RevertLimits { per_chain: pay.max_reverts, ..RevertLimits::default() },
        limit: Some(limit),
        challenges: challenges(pay, public_url)?,
        signer: signer(config, public_url)?,
        ..OfferSettings::default()
    };
    Ok(Some((settings, Unread(unread))))
}

/// Who executes payments on a chain: a facilitator, or a wallet of this server.
fn settler(pay: &PayConfig, chain: &ChainConfig) -> Result<(Settler, Option<Arc<GasWallet>>), ConfigError> {
    if let Some(url) = &pay.facilitator {
        let facilitator = HttpFacilitator::new(url).map_err(|error| ConfigError::key("pay.facilitator", error))?;
        let facilitator = match &pay.facilitator_token {
            Some(token) => facilitator.with_token(token.expose()),
            None => Ok(facilitator),
        };
        let facilitator = facilitator.map_err(|error| ConfigError::key("pay.facilitator_token", error))?;
        return Ok((Settler::Facilitator(Arc::new(facilitator)), None));
    }
    let wallet = gas_key(pay)?;
    let invalid = |error: &dyn fmt::Display| ConfigError::key("pay.gas_key_file", error);
    let gas = GasWallet::new(wallet, &chain.rpc_urls, chain.chain_id, chain.request_timeout);
    let limit = pay.max_fee.tokens().to_units(COIN_DECIMALS);
    let limit = limit.ok_or_else(|| ConfigError::key("pay.max_fee", "has at most 18 decimal places"))?;
    let gas = gas.map_err(|error| invalid(&error))?.with_fee_limit(limit).with_gas_limit(pay.max_gas);
    let gas = Arc::new(gas);
    Ok((Settler::Own(Arc::clone(&gas) as _), Some(gas)))
}

fn gas_key(pay: &PayConfig) -> Result<Wallet, ConfigError> {
    let key = "pay.gas_key_file";
    let Some(file) = &pay.gas_key_file else { return Err(ConfigError::key(key, "is required")) };
    Wallet::from_key_file(&content(key, file)?, None).map_err(|error| ConfigError::key(key, error))
}

/// Who signs offers and receipts: a wallet, or else the key of receipts of requests.
fn signer(config: &Config, public_url: &str) -> Result<Option<Arc<dyn StatementSigner>>, ConfigError> {
    let key = "pay.receipt_key_file";
    let Some(file) = &config.pay.receipt_key_file else {
        let signing = config.receipts.keys()?.zip(Did::of(public_url));
        let signer = signing.map(|(ring, did)| JwsSigner::new(&did, ring.signing().clone()));
        return Ok(signer.map(|signer| Arc::new(signer) as Arc<dyn StatementSigner>));
    };
    let wallet = Wallet::from_key_file(&content(key, file)?, None).map_err(|error| ConfigError::key(key, error))?;
    tracing::info!(signer = %wallet.address().to_checksummed(), "signing offers and receipts of payments with requests");
    Ok(Some(Arc::new(wallet)))
}

fn content(key: &str, file: &Path) -> Result<Zeroizing<Vec<u8>>, ConfigError> {
    let content = std::fs::read(file).map(Zeroizing::new);
    content.map_err(|error| ConfigError::key(key, format_args!("{}: {error}", file.display())))
}

/// The secret of MPP challenges. Nodes with the same configuration accept each other's challenges. `None` without a
/// secret, and where clients would send credentials over the internet without TLS, which the draft forbids.
fn challenges(pay: &PayConfig, public_url: &str) -> Result<Option<ChallengeSettings>, ConfigError> {
    let (key, file) = match (&pay.mpp_secret_file, &pay.gas_key_file) {
        (Some(file), _) => ("pay.mpp_secret_file", file),
        (None, Some(file)) => ("pay.gas_key_file", file),
        (None, None) => return Ok(None),
    };
    let content = content(key, file)?;
    let secret = match pay.mpp_secret_file {
        Some(_) => ChallengeSecret::new(content.trim_ascii()),
        None => ChallengeSecret::derived_from(&same_key(&content)),
    };
    let secret = secret.map_err(|error| ConfigError::key(key, error))?;
    let url = Url::parse(public_url).ok();
    if url.as_ref().is_some_and(is_plain_and_public) {
        tracing::warn!("clients of MPP get no challenges, because public_url is plain HTTP; set an https URL");
        return Ok(None);
    }
    let host = url.and_then(|url| url.host_str().map(str::to_owned));
    let realm: Option<Realm> = host.and_then(|host| host.parse().ok());
    let realm =
        realm.ok_or_else(|| ConfigError::key("public_url", "must have a host name of at most 255 characters"))?;
    Ok(Some(ChallengeSettings { secret, realm }))
}

/// Whether clients reach this URL over the internet, without TLS.
fn is_plain_and_public(url: &Url) -> bool {
    let is_public = match url.host() {
        Some(Host::Ipv4(ip)) => !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()),
        Some(Host::Ipv6(ip)) => {
            !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified())
        }
        Some(Host::Domain(name)) => name.contains('.') && !LOCAL_NAMES.iter().any(|end| name.ends_with(end)),
        None => false,
    };
    url.scheme() == "http" && is_public
}

/// The digits of a private key, for files that write the same key in different ways.
fn same_key(content: &[u8]) -> Zeroizing<Vec<u8>> {
    let digits = Zeroizing::new(content.trim_ascii().to_ascii_lowercase());
    Zeroizing::new(digits.strip_prefix(b"0x").unwrap_or(&digits).to_vec())
}

/// Reads the tokens, makes the offers, and then takes over payments whose process has ended, until the server stops.
/// Also watches the wallets that pay gas.
pub(crate) async fn run(payments: Arc<SignedPayments>, unread: Unread, gas: Arc<GasWatch>, shutdown: Shutdown) {
    tokio::join!(gas.run(&payments, &shutdown), take_over(&payments, &unread, &shutdown));
}

async fn take_over(payments: &SignedPayments, unread: &Unread, shutdown: &Shutdown) {
    tokio::select! {
        () = offer(payments, unread) => {}
        () = shutdown.cancelled() => return,
    }
    loop {
        match payments.settle_authorizations().await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "went on with payments of another process"),
            Err(error) => tracing::error!(%error, "could not look for unfinished payments"),
        }
        tokio::select! {
            () = tokio::time::sleep(TAKE_OVER_EVERY) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

async fn offer(payments: &SignedPayments, unread: &Unread) {
    loop {
        match unread.read().await {
            Ok(offers) => {
                tracing::info!(count = offers.iter().count(), "offering payments with requests");
                return payments.offer(offers);
            }
            Err(problem) => tracing::error!(%problem, "payments with requests cannot be offered yet; trying again"),
        }
        tokio::time::sleep(READ_AGAIN_AFTER).await;
    }
}

impl Unread {
    async fn read(&self) -> Result<Offers, OfferProblem> {
        let mut offers = Vec::new();
        for UnreadOffer { tokens, pay_to, terms, gas } in &self.0 {
            let token = tokens.asset(terms.asset).await?.ok_or(OfferProblem::NoToken(terms.asset))?;
            if let (Some(gas), Some(price)) = (gas, terms.coin_price) {
                let units = price.tokens().to_units(token.decimals);
                gas.set_coin_price(terms.asset, units.ok_or(OfferProblem::CoinPrice(terms.asset))?);
            }
            for amount in terms.amounts.iter() {
                let rate = terms.credits_per_unit.tokens().value();
                offers.push(Offer::new(token.clone(), *pay_to, amount.tokens(), rate)?);
            }
        }
        Ok(Offers::new(offers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_core::chains::{Address, TokenDomain};
    use metering_core::clock::Timestamp;
    use metering_core::payments::TokenAmount;
    use metering_pay::offers::Asset;
    use metering_pay::wire::mpp::{Challenge, ChallengeTerms};

    /// The id of a challenge that is otherwise always the same.
    fn id(pay: &PayConfig, public_url: &str) -> String {
        let settings = challenges(pay, public_url).unwrap().unwrap();
        let domain = TokenDomain { name: "USDC".into(), version: "2".into(), chain_id: 1, contract: Address::ZERO };
        let asset = Asset { domain, decimals: 6 };
        let offer = Offer::new(asset, Address::ZERO, TokenAmount::parse("1").unwrap(), 1.into()).unwrap();
        let expires = Timestamp::from_unix_millis(0);
        let terms = ChallengeTerms { key: None, unique: "", expires, own_header: false };
        Challenge::new(&settings.secret, &settings.realm, &offer, terms).id().to_owned()
    }

    #[test]
    fn plain_http_on_the_internet_gets_no_challenges() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "s".repeat(32)).unwrap();
        let pay = PayConfig { mpp_secret_file: Some(file.path().to_owned()), ..PayConfig::default() };
        // public_url, whether there are challenges
        let table = [
            ("https://api.example.com", true),
            ("http://api.example.com", false),
            ("http://203.0.113.7:8787", false),
            ("http://[2001:db8::1]", false),
            ("http://127.0.0.1:8787", true),
            ("http://0.0.0.0:8787", true),
            ("http://[::1]", true),
            ("http://192.168.1.7", true),
            ("http://[fd00::7]", true),
            ("http://localhost:8787", true),
            ("http://metering:8787", true),
            ("http://api.localhost", true),
            ("http://metering.internal", true),
        ];
        for (url, expected) in table {
            assert_eq!(challenges(&pay, url).unwrap().is_some(), expected, "{url}");
        }
    }

    #[test]
    fn nodes_agree_on_challenges_if_they_have_the_same_secret_and_host() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            Some(path)
        };
        let digits = "ab".repeat(32);
        let of_gas = |file| PayConfig { gas_key_file: file, ..PayConfig::default() };
        let one = of_gas(file("one", &digits));
        let url = "https://api.example";
        let expected = id(&one, url);
        for same in [format!("0x{digits}\n"), digits.to_uppercase()] {
            assert_eq!(id(&of_gas(file("same", &same)), "https://api.example:443/v1"), expected, "{same}");
        }
        assert_ne!(id(&one, "https://other.example"), expected);
        assert_ne!(id(&of_gas(file("other", &"cd".repeat(32))), url), expected);
        let own = PayConfig { mpp_secret_file: file("secret", &"s".repeat(32)), ..one.clone() };
        assert_ne!(id(&own, url), expected);
        let facilitated = PayConfig { gas_key_file: None, ..own.clone() };
        assert_eq!(id(&facilitated, url), id(&own, url), "it comes first");
        // Without a secret, nothing is offered; a bad one is refused.
        assert!(challenges(&PayConfig::default(), url).unwrap().is_none());
        let short = PayConfig { mpp_secret_file: file("short", "too short\n"), ..one };
        let error = challenges(&short, url).unwrap_err().to_string();
        assert!(error.contains("pay.mpp_secret_file") && error.contains("32 bytes"), "{error}");
        assert!(challenges(&own, "nowhere").is_err());
    }
}
