//! A challenge: an offer, bound to this service, an account and a time.

use std::collections::BTreeMap;
use std::fmt::Write;

use metering_core::access::KeyHash;
use metering_core::clock::Timestamp;
use serde_json::{Map, Value, json};

use crate::offers::Offer;
use crate::wire::fields::Base64;
use crate::wire::mpp::realm::Realm;
use crate::wire::mpp::secret::{Bound, ChallengeSecret};
use crate::wire::mpp::{INTENT, METHOD, OWN_HEADER};

/// The member of `opaque` that has the key.
pub(super) const KEY: &str = "key";
/// The member of `opaque` that no other challenge has.
pub(super) const UNIQUE: &str = "unique";

/// The contract Permit2, where it is on most chains. The draft requires it in each challenge, also of a service that only
/// accepts signed authorizations.
const PERMIT2: &str = "0x000000000022D473030F116dDEE9F6B43aC78BA3";

/// The data that a challenge is bound to, besides its offer.
#[derive(Debug, Clone, Copy)]
pub struct ChallengeTerms<'t> {
    /// The key that the request came with: its account is credited, even if the payment replaces the key in the
    /// headers. Without one, the payer's wallet decides. Challenges contain its hash, hidden.
    pub key: Option<&'t KeyHash>,
    /// Text that no other challenge has, such as 20 random digits. The same wallet can pay the same challenge only
    /// once.
    pub unique: &'t str,
    /// When it expires; clients sign authorizations that expire then. At least two minutes from now. Cut off to whole
    /// seconds.
    pub expires: Timestamp,
    /// Whether the credential belongs in `Payment-Authorization`, because `Authorization` has the key. Not for MCP.
    pub own_header: bool,
}

/// A challenge to pay an [`Offer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    id: String,
    realm: Realm,
    request: Value,
    description: String,
    expires: String,
    own_header: bool,
    opaque: String,
}

impl Challenge {
    /// Makes a challenge.
    #[must_use]
    pub fn new(secret: &ChallengeSecret, realm: &Realm, offer: &Offer, terms: ChallengeTerms<'_>) -> Self {
        let domain = &offer.asset.domain;
        let request = json!({
            "amount": offer.amount.to_string(),
            "currency": domain.contract.to_checksummed(),
            "methodDetails": {
                "chainId": domain.chain_id,
                "credentialTypes": ["authorization"],
                "decimals": offer.asset.decimals,
                "permit2Address": PERMIT2,
            },
            "recipient": offer.pay_to.to_checksummed(),
        });
        let key = terms.key.map(|key| (KEY, hex::encode(secret.mask(terms.unique, key.as_bytes()))));
        let opaque: BTreeMap<_, _> = key.into_iter().chain([(UNIQUE, terms.unique.to_owned())]).collect();
        let mut challenge = Self {
            id: String::new(),
            realm: realm.clone(),
            request,
            description: description(offer),
            expires: whole_seconds(terms.expires),
            own_header: terms.own_header,
            opaque: Base64::Url.encode_json(&opaque),
        };
        challenge.id = secret.id(Bound {
            realm: realm.as_str(),
            request: &canonical(&challenge.request),
            expires: &challenge.expires,
            header: challenge.own_header.then_some(OWN_HEADER),
            opaque: &challenge.opaque,
        });
        challenge
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A value of `WWW-Authenticate`. Send one header line per challenge, cheapest first.
    #[must_use]
    pub fn header(&self) -> String {
        let request = canonical(&self.request);
        let mut header = format!("Payment id={}", quoted(&self.id));
        let parameters = [
            ("realm", self.realm.as_str()),
            ("method", METHOD),
            ("intent", INTENT),
            ("request", &request),
            ("description", &self.description),
            ("expires", &self.expires),
        ];
        let own_header = self.own_header.then_some(("header", OWN_HEADER));
        for (name, value) in parameters.into_iter().chain(own_header).chain([("opaque", self.opaque.as_str())]) {
            // Writing to a `String` cannot fail.
            let _ = write!(header, ", {name}={}", quoted(value));
        }
        header
    }

    /// The challenge in a message of MCP.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value = json!({
            "id": self.id,
            "realm": self.realm.as_str(),
            "method": METHOD,
            "intent": INTENT,
            "request": self.request,
            "description": self.description,
            "expires": self.expires,
            "opaque": self.opaque,
        });
        if self.own_header {
            value["header"] = OWN_HEADER.into();
        }
        value
    }
}

/// JSON in its canonical form (JCS, RFC 8785), in base64url. Objects keep their members sorted, and the values written
/// here have ASCII keys and no fractions, so the plain form is the canonical one.
pub(super) fn canonical(value: &Value) -> String {
    Base64::Url.encode_json(value)
}

/// The members of `opaque`.
pub(super) fn read_opaque(opaque: &str) -> Option<Map<String, Value>> {
    match Base64::Url.decode_json("opaque", opaque) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    }
}

