//! The section `[pay]`: what it reads, and each reason to refuse it.

use super::*;
use crate::server::Config;

const ASSET: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const CHAIN: &str = "[chains.base-sepolia]\nchain_id = 84532\nrpc_urls = ['http://127.0.0.1:1']\n\
                     recipient = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'\n";
const OFFER: &str = "[[pay.offers]]\nchain = 'base-sepolia'\nasset = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'\n\
                     amounts = ['0.05', '0.5']\ncredits_per_unit = '1'\n";
const OWN: &str = "settle = 'self'\ngas_key_file = '/etc/metering/gas.key'\n";

fn config(pay: &str) -> Config {
    toml::from_str(&format!("{CHAIN}[pay]\n{pay}")).unwrap()
}

/// What is wrong with the section.
#[track_caller]
fn refused(config: &Config) -> String {
    config.pay.check(config).expect_err("it should be refused").to_string()
}

#[test]
fn nothing_is_offered_by_default() {
    let config: Config = toml::from_str("").unwrap();
    assert_eq!((config.pay.settle, config.pay.offers.len()), (Settle::Off, 0));
    config.pay.check(&config).unwrap();
}

#[test]
fn section_of_the_documentation_is_read() {
    let config = config(&format!("{OWN}{OFFER}"));
    config.pay.check(&config).unwrap();
    let [offer] = &config.pay.offers[..] else { panic!("{:?}", config.pay) };
    let amounts: Vec<_> = offer.amounts.iter().map(ToString::to_string).collect();
    assert_eq!((amounts, offer.asset), (vec!["0.05".to_owned(), "0.5".to_owned()], ASSET.parse().unwrap()));
    let pay = &config.pay;
    assert_eq!((pay.settle, pay.confirmations, pay.keyless), (Settle::Own, 1, true));
    // What --print-config prints can be read again.
    let printed = toml::to_string(pay).unwrap();
    let again: PayConfig = toml::from_str(&printed).unwrap();
    assert_eq!(toml::to_string(&again).unwrap(), printed);
}

#[test]
fn facilitator_needs_its_url_and_hides_its_token() {
    let facilitator = "settle = 'facilitator'\nfacilitator = 'https://x402.example'\nfacilitator_token = 'hush'\n";
    let config = config(&format!("{facilitator}{OFFER}"));
    config.pay.check(&config).unwrap();
    assert!(!format!("{config:?}{}", toml::to_string(&config).unwrap()).contains("hush"));
}

#[test]
fn sections_that_do_not_fit_are_refused() {
    let facilitator = "settle = 'facilitator'\nfacilitator = 'https://x402.example'\n";
    let offer = |from: &str, to: &str| format!("{OWN}{}", OFFER.replace(from, to));
    // the section, the key of the error, a part of it
    let table = [
        (OFFER.to_owned(), "pay.settle", "with \"off\", nothing can be offered"),
        (OWN.to_owned(), "pay.offers", "is required"),
        (format!("{OWN}max_gas = 21000\n{OFFER}"), "pay.max_gas", "at least 60000"),
        (format!("{OWN}max_reverts = 0\n{OFFER}"), "pay.max_reverts", "at least 1"),
        (format!("settle = 'self'\n{OFFER}"), "pay.gas_key_file", "is required"),
        (format!("{OWN}facilitator = 'https://x402.example'\n{OFFER}"), "pay.facilitator", "\"facilitator\""),
        (format!("settle = 'facilitator'\n{OFFER}"), "pay.facilitator", "is required"),
        (format!("{facilitator}gas_key_file = 'gas.key'\n{OFFER}"), "pay.gas_key_file", "\"self\""),
        (format!("{facilitator}upto = true\n{OFFER}"), "pay.upto", "\"self\""),
        (format!("{OWN}upto = true\nkeyless = false\n{OFFER}"), "pay.upto", "pay.keyless"),
        (format!("{OWN}confirmations = 0\n{OFFER}"), "pay.confirmations", "at least 1"),
        (offer("'base-sepolia'", "'base'"), "pay.offers", "there is no section [chains.base]"),
        (offer(ASSET, &Address::ZERO.to_string()), "pay.offers", "a token's contract"),
        (offer("['0.05', '0.5']", "[]"), "pay.offers", "amounts must not be empty"),
    ];
    for (pay, key, problem) in table {
        let error = refused(&config(&pay));
        assert!(error.starts_with(&format!("configuration key {key}: ")) && error.contains(problem), "{pay}: {error}");
    }
}

#[test]
fn heads_must_have_room_for_payments() {
    let with = |bytes: usize| -> Config {
        let config = config(&format!("{OWN}{OFFER}"));
        Config { http: crate::server::HttpConfig { max_header_bytes: bytes, ..config.http.clone() }, ..config }
    };
    assert!(refused(&with(16_383)).starts_with("configuration key http.max_header_bytes: must be at least 16384"));
    with(16_384).pay.check(&with(16_384)).unwrap();
    with(Config::default().http.max_header_bytes).pay.check(&with(32_768)).unwrap();
}

#[test]
fn chain_without_rpc_urls_is_refused() {
    let toml = format!("{}[pay]\n{OWN}{OFFER}", CHAIN.replace("rpc_urls = ['http://127.0.0.1:1']\n", ""));
    let error = refused(&toml::from_str(&toml).unwrap());
    assert_eq!(error, "configuration key pay.offers: chains.base-sepolia needs rpc_urls");
}

#[test]
fn amounts_are_exact_decimals_above_zero() {
    // the text in the file, the amount
    let table =
        [("'0.05'", Some("0.05")), ("3", Some("3")), ("'0'", None), ("'-1'", None), ("'x'", None), ("0.05", None)];
    for (text, expected) in table {
        let section = format!("chain = 'c'\nasset = '{ASSET}'\namounts = ['1']\ncredits_per_unit = {text}\n");
        let read = toml::from_str::<OfferConfig>(&section).ok().map(|offer| offer.credits_per_unit.to_string());
        assert_eq!(read.as_deref(), expected, "{text}");
    }
}
