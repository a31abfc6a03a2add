//! Reads a request's credentials from its headers, independent of any HTTP library.

use std::net::IpAddr;

use crate::access::browser_session::SessionCredentials;
use crate::access::key::{ApiKey, KeyFault, KeyHash};
use crate::access::key_use::KeyRefusal;
use crate::access::member::Member;
use crate::access::role::Right;
use crate::access::succession::ShortRotationKey;
use crate::charging::delivery::{IdempotencyKey, IdempotencyKeyError};
use crate::charging::max_cost::{MaxCost, MaxCostError};
use crate::error::Error;
use crate::usage::ClientSource;
use crate::wire::{IDEMPOTENCY_HEADER, MAX_COST_HEADER, SOURCE_HEADER, payment_credential};

/// Headers other than `Authorization` that may carry a key, in order of precedence: those of this service and
/// Anthropic's clients, Azure's, and Google's. None of them is forwarded to an upstream.
pub const KEY_HEADERS: [&str; 3] = ["x-api-key", "api-key", "x-goog-api-key"];

/// Who calls: the key that came with a request, and the address that it came from.
///
/// A key alone is a caller with an unknown address. A key that is restricted to networks is then refused.
///
/// ```
/// use metering_core::access::Caller;
/// use metering_core::{ApiKey, SystemRandomness};
///
/// let key = ApiKey::generate(&SystemRandomness);
/// assert_eq!(Caller::from(Some(&key)).address, None);
/// let caller = Caller { address: "203.0.113.7".parse().ok(), ..Caller::from(&key) };
/// assert!(caller.address.is_some());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'k> {
    /// The key, if the request has a well-formed one.
    pub key: Option<&'k ApiKey>,
    /// The session of a signed-in browser, in place of a key. It never pays for requests.
    pub session: Option<&'k SessionCredentials>,
    /// The client's address, if known: behind a proxy, the address that the proxy reports.
    pub address: Option<IpAddr>,
}

impl<'k> From<Option<&'k ApiKey>> for Caller<'k> {
    fn from(key: Option<&'k ApiKey>) -> Self {
        Self { key, session: None, address: None }
    }
}

impl<'k> From<&'k SessionCredentials> for Caller<'k> {
    fn from(session: &'k SessionCredentials) -> Self {
        Self { key: None, session: Some(session), address: None }
    }
}

impl<'k> Caller<'k> {
    /// The hash of its secret, or of the secret that its session represents.
    #[must_use]
    pub fn secret(self) -> Option<KeyHash> {
        self.key.map(ApiKey::hash).or_else(|| self.session.map(|session| session.secret))
    }

    /// The member whose session it has.
    #[must_use]
    pub fn member(self) -> Option<&'k Member> {
        self.session.filter(|_| self.key.is_none())?.member.as_deref()
    }

    /// Whether the role of a member has this right. A key has all of them; its scopes limit its use.
    pub(crate) fn check_role(self, right: Right) -> Result<(), KeyRefusal> {
        match self.member() {
            Some(member) if !member.role.may(right) => Err(KeyRefusal::Role { role: member.role }),
            _ => Ok(()),
        }
    }

    /// The proof that it sent: other secrets are derived from it, so a rotation can be retried.
    pub(crate) fn proof(self) -> Option<&'k str> {
        self.key.map(ApiKey::expose).or_else(|| self.session.map(|session| session.token.expose()))
    }

    /// The key that replaces its own in the rotation with this idempotency key; `None` without a key or session.
    pub(crate) fn successor(self, rotation: &IdempotencyKey) -> Option<Result<ApiKey, ShortRotationKey>> {
        match (self.key, self.session) {
            (Some(key), _) => Some(key.successor(rotation)),
            (None, Some(session)) => Some(session.token.successor(rotation)),
            (None, None) => None,
        }
    }
}

impl<'k> From<&'k ApiKey> for Caller<'k> {
    fn from(key: &'k ApiKey) -> Self {
        Some(key).into()
    }
}

/// The address of a request's client, for [`MeteringLayer`](crate::MeteringLayer): put it into the request's
/// extensions. Behind a proxy, it is the address that the proxy reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// The credentials sent with a request.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// From `Authorization: Bearer`, or else the first of [`KEY_HEADERS`]. A payment in `Authorization` is not a key;
    /// neither is `Basic` next to one of these. `None` when the key is missing or malformed, or when a header is sent
    /// twice: a proxy that inspects requests must not see a different key than the one that pays.
    pub key: Option<ApiKey>,
    /// Why there is no key although a header for one was sent.
    pub fault: Option<KeyFault>,
    /// Which kind of client sent the request.
    pub source: ClientSource,
    /// The idempotency key: `None` when there is none, an error when it is malformed or sent twice.
    pub idempotency_key: Option<Result<IdempotencyKey, IdempotencyKeyError>>,
    /// The most that the request may cost: `None` when it may cost anything, an error when the bound is malformed or
    /// sent twice.
    pub max_cost: Option<Result<MaxCost, MaxCostError>>,
}

