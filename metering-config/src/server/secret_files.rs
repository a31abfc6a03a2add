//! Secrets that are read from files, not from the configuration: systemd (`LoadCredential`) and container platforms
//! provide them as files.

use std::path::Path;

use toml::Value;

use crate::ConfigError;
use crate::secret_file::read;
use crate::server::upstream_headers::SECTION;
use crate::server::{Config, Secret, UpstreamConfig, UsageSinkConfig, upstreams, usage};

/// Puts the contents of the files where their users look for them.
///
/// # Errors
/// When a file cannot be read or is empty, or a secret is given twice.
pub(super) fn take_in(config: &mut Config) -> Result<(), ConfigError> {
    let Config { billing, console, signup, pay, stripe, gateway, usage, database, database_file, .. } = config;
    gateway.upstream_headers.read_files(SECTION)?;
    gateway.upstreams.iter_mut().try_for_each(UpstreamConfig::read_files)?;
    usage.sinks.iter_mut().try_for_each(UsageSinkConfig::read_files)?;
    fill("billing.internal_secret", &mut billing.internal_secret, billing.internal_secret_file.as_deref())?;
    fill("billing.payments_secret", &mut billing.payments_secret, billing.payments_secret_file.as_deref())?;
    fill("signup.challenge_secret", &mut signup.challenge_secret, signup.challenge_secret_file.as_deref())?;
    let turnstile = &mut signup.turnstile;
    fill("signup.turnstile.secret", &mut turnstile.secret, turnstile.secret_file.as_deref())?;
    fill("pay.facilitator_token", &mut pay.facilitator_token, pay.facilitator_token_file.as_deref())?;
    if let Some(oidc) = &mut console.oidc {
        fill("console.oidc.client_secret", &mut oidc.client_secret, oidc.client_secret_file.as_deref())?;
    }
    if let Some(stripe) = stripe {
        fill("stripe.key", &mut stripe.key, stripe.key_file.as_deref())?;
        fill("stripe.webhook_secret", &mut stripe.webhook_secret, stripe.webhook_secret_file.as_deref())?;
    }
    // A URL takes precedence: a flag or a variable can name another database than the file.
    if let (None, Some(file)) = (&database, database_file) {
        *database = Some(crate::database::read_url(file)?);
    }
    Ok(())
}

fn fill(key: &str, secret: &mut Option<Secret>, file: Option<&Path>) -> Result<(), ConfigError> {
    let Some(file) = file else { return Ok(()) };
    let file_key = format!("{key}_file");
    if secret.is_some() {
        return Err(ConfigError::key(file_key, format_args!("cannot be used together with {key}")));
    }
    *secret = Some(Secret::from(read(&file_key, file)?));
    Ok(())
}

/// Whether the value of a key names files with secrets or a certificate, which may change under the same names.
pub(super) fn names_file(key: &str) -> bool {
    let has_headers = [upstreams::KEY, usage::KEY].contains(&key);
    key.ends_with("_file") || (key.starts_with(SECTION) && key.ends_with(".file")) || has_headers
}

/// The names of those files.
pub(super) fn named_by<'v>(key: &str, value: &'v Value) -> Vec<&'v str> {
    match value {
        Value::String(file) if names_file(key) => vec![file.as_str()],
        Value::Array(tables) if names_file(key) => tables.iter().flat_map(of_headers).collect(),
        _ => Vec::new(),
    }
}

/// The files of the headers of an upstream or a sink.
fn of_headers(table: &Value) -> impl Iterator<Item = &str> {
    let headers = table.get("headers").and_then(Value::as_table);
    headers.into_iter().flat_map(|headers| headers.values()).filter_map(|header| header.get("file")?.as_str())
}
