//! The configuration file of the packages has every key of the schema, with its default or an example that is valid.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser;
use metering_server::config::{Arguments, Config, load};
use toml::{Table, Value};

const FILE: &str = include_str!("../../../deploy/debian/metering.toml");

/// Folders of files that are read when the configuration is loaded.
const FOLDERS: [&str; 3] = ["/etc/", "/run/credentials/", "/var/lib/metering-log/"];

/// Tables whose keys are not those of the schema: names of headers, and symbols of tokens.
const FREE: [&str; 4] =
    ["gateway.upstream_headers", "gateway.upstreams.headers", "usage.sinks.headers", "receipts.currency.rates"];

/// Tables that can be repeated.
const REPEATED: [&str; 3] = ["pay.offers", "gateway.upstreams", "usage.sinks"];

/// Without the `#` of keys and sections. Comments for people have a space after it.
fn uncommented() -> String {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|first: char| first.is_ascii_lowercase() || first == '[') => rest.to_owned(),
        _ => line.to_owned(),
    };
    FILE.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Loads a configuration, with files where it names them.
pub(crate) fn loaded(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let mut placed = text.to_owned();
    for path in text.split('"').filter(|part| FOLDERS.iter().any(|folder| part.starts_with(folder))) {
        let file = folder.path().join(Path::new(path).file_name().unwrap());
        std::fs::write(&file, content(path)).unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        placed = placed.replace(&format!("\"{path}\""), &format!("{file:?}"));
    }
    let file = folder.path().join("configuration.toml");
    std::fs::write(&file, placed).unwrap();
    let arguments = Arguments::try_parse_from(["metering-server", "--config", file.to_str().unwrap()]).unwrap();
    load(&arguments, []).map(|loaded| loaded.config).map_err(|error| error.to_string())
}

/// What a file may hold, by its name.
fn content(path: &str) -> &'static str {
    match path {
        _ if path.ends_with(".svg") => "<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
        // The key before, during a rotation: that of RFC 8032, section 7.1, test 1.
        _ if path.contains("/log-") => {
            "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
             -----END PRIVATE KEY-----\n"
        }
        // That of RFC 8410, section 10.3.
        _ if path.ends_with(".pem") || path.ends_with("receipt-keys") => {
            "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
             -----END PRIVATE KEY-----\n"
        }
        _ => "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    }
}

/// The keys of the schema below `section`, found by what an unknown key's error suggests.
pub(crate) fn keys(section: &str, found: &mut BTreeSet<String>) -> bool {
    let header = match section {
        "" => String::new(),
        _ if REPEATED.contains(&section) => format!("[[{section}]]\n"),
        _ => format!("[{section}]\n"),
    };
    // Where any key is fine, keys are not those of the schema.
    let Err(error) = toml::from_str::<Config>(&format!("{header}nonsense = 1")) else { return false };
    let error = error.to_string();
    let Some((_, expected)) = error.split_once("unknown field `nonsense`, expected ") else { return false };
    for key in expected.lines().next().unwrap().split('`').skip(1).step_by(2) {
        let key = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
        let below = if key == "chains" { "chains.base" } else { &key };
        if !keys(below, found) {
            found.insert(key);
        }
    }
    true
}

fn flatten(prefix: &str, table: &Table, found: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(table) if !FREE.contains(&key.as_str()) => flatten(&key, table, found),
            Value::Array(tables) if REPEATED.contains(&key.as_str()) => {
                tables.iter().for_each(|table| flatten(&key, table.as_table().unwrap(), found));
            }
            value => found.push((key, value.clone())),
        }
    }
}

fn values(text: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    flatten("", &text.parse().unwrap(), &mut found);
    found
}

#[test]
fn file_has_every_key_of_the_schema() {
    let mut schema = BTreeSet::new();
    assert!(keys("", &mut schema));
    assert!(schema.len() > 120 && schema.contains("signup.turnstile.secret"), "{schema:?}");
    let file: BTreeSet<_> = values(&uncommented()).into_iter().map(|(key, _)| key).collect();
    let missing: Vec<_> = schema.difference(&file).collect();
    assert!(missing.is_empty(), "deploy/debian/metering.toml lacks {missing:?}");
    let unknown: Vec<_> = file.difference(&schema).collect();
    assert!(unknown.is_empty(), "deploy/debian/metering.toml has {unknown:?}");
}

#[test]
fn file_as_shipped_only_sets_the_data_folder() {
    let set = values(FILE);
    assert_eq!(set, [("data".to_owned(), Value::from("/var/lib/metering"))]);
    assert_eq!(loaded(FILE).unwrap().data, PathBuf::from("/var/lib/metering"));
}

#[test]
fn commented_values_are_the_defaults() {
    let all = values(&uncommented());
    let defaults = Table::try_from(Config::default()).unwrap();
    let shown = Table::try_from(toml::from_str::<Config>(&uncommented()).unwrap()).unwrap();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    flatten("", &defaults, &mut before);
    flatten("", &shown, &mut after);
    for (key, default) in before {
        let shown = after.iter().find(|(found, _)| *found == key);
        let example = ["data", "pay.offers", "operator.address", "gateway.upstream_headers"].contains(&key.as_str());
        assert!(example || shown.is_some_and(|(_, value)| *value == default), "{key}: {shown:?}, default {default}");
    }
    assert!(all.len() > 120, "{}", all.len());
}

/// Keys that exclude each other.
const EITHER: [(&str, &str); 16] = [
    ("[console.oidc]", "client_secret = "),
    ("[billing]", "internal_secret = "),
    ("[billing]", "payments_secret = "),
    ("[stripe]", "key = "),
    ("[stripe]", "webhook_secret = "),
    ("[signup]", "challenge_secret = "),
    ("[signup.turnstile]", "secret = "),
    ("[pay]", "facilitator_token_file = "),
    ("[otlp]", "authorization = "),
    ("[smtp]", "password = "),
    ("[webhooks]", "secret = "),
    ("[webhooks]", "previous_secret = "),
    ("[pay]", "facilitator = "),
    ("[pay]", "facilitator_token = "),
    ("[receipts.currency]", "url = "),
    ("[receipts.currency]", "file = "),
];

#[test]
fn every_value_is_valid_and_all_of_them_together() {
    let (all, mut kept) = (uncommented(), Vec::new());
    let mut section = "";
    for line in all.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let excluded = EITHER.iter().any(|(of, key)| *of == section && line.starts_with(key));
        if !excluded {
            kept.push(line);
        }
    }
    let paid = |text: &str| text.replace("settle = \"off\"", "settle = \"self\"");
    let config = loaded(&paid(&kept.join("\n"))).unwrap();
    assert_eq!(config.chains["base"].chain_id, 8453);
    assert!(config.tls.is_some() && config.smtp.is_some());
    // What was left out is excluded by the other, and by nothing else.
    let error = loaded(&paid(&all)).unwrap_err();
    assert!(error.contains("password") || error.contains("secret"), "{error}");
}