impl Credentials {
    /// The key, for a request that needs one.
    ///
    /// ```
    /// use metering_core::access::Credentials;
    /// use metering_core::wire::ErrorCode;
    ///
    /// let mut headers = http::HeaderMap::new();
    /// headers.insert("authorization", "Bearer sk_live_cut-off".parse()?);
    /// let credentials = Credentials::read(|name| headers.get_all(name).iter().map(|value| value.as_bytes()));
    /// let Err(error) = credentials.key() else { panic!("this is not a key") };
    /// assert_eq!(error.code(), ErrorCode::Unauthorized);
    /// assert!(error.to_string().contains("a key has 46 characters"), "{error}");
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::KeyRefused`] when the text that was sent is not a key. If none was sent, the result is `None`, and the
    /// use case decides.
    pub fn key(self) -> Result<Option<ApiKey>, Error> {
        match self.fault {
            Some(fault) => Err(Error::KeyRefused(fault)),
            None => Ok(self.key),
        }
    }

    /// The error to send to the client that sent these credentials: a missing or malformed key.
    ///
    /// ```
    /// use metering_core::Error;
    /// use metering_core::access::Credentials;
    ///
    /// # let header: &[u8] = b"Bearer sk_test_12";
    /// # let lines = |name: &str| (name == "authorization").then_some(header);
    /// let credentials = Credentials::read(lines);
    /// let error = credentials.explain(Error::Unauthorized);
    /// assert!(error.to_string().contains("a key starts with sk_live_"), "{error}");
    /// ```
    #[must_use]
    pub fn explain(&self, error: Error) -> Error {
        match (error, self.fault) {
            (Error::Unauthorized | Error::PaymentRequired { .. } | Error::MaxCostExceeded { .. }, Some(fault)) => {
                Error::KeyRefused(fault)
            }
            (error, _) => error,
        }
    }

    /// Reads the credentials. `values` takes a header name in lower case and returns the values of all its lines.
    ///
    /// ```
    /// use metering_core::access::Credentials;
    /// use metering_core::{ApiKey, SystemRandomness};
    ///
    /// let key = ApiKey::generate(&SystemRandomness);
    /// let mut headers = http::HeaderMap::new();
    /// headers.insert("x-api-key", key.expose().parse()?);
    /// let credentials = Credentials::read(|name| headers.get_all(name).iter().map(|value| value.as_bytes()));
    /// assert_eq!(credentials.key.map(|key| key.hash()), Some(key.hash()));
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    #[must_use]
    pub fn read<'h, V>(values: impl Fn(&'static str) -> V) -> Self
    where
        V: IntoIterator<Item = &'h [u8]>,
    {
        let once = |name| once(values(name));
        let has_other = || KEY_HEADERS.into_iter().any(|name| !matches!(once(name), Ok(None)));
        // A payment uses this header, so its sender has the key in `X-API-Key`. The same applies to `Basic`, which a
        // proxy or library may add and which is never a key.
        let authorization = match once("authorization") {
            Ok(Some(value)) if payment_credential(value.as_bytes()).is_some() => Ok(None),
            Ok(Some(value)) if is_basic(value) && has_other() => Ok(None),
            other => other,
        };
        let read = match authorization {
            Ok(Some(value)) => ApiKey::from_authorization(value).map(Some).map_err(KeyFault::from),
            Ok(None) => match KEY_HEADERS.into_iter().find_map(|name| once(name).transpose()) {
                Some(Ok(value)) => ApiKey::parse(value).map(Some).map_err(KeyFault::from),
                Some(Err(Ambiguous)) => Err(KeyFault::Ambiguous),
                None => Ok(None),
            },
            Err(Ambiguous) => Err(KeyFault::Ambiguous),
        };
        let (key, fault) = read.map_or_else(|fault| (None, Some(fault)), |key| (key, None));
        let source = match once(SOURCE_HEADER) {
            Ok(None) => ClientSource::Direct,
            Ok(Some(name)) => ClientSource::from_name(name),
            Err(Ambiguous) => ClientSource::Unknown,
        };
        let idempotency_key = match once(IDEMPOTENCY_HEADER) {
            Ok(value) => value.map(IdempotencyKey::parse),
            Err(Ambiguous) => Some(Err(IdempotencyKeyError)),
        };
        let max_cost = match once(MAX_COST_HEADER) {
            Ok(value) => value.map(str::parse),
            Err(Ambiguous) => Some(Err(MaxCostError)),
        };
        Self { key, fault, source, idempotency_key, max_cost }
    }

    /// The idempotency key, in the form that a request head takes.
    ///
    /// ```
    /// use metering_core::access::Credentials;
    /// use metering_core::service::RequestHead;
    ///
    /// # let header: &[u8] = b"8e03978e";
    /// # let lines = |name: &str| (name == "idempotency-key").then_some(header);
    /// let credentials = Credentials::read(lines);
    /// let head = RequestHead {
    ///     body: None,
    ///     key: credentials.key.as_ref(),
    ///     address: None,
    ///     method: "GET",
    ///     path: "/price",
    ///     query: None,
    ///     source: credentials.source,
    ///     idempotency_key: credentials.idempotency_key(),
    ///     payment: None,
    /// };
    /// assert!(matches!(head.idempotency_key, Some(Ok(key)) if key.as_str() == "8e03978e"));
    /// ```
    #[must_use]
    pub fn idempotency_key(&self) -> Option<Result<&IdempotencyKey, IdempotencyKeyError>> {
        self.idempotency_key.as_ref().map(|key| key.as_ref().map_err(|error| *error))
    }
}

