//! The payload of a receipt, as JSON. Names and types of the members are a published format, `docs/provable-bills.md`.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use metering_core::access::KeyId;
use metering_core::charging::HoldId;
use metering_core::receipts::{ReceiptKind, Statement};
use metering_core::{AccountId, Credits, Randomness, Timestamp};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// What a receipt states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptPayload {
    /// The version of the format, [`ReceiptPayload::VERSION`].
    #[serde(rename = "v")]
    pub version: u32,
    /// 16 random bytes in base64url: without them, anyone with a receipt of the same batch could guess this payload.
    pub salt: String,
    /// The public URL of the service.
    #[serde(rename = "iss")]
    pub issuer: String,
    /// Whose balance changed.
    #[serde(rename = "sub", deserialize_with = "parsed")]
    pub account: AccountId,
    /// The key that authenticated the request.
    #[serde(deserialize_with = "parsed")]
    pub key: KeyId,
    /// Its number in the account.
    pub key_number: u32,
    /// The request.
    #[serde(deserialize_with = "parsed")]
    pub request: HoldId,
    /// What happened.
    #[serde(deserialize_with = "kind")]
    pub kind: ReceiptKind,
    /// Method and template of the route, and its model if models have their own prices.
    pub route: String,
    /// The kind of client, as in usage reports.
    pub source: String,
    /// The version of the price list; `None` if that is not known.
    #[serde(rename = "prices")]
    pub price_version: Option<u32>,
    /// How much, above zero. Refunds add it to the balance; the other kinds subtract it.
    #[serde(rename = "atoms", with = "atoms")]
    pub amount: Credits,
    /// The balance afterwards; `None` if it was no longer known when the receipt was made.
    #[serde(with = "atoms_if_any")]
    pub balance: Option<Credits>,
    /// When it was committed.
    #[serde(with = "millis")]
    pub at: Timestamp,
    /// The log that it will be in.
    pub log: Option<String>,
    /// Until when it will be in the log.
    #[serde(rename = "by", with = "millis_if_any")]
    pub logged_by: Option<Timestamp>,
}

/// Why a payload cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadFault {
    /// It is of a later version.
    #[error("the receipt has version {0} of its format, and this program reads version 1: use a newer one")]
    Version(u32),
    /// It is not the JSON of a payload.
    #[error("the payload of the receipt is not valid: {0}")]
    Json(String),
}

impl From<serde_json::Error> for PayloadFault {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error.to_string())
    }
}

impl ReceiptPayload {
    /// The version of the format.
    pub const VERSION: u32 = 1;
    /// How long a posting may take to reach the log. Normally it takes seconds.
    pub const MERGE_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// The payload of a statement, with a new salt. `log` is the origin of the log that its posting will be in.
    pub(crate) fn new(
        statement: Statement,
        key: KeyId,
        issuer: String,
        log: Option<String>,
        randomness: &dyn Randomness,
    ) -> Self {
        let mut salt = [0; 16];
        randomness.fill(&mut salt);
        let line = statement.line;
        Self {
            version: Self::VERSION,
            salt: URL_SAFE_NO_PAD.encode(salt),
            issuer,
            account: statement.account,
            key,
            key_number: statement.key.get(),
            request: statement.request,
            kind: statement.kind,
            route: format!("{} {}", line.http_method, line.route_template),
            source: line.source.as_str().to_owned(),
            price_version: statement.price_version.map(|number| number.0),
            amount: statement.amount,
            balance: statement.balance,
            at: statement.at,
            logged_by: log.is_some().then(|| statement.at.saturating_add(Self::MERGE_DELAY)),
            log,
        }
    }

    /// Reads the JSON of a payload. Members that it does not know are ignored.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, PayloadFault> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        match serde_json::from_slice::<Version>(json)?.v {
            Self::VERSION => Ok(serde_json::from_slice(json)?),
            other => Err(PayloadFault::Version(other)),
        }
    }
}

fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(Error::custom)
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReceiptKind, D::Error> {
    let name = String::deserialize(deserializer)?;
    ReceiptKind::from_name(&name).ok_or_else(|| Error::custom(format_args!("unknown kind of receipt {name:?}")))
}

/// Amounts are text: not every JSON parser has 64-bit integers.
mod atoms {
    use metering_core::Credits;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(amount: &Credits, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&amount.atoms())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Credits, D::Error> {
        super::parsed(deserializer).map(Credits::from_atoms)
    }
}

mod atoms_if_any {
    use metering_core::Credits;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(amount: &Option<Credits>, serializer: S) -> Result<S::Ok, S::Error> {
        amount.map(|amount| amount.atoms().to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Credits>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map(Credits::from_atoms).map_err(Error::custom)).transpose()
    }
}

mod millis {
    use metering_core::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(at.unix_millis())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp::from_unix_millis)
    }
}

mod millis_if_any {
    use metering_core::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(Timestamp::unix_millis).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map(Timestamp::from_unix_millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../tests/vectors/payload.json");

    #[test]
    fn the_example_round_trips() {
        let payload = ReceiptPayload::parse(EXAMPLE.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&payload).unwrap(), EXAMPLE.trim());
        assert_eq!((payload.amount.atoms(), payload.at.unix_millis()), (250_000, 1_795_248_000_005));
    }

    #[test]
    fn a_balance_may_be_unknown() {
        let unknown = EXAMPLE.replace(r#""14399750000""#, "null");
        let payload = ReceiptPayload::parse(unknown.as_bytes()).unwrap();
        assert_eq!((payload.balance, serde_json::to_string(&payload).unwrap().as_str()), (None, unknown.trim()));
    }

    #[test]
    fn later_versions_are_refused_and_unknown_members_ignored() {
        let later = EXAMPLE.replace(r#""v":1"#, r#""v":2"#);
        assert_eq!(ReceiptPayload::parse(later.as_bytes()), Err(PayloadFault::Version(2)));
        let longer = EXAMPLE.replace(r#""v":1"#, r#""v":1,"new":[]"#);
        assert_eq!(ReceiptPayload::parse(longer.as_bytes()), ReceiptPayload::parse(EXAMPLE.as_bytes()));
    }

    #[test]
    fn what_is_wrong_with_a_payload_is_said() {
        // replaced, by, error
        let table = [
            (r#""v":1"#, r#""v":"1""#, "expected u32"),
            (r#""250000""#, "250000", "expected a string"),
            (r#""250000""#, r#""0.5""#, "invalid digit"),
            ("org_", "org-", "an account id is org_"),
            ("req_", "", "the id of a request is req_"),
            (r#""charge""#, r#""gift""#, r#"unknown kind of receipt "gift""#),
            (r#""kind":"charge","#, "", "missing field `kind`"),
            (r#""key_number":0"#, r#""key_number":-1"#, "expected u32"),
        ];
        for (from, to, expected) in table {
            let error = ReceiptPayload::parse(EXAMPLE.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
