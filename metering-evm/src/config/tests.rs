use super::*;

const MINIMAL: &str = "chain_id = 1\nrecipient = \"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed\"\n";

fn section(more: &str) -> Result<ChainConfig, String> {
    toml::from_str(&format!("{MINIMAL}{more}")).map_err(|error| error.message().to_owned())
}

#[test]
fn a_minimal_section_gets_the_defaults() {
    let config = section("").unwrap();
    assert_eq!((config.confirmations, config.finality), (None, None));
    assert_eq!((config.agree, config.attempts, config.watch, config.watch_from_block), (1, 3, None, None));
    assert_eq!(config.request_timeout, Duration::from_secs(5));
    assert!(config.reader().unwrap().is_none(), "without URLs there is no reader");
    let chain = config.chain("mainnet");
    assert_eq!((chain.chain_id, chain.name.as_str(), chain.confirmations), (1, "mainnet", 2));
    assert_eq!(chain.public_rpc_url, "");
    assert_eq!(chain.explorer_url, "https://etherscan.io", "of a well-known chain");
    let own = section("explorer_url = \"https://scan.example.com\"").unwrap();
    assert_eq!(own.chain("mainnet").explorer_url, "https://scan.example.com");
    assert_eq!(section("explorer_url = \"\"").unwrap().chain("mainnet").explorer_url, "");
}

#[test]
fn urls_come_as_a_list_or_as_one_text() {
    // value of the key, number of URLs
    let table = [
        (r#"["https://a.example.com/k", "https://b.example.com"]"#, 2),
        (r#"" https://a.example.com/k , https://b.example.com ,""#, 2),
        (r#""https://a.example.com/k""#, 1),
        (r#""""#, 0),
        ("[]", 0),
    ];
    for (value, count) in table {
        assert_eq!(section(&format!("rpc_urls = {value}")).unwrap().rpc_urls.len(), count, "{value}");
    }
}

#[test]
fn blocks_of_logs_are_one_number_or_one_for_each_source() {
    let urls = "rpc_urls = \"https://a.example.com,https://b.example.com\"\n";
    // value of the key, blocks of each source
    let table = [
        ("500", [Some(500), Some(500)]),
        ("[500]", [Some(500), Some(500)]),
        ("[500, 7]", [Some(500), Some(7)]),
        ("\"500, 7\"", [Some(500), Some(7)]),
        ("[]", [None, None]),
    ];
    for (value, blocks) in table {
        let config = section(&format!("{urls}log_blocks_max = {value}")).unwrap();
        config.validate().unwrap();
        assert_eq!([0, 1].map(|index| config.log_blocks_max(index)), blocks, "{value}");
        let alone = config.with_source(1).unwrap();
        alone.validate().unwrap();
        assert_eq!((alone.rpc_urls.len(), alone.log_blocks_max(0)), (1, blocks[1]), "{value}");
    }
    assert!(section(urls).unwrap().with_source(2).is_none());
}

#[test]
fn every_key_is_read_and_shown_without_secrets() {
    let config = section(
        r#"
        name = "Main"
        rpc_urls = ["https://user:hidden-password@a.example.com/hidden-path?k=hidden-query"]
        public_rpc_url = "https://public.example.com/rpc"
        confirmations = "safe"
        finality = "finalized"
        agree = 1
        request_timeout = "1s 500ms"
        attempts = 7
        watch = true
        watch_from_block = 100
        not_before = 90
        "#,
    )
    .unwrap();
    config.validate().unwrap();
    assert_eq!(config.request_timeout, Duration::from_millis(1500));
    assert_eq!((config.attempts, config.watch, config.watch_from_block), (7, Some(true), Some(100)));
    assert_eq!(config.not_before, Some(metering_core::payments::NotBefore::Block(90)));
    let chain = config.chain("mainnet");
    assert_eq!((chain.name.as_str(), chain.confirmations), ("Main", 32));
    let shown = format!("{config:?} {}", toml::to_string(&config).unwrap());
    assert!(!shown.contains("hidden"), "{shown}");
    assert!(shown.contains("https://a.example.com/…") && shown.contains("1s 500ms"), "{shown}");
    let reader = config.reader().unwrap().unwrap();
    assert!(!format!("{reader:?}").contains("hidden"));
}

#[test]
fn readable_chain_is_watched_by_default() {
    let urls = "rpc_urls = \"https://a.example.com\"\n";
    // section, whether it is watched
    let table = [(String::new(), false), (urls.to_owned(), true), (format!("{urls}watch = false"), false)];
    for (lines, watched) in table {
        assert_eq!(section(&lines).unwrap().is_watched(), watched, "{lines}");
    }
}

#[test]
fn unreadable_values_are_refused() {
    // line, part of the message
    let table = [
        ("confirmations = 0", "a number of confirmations from 1"),
        ("confirmations = \"latest\"", "\"safe\" or \"finalized\""),
        ("rpc_urls = [\"wss://a.example.com/hidden\"]", "must be an http:// or https:// URL"),
        ("rpc_urls = \"hidden\"", "must be an http:// or https:// URL"),
        ("rpc_urls = 7", "a list of URLs"),
        ("finality = \"latest\"", "\"safe\" or \"finalized\""),
        ("finality = 0", "a number of confirmations from 1"),
        ("request_timeout = \"soon\"", "duration such as 5s"),
        ("agree = -1", "invalid value"),
        ("log_blocks_max = true", "a number of blocks, or a list"),
    ];
    for (line, message) in table {
        let error = section(line).unwrap_err();
        assert!(error.contains(message), "{line}: {error}");
        assert!(!error.contains("hidden"), "{error}");
    }
}

#[test]
fn invalid_values_are_refused_with_their_key() {
    let two = "rpc_urls = \"https://a.example.com/hidden,https://b.example.com/hidden\"";
    let twice = "rpc_urls = \"https://a.example.com/hidden,https://a.example.com/hidden\"";
    // lines, key
    let table = [
        (twice, "rpc_urls"),
        (&*format!("{two}\nagree = 0"), "agree"),
        (&*format!("{two}\nagree = 3"), "agree"),
        ("request_timeout = \"0s\"", "request_timeout"),
        ("attempts = 0", "attempts"),
        (&*format!("{two}\nlog_blocks_max = 0"), "log_blocks_max"),
        (&*format!("{two}\nlog_blocks_max = [1, 2, 3]"), "log_blocks_max"),
        ("watch = true", "watch"),
        ("confirmations = 13\nfinality = 12", "confirmations"),
        ("public_rpc_url = \"public.example.com\"", "public_rpc_url"),
        ("public_rpc_url = \"https://me:hidden@public.example.com\"", "public_rpc_url"),
        ("explorer_url = \"scan.example.com\"", "explorer_url"),
    ];
    for (lines, key) in table {
        let config = section(lines).unwrap();
        let error = config.validate().unwrap_err();
        assert_eq!(error.key, key, "{lines}");
        assert_eq!(config.reader().unwrap_err(), error);
        assert!(error.to_string().starts_with(key) && !error.to_string().contains("hidden"), "{error}");
    }
    let good = section(&format!("{two}\nagree = 2")).unwrap();
    good.validate().unwrap();
    assert_eq!(ChainConfig { chain_id: 0, ..good.clone() }.validate().unwrap_err().key, "chain_id");
    assert_eq!(ChainConfig { chain_id: u64::MAX, ..good.clone() }.validate().unwrap_err().key, "chain_id");
    assert_eq!(ChainConfig { recipient: Address::ZERO, ..good }.validate().unwrap_err().key, "recipient");
}