/// Whether the credentials are a name and a password (RFC 7617).
fn is_basic(authorization: &str) -> bool {
    authorization.split_once(' ').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))
}

/// A header is sent twice, or is not text.
struct Ambiguous;

fn once<'h>(values: impl IntoIterator<Item = &'h [u8]>) -> Result<Option<&'h str>, Ambiguous> {
    let mut values = values.into_iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => std::str::from_utf8(value).map(Some).map_err(|_| Ambiguous),
        (Some(_), Some(_)) => Err(Ambiguous),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::key::MalformedKey;
    use crate::random::SystemRandomness;

    type Line<'l> = (&'l str, &'l [u8]);

    fn read(lines: &[Line<'_>]) -> Credentials {
        Credentials::read(|name| lines.iter().filter(move |line| line.0 == name).map(|line| line.1))
    }

    #[test]
    fn one_well_formed_key_is_found_and_anything_else_is_none() {
        let (a, b) = (ApiKey::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
        let (of_a, of_b) = (format!("bearer {}", a.expose()), format!("Bearer {}", b.expose()));
        let (of_a, of_b, raw_a, raw_b) =
            (of_a.as_bytes(), of_b.as_bytes(), a.expose().as_bytes(), b.expose().as_bytes());
        let table: [(&[Line<'_>], Option<&ApiKey>); 20] = [
            (&[], None),
            (&[("authorization", of_a)], Some(&a)),
            (&[("x-api-key", raw_a)], Some(&a)),
            (&[("authorization", of_a), ("x-api-key", raw_b)], Some(&a)),
            (&[("authorization", b"Basic eA=="), ("x-api-key", raw_b)], Some(&b)),
            (&[("authorization", b"Basic eA==")], None),
            (&[("authorization", b"Basic eA=="), ("authorization", of_a), ("x-api-key", raw_b)], None),
            (&[("authorization", of_a), ("authorization", of_b)], None),
            (&[("authorization", of_a), ("authorization", of_a)], None),
            (&[("x-api-key", raw_a), ("x-api-key", raw_a)], None),
            (&[("x-api-key", b"sk_live_nonsense")], None),
            (&[("authorization", b"Bearer \xff"), ("x-api-key", raw_a)], None),
            (&[("api-key", raw_a)], Some(&a)),
            (&[("x-goog-api-key", raw_a)], Some(&a)),
            (&[("x-goog-api-key", raw_a), ("api-key", raw_b)], Some(&b)),
            (&[("x-goog-api-key", raw_a), ("x-api-key", raw_b)], Some(&b)),
            (&[("api-key", raw_b), ("authorization", of_a)], Some(&a)),
            (&[("api-key", b"of-another-service"), ("x-goog-api-key", raw_a)], None),
            (&[("api-key", raw_a), ("api-key", raw_a)], None),
            (&[("api_key", raw_a)], None),
        ];
        for (row, (lines, expected)) in table.into_iter().enumerate() {
            assert_eq!(read(lines).key.map(|key| key.hash()), expected.map(ApiKey::hash), "row {row}");
        }
    }

    #[test]
    fn a_payment_in_the_authorization_header_is_no_key() {
        let key = ApiKey::generate(&SystemRandomness);
        let (raw, bearer) = (key.expose().as_bytes(), format!("Bearer {}", key.expose()));
        let hash = Some(key.hash());
        // lines, key, fault
        let table: [(&[Line<'_>], _, _); 8] = [
            (&[("authorization", b"Payment abc")], None, None),
            (&[("authorization", b"payment abc"), ("x-api-key", raw)], hash, None),
            (&[("authorization", b"Payment"), ("x-api-key", raw)], hash, None),
            (
                &[("authorization", b"Payment abc"), ("x-api-key", b"sk_live_1")],
                None,
                Some(KeyFault::Malformed(MalformedKey::Length)),
            ),
            (&[("authorization", b"Payment abc"), ("authorization", b"Payment abc")], None, Some(KeyFault::Ambiguous)),
            (
                &[("authorization", bearer.as_bytes()), ("authorization", b"Payment abc")],
                None,
                Some(KeyFault::Ambiguous),
            ),
            (&[("authorization", bearer.as_bytes()), ("payment-authorization", b"Payment abc")], hash, None),
            (&[("authorization", b"Payments abc"), ("x-api-key", raw)], None, Some(MalformedKey::Scheme.into())),
        ];
        for (row, (lines, key, fault)) in table.into_iter().enumerate() {
            let read = read(lines);
            assert_eq!((read.key.map(|key| key.hash()), read.fault), (key, fault), "row {row}");
        }
    }

    #[test]
    fn malformed_keys_are_explained() {
        let key = ApiKey::generate(&SystemRandomness);
        let key = key.expose();
        let last = if key.ends_with('0') { "1" } else { "0" };
        let mistyped = format!("{}{last}", &key[..key.len() - 1]);
        let malformed = |malformed| Some(KeyFault::Malformed(malformed));
        let table = [
            (format!("Bearer {key}"), None),
            (format!("Bearer {mistyped}"), malformed(MalformedKey::Checksum)),
            (format!("Bearer {}", &key[..40]), malformed(MalformedKey::Length)),
            (format!("Bearer {key}{key}"), malformed(MalformedKey::Length)),
            (format!("Bearer {}", key.replace("live", "test")), malformed(MalformedKey::Prefix)),
            (format!("Bearer {}-", &key[..45]), malformed(MalformedKey::Alphabet)),
            (key.to_owned(), malformed(MalformedKey::Scheme)),
            (format!("Basic {key}"), malformed(MalformedKey::Scheme)),
        ];
        for (value, expected) in table {
            let credentials = read(&[("authorization", value.as_bytes())]);
            assert_eq!((credentials.fault, credentials.key.is_none()), (expected, expected.is_some()), "{value}");
            if let Err(error) = credentials.key() {
                assert_eq!(error.code(), crate::wire::ErrorCode::Unauthorized);
                assert!(!error.to_string().contains(&key[8..]), "{error}");
            }
        }
        // A request with a key gets no offers for it, only the error.
        let mistyped = read(&[("x-api-key", mistyped.as_bytes())]);
        for error in [Error::Unauthorized, Error::PaymentRequired { price: crate::Credits::ZERO }] {
            assert!(matches!(mistyped.explain(error), Error::KeyRefused(_)));
        }
        let of_azure = read(&[("api-key", b"0f8d2c4b6a9e4d1f8c7b5a3e2d1c0b9a")]);
        assert_eq!(of_azure.fault, malformed(MalformedKey::Prefix));
        let twice = read(&[("x-api-key", key.as_bytes()), ("x-api-key", key.as_bytes())]);
        assert_eq!(twice.fault, Some(KeyFault::Ambiguous));
        assert_eq!(read(&[]).fault, None);
    }

    #[test]
    fn sources_default_to_direct() {
        let table: [(&[Line<'_>], ClientSource); 5] = [
            (&[], ClientSource::Direct),
            (&[(SOURCE_HEADER, b"cli")], ClientSource::Cli),
            (&[(SOURCE_HEADER, b"toaster")], ClientSource::Unknown),
            (&[(SOURCE_HEADER, b"\xff")], ClientSource::Unknown),
            (&[(SOURCE_HEADER, b"cli"), (SOURCE_HEADER, b"cli")], ClientSource::Unknown),
        ];
        for (lines, expected) in table {
            assert_eq!(read(lines).source, expected);
        }
    }
}
