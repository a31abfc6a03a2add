//! Whether the certificate of `[tls]` can be used, for which names, and for how long.

use std::net::{Ipv4Addr, Ipv6Addr};

use metering_config::server::{CertificateFiles, Config};
use metering_core::{Clock, SystemClock};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::time::Time;

use super::findings::Findings;

const CHECK: &str = "certificate";
const DAY: i64 = 86_400;
/// Programs that renew certificates do so when a third of 90 days is left. With less than this, they have failed.
const RENEWED_BY: i64 = 21 * DAY;

pub(super) fn check(config: &Config, findings: &mut Findings) {
    let Some(tls) = &config.tls else { return };
    let advice = "name a certificate chain and its key, both PEM files; the server does not start without them";
    let certified = match CertificateFiles::read(tls).and_then(|files| files.certified()) {
        Ok(certified) => certified,
        Err(error) => return findings.problem(CHECK, error, advice),
    };
    let first = certified.cert.first().map(|first| Certificate::from_der(first));
    let Some(Ok(certificate)) = first else {
        return findings.problem(CHECK, "the first certificate cannot be read", advice);
    };
    let now = SystemClock.now().unix_seconds();
    let valid = &certificate.tbs_certificate.validity;
    let seconds = |time: Time| i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
    validity(now, seconds(valid.not_before), seconds(valid.not_after), findings);
    let host = config.public_url.as_deref().and_then(|url| url::Url::parse(url).ok());
    if let Some(host) = host.as_ref().and_then(url::Url::host_str) {
        names(host, &alternative_names(&certificate), findings);
    }
}

fn validity(now: i64, from: i64, until: i64, findings: &mut Findings) {
    let renew = "renew it; the server notices the new files by itself";
    let days = (until - now) / DAY;
    if now < from {
        let advice = "check the clock of this machine, or wait; clients refuse it until then";
        findings.problem(CHECK, "not valid yet", advice);
    } else if now >= until {
        findings.problem(CHECK, "expired: clients refuse it", renew);
    } else if until - now < RENEWED_BY {
        findings.warning(CHECK, format_args!("expires in {days} days"), renew);
    } else {
        findings.ok(CHECK, format_args!("valid for {days} more days"));
    }
}

fn alternative_names(certificate: &Certificate) -> Vec<String> {
    let Ok(Some((_, SubjectAltName(names)))) = certificate.tbs_certificate.get() else { return Vec::new() };
    names.iter().filter_map(shown).collect()
}

/// A host name in the form of URLs.
fn shown(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => match bytes.as_bytes() {
            [a, b, c, d] => Some(Ipv4Addr::new(*a, *b, *c, *d).to_string()),
            bytes => <[u8; 16]>::try_from(bytes).ok().map(|bytes| format!("[{}]", Ipv6Addr::from(bytes))),
        },
        _ => None,
    }
}

fn names(host: &str, names: &[String], findings: &mut Findings) {
    let matches = |name: &String| match name.strip_prefix("*.") {
        // RFC 9525, section 6.3: the wildcard matches one label.
        Some(rest) => host.split_once('.').is_some_and(|(_, parent)| parent.eq_ignore_ascii_case(rest)),
        None => name.eq_ignore_ascii_case(host),
    };
    if !names.iter().any(matches) {
        let found = format!("is not for {host}, the host of public_url, but for: {}", names.join(", "));
        findings.problem(CHECK, found, "get a certificate for that name, or correct public_url");
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::State;
    use super::*;

    #[test]
    fn certificates_that_expire_soon_are_noticed() {
        let now = 1_000 * DAY;
        // from, until, state
        let table = [
            (now + 1, now + 90 * DAY, State::Problem),
            (now, now + 90 * DAY, State::Ok),
            (0, now + RENEWED_BY - 1, State::Warning),
            (0, now + 1, State::Warning),
            (0, now, State::Problem),
        ];
        for (from, until, state) in table {
            let mut findings = Findings::default();
            validity(now, from, until, &mut findings);
            assert_eq!(findings.of(CHECK).first().map(|(state, _)| *state), Some(state), "{from} {until}");
        }
    }

    #[test]
    fn wildcards_stand_for_one_label() {
        let fits = |host: &str, name: &str| {
            let mut findings = Findings::default();
            names(host, &[name.to_owned()], &mut findings);
            findings.of(CHECK).is_empty()
        };
        for (host, name) in [("api.example.com", "API.example.com"), ("api.example.com", "*.example.com")] {
            assert!(fits(host, name), "{host} {name}");
        }
        for (host, name) in [("example.com", "*.example.com"), ("a.b.example.com", "*.example.com"), ("x.org", "y.org")]
        {
            assert!(!fits(host, name), "{host} {name}");
        }
    }
}
