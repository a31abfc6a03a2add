//! Who can read the files with secrets, and whether the files of the store belong to one user.

use std::path::{Path, PathBuf};

use metering_config::server::{Config, Loaded, UpstreamConfig, UsageSinkConfig};

use super::findings::Findings;

const CHECK: &str = "permissions";

pub(super) fn check(file: Option<&Path>, loaded: &Loaded, findings: &mut Findings) {
    let mut checked = secret_files(&loaded.config);
    checked.extend(file.filter(|file| has_secret(file, loaded)).map(Path::to_owned));
    for path in &checked {
        secret_file(path, findings);
    }
    if !checked.is_empty() {
        findings.ok(CHECK, format_args!("{} files with secrets checked", checked.len()));
    }
}

/// The files that the configuration names for secrets.
fn secret_files(config: &Config) -> Vec<PathBuf> {
    let tls = config.tls.as_ref().map(|tls| &tls.key);
    let smtp = config.smtp.as_ref().and_then(|smtp| smtp.password_file.as_ref());
    let pay = [&config.pay.gas_key_file, &config.pay.mpp_secret_file, &config.pay.receipt_key_file];
    let webhooks = [&config.webhooks.secret_file, &config.webhooks.previous_secret_file];
    let otlp = config.otlp.as_ref().map(|otlp| &otlp.authorization_file);
    let stripe = config.stripe.iter().flat_map(|stripe| [&stripe.key_file, &stripe.webhook_secret_file]);
    let oidc = config.console.oidc.as_ref().map(|oidc| &oidc.client_secret_file);
    let more = [
        &config.database_file,
        &config.billing.internal_secret_file,
        &config.billing.payments_secret_file,
        &config.signup.challenge_secret_file,
        &config.signup.turnstile.secret_file,
        &config.pay.facilitator_token_file,
        &config.receipts.key_file,
        &config.log.key_file,
        &config.log.previous_key_file,
    ];
    let others =
        pay.into_iter().chain(webhooks).chain(stripe).chain(oidc).chain(more).chain(otlp).filter_map(Option::as_ref);
    let named = config.gateway.upstreams.iter().flat_map(UpstreamConfig::files);
    let sinks = config.usage.sinks.iter().flat_map(UsageSinkConfig::files);
    let headers = config.gateway.upstream_headers.files().chain(named).chain(sinks).map(Path::to_owned);
    tls.into_iter().chain(smtp).chain(others).cloned().chain(headers).collect()
}

/// Whether a secret is written in the configuration file itself.
fn has_secret(file: &Path, loaded: &Loaded) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    loaded.secret_keys().iter().any(|key| contains(&table, key))
}

fn contains(table: &toml::Table, key: &str) -> bool {
    match key.split_once('.') {
        None => table.contains_key(key),
        Some((first, rest)) => {
            table.get(first).and_then(toml::Value::as_table).is_some_and(|table| contains(table, rest))
        }
    }
}

fn secret_file(path: &Path, findings: &mut Findings) {
    match std::fs::File::open(path).and_then(|file| file.metadata()) {
        Err(error) => {
            let advice = "the server reads this file at its start: make it readable for the server's user";
            findings.problem(CHECK, format_args!("{}: {error}", path.display()), advice);
        }
        Ok(metadata) if is_open(&metadata) => {
            let advice = format!("chmod 600 {0}, or 640 with the server's group", path.display());
            findings.warning(CHECK, format_args!("{} has secrets, and every user can read it", path.display()), advice);
        }
        Ok(_) => {}
    }
}

#[cfg(unix)]
fn is_open(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o007 != 0
}

#[cfg(not(unix))]
fn is_open(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_nested_tables() {
        let table = "[billing]\ninternal_secret = 'x'\n[http]\nmax_body_bytes = 1".parse().unwrap();
        assert!(contains(&table, "billing.internal_secret"));
        for key in ["billing", "http.max_body_bytes"] {
            assert!(contains(&table, key), "{key}");
        }
        for key in ["internal_secret", "billing.other", "http.max_body_bytes.deeper", "smtp.password"] {
            assert!(!contains(&table, key), "{key}");
        }
    }
}