/// A time as RFC 3339 without a fraction: `2025-06-15T15:11:40Z`.
pub(super) fn whole_seconds(at: Timestamp) -> String {
    match jiff::Timestamp::from_second(at.unix_seconds()) {
        Ok(instant) => instant.to_string(),
        Err(_) => at.to_string(),
    }
}

/// The description for people: `0.05 USD Coin for 0.05 credits`. Not bound by the id.
fn description(offer: &Offer) -> String {
    let amount = offer.amount.to_human(offer.asset.decimals);
    format!("{amount} {} for {} credits", offer.asset.domain.name, offer.credits)
}

/// A quoted string (RFC 9110, section 5.6.4). Characters other than printable ASCII become question marks.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' => quoted.push(character),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::vectors::{offer, offers, vector};

    fn terms(own_header: bool) -> ChallengeTerms<'static> {
        let expires = Timestamp::from_unix_millis(1_750_000_300_999);
        ChallengeTerms { key: None, unique: "", expires, own_header }
    }

    fn realm() -> Realm {
        "api.example.com".parse().unwrap()
    }

    /// The parameters of a challenge's header.
    fn parameters(header: &str) -> BTreeMap<String, String> {
        let list = header.strip_prefix("Payment ").unwrap();
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap();
            (name.to_owned(), value.trim_matches('"').to_owned())
        };
        list.split(", ").map(pair).collect()
    }

    /// The published servers leave Permit2 out, although the draft requires it.
    #[test]
    fn a_challenge_is_that_of_the_reference_except_for_its_account_and_permit2() {
        for (file, own_header) in [("mpp-evm-authorization", false), ("mpp-evm-payment-authorization-header", true)] {
            let vector = vector(file);
            let expected = parameters(vector["www_authenticate"].as_str().unwrap());
            let secret = ChallengeSecret::of_vectors();
            let offers = offers();
            let mut challenge = Challenge::new(&secret, &realm(), offers.iter().next().unwrap(), terms(own_header));
            let permit2 = challenge.request["methodDetails"].as_object_mut().unwrap().remove("permit2Address");
            assert_eq!(permit2, Some(PERMIT2.into()));
            challenge.opaque.clone_from(&expected["opaque"]);
            challenge.description.clone_from(&expected["description"]);
            challenge.id = secret.id(Bound {
                realm: "api.example.com",
                request: &canonical(&challenge.request),
                expires: &challenge.expires,
                header: own_header.then_some(OWN_HEADER),
                opaque: &challenge.opaque,
            });
            assert_eq!(challenge.header(), vector["www_authenticate"].as_str().unwrap());
            assert_eq!(challenge.to_value()["request"], vector["challenge"]["request"]);
            assert_eq!(challenge.to_value()["id"], vector["challenge"]["id"]);
        }
    }

    #[test]
    fn everything_bound_changes_the_id() {
        let key = KeyHash::from_bytes([3; 32]);
        let (secret, other) = (ChallengeSecret::new(&[1; 32]).unwrap(), ChallengeSecret::new(&[2; 32]).unwrap());
        let usdc = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
        let (cheap, dear) = (offer(84_532, usdc, "0.05"), offer(84_532, usdc, "0.06"));
        let elsewhere = offer(8_453, usdc, "0.05");
        let base = terms(false);
        let later = Timestamp::from_unix_millis(1_750_000_301_000);
        let of = |secret, realm: &str, offer, terms| Challenge::new(secret, &realm.parse().unwrap(), offer, terms).id;
        let ids = std::collections::BTreeSet::from([
            of(&secret, "a", &cheap, base),
            of(&other, "a", &cheap, base),
            of(&secret, "b", &cheap, base),
            of(&secret, "a", &dear, base),
            of(&secret, "a", &elsewhere, base),
            of(&secret, "a", &cheap, ChallengeTerms { key: Some(&key), ..base }),
            of(&secret, "a", &cheap, ChallengeTerms { unique: "1", ..base }),
            of(&secret, "a", &cheap, ChallengeTerms { expires: later, ..base }),
            of(&secret, "a", &cheap, terms(true)),
        ]);
        assert_eq!(ids.len(), 9);
        assert_eq!(of(&secret, "a", &cheap, base), of(&secret, "a", &cheap, base));
        assert!(ids.iter().all(|id| id.len() == 43));
    }

    #[test]
    fn values_are_quoted_and_never_break_the_header() {
        assert_eq!(quoted("a\"b\\c\r\nd₮"), "\"a\\\"b\\\\c??d?\"");
        let offers = offers();
        let secret = ChallengeSecret::of_vectors();
        let challenge = Challenge::new(&secret, &realm(), offers.iter().next().unwrap(), terms(true));
        let found = parameters(&challenge.header());
        assert_eq!(found["description"], "0.05 USDC for 0.05 credits");
        assert_eq!((&*found["expires"], &*found["header"]), ("2025-06-15T15:11:40Z", "Payment-Authorization"));
        assert!(challenge.header().len() < 2_000);
    }
}
