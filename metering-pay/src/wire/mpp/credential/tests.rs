use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire::mpp::{Challenge, ChallengeTerms};
use crate::wire::vectors::{NOW, mutated, offers, payer, usdc, vector};

const FILES: [&str; 3] =
    ["mpp-evm-authorization", "mpp-evm-authorization-pympp", "mpp-evm-payment-authorization-header"];

fn realm() -> Realm {
    "api.example.com".parse().unwrap()
}

fn source(vector: &Value) -> MppSource {
    match vector["header_name"].as_str().unwrap() {
        "authorization" => MppSource::Authorization,
        _ => MppSource::PaymentAuthorization,
    }
}

fn header(vector: &Value) -> &str {
    vector["header"].as_str().unwrap().strip_prefix("Payment ").unwrap()
}

/// Reads and verifies a credential like those of the vectors.
fn verify(source: MppSource, credential: &Value) -> Result<VerifiedCredential, ChallengeFault> {
    let credential = Credential::parse(source, &Base64::Url.encode_json(credential)).unwrap();
    credential.verify(&ChallengeSecret::of_vectors(), &realm())
}

#[test]
fn credentials_of_published_clients_are_verified() {
    for file in FILES {
        let vector = vector(file);
        let credential = Credential::parse(source(&vector), header(&vector)).unwrap();
        let decoded = Credential::parse(source(&vector), &Base64::Url.encode_json(&vector["credential"]));
        assert_eq!(decoded.as_ref(), Ok(&credential), "{file}");
        let verified = credential.verify(&ChallengeSecret::of_vectors(), &realm()).unwrap();
        let (signed, offers) = (&verified.signed, offers());
        let offer = verified.offer(&offers).unwrap();
        let now = Timestamp::from_unix_millis(NOW * 1_000);
        assert_eq!(signed.authorization.check(offer.expected(), now), Ok(()), "{file}");
        assert_eq!(signed.authorization.from, payer(), "{file}");
        let digest = format!("0x{}", hex::encode(signed.authorization.digest(&usdc())));
        assert_eq!(digest, vector["eip712_digest"].as_str().unwrap(), "{file}");
        assert!(signed.authorization.is_signed_by_key(&usdc(), &signed.signature), "{file}");
        assert_eq!(verified.challenge_id, vector["credential"]["challenge"]["id"].as_str().unwrap());
        assert_eq!(verified.key, None);
    }
}

#[test]
fn an_altered_challenge_is_not_ours() {
    let original = vector("mpp-evm-authorization")["credential"].clone();
    let request = |amount: &str| {
        let request = original["challenge"]["request"].as_str().unwrap();
        let value = Base64::Url.decode_json("", request).unwrap();
        json!(Base64::Url.encode_json(&mutated(&value, "/amount", json!(amount))))
    };
    assert_eq!(request("50000"), original["challenge"]["request"], "the encoding is canonical");
    for (field, value) in [
        ("id", json!("u_OvHXFYq7iH-If9AQwXnZ-7m5_2w5GTMBwF9GJN879")),
        ("id", json!("u_OvHXFYq7iH-If9AQwXnZ-7m5_2w5GTMBwF9GJN878=")),
        ("id", json!("")),
        ("realm", json!("api.example.org")),
        ("request", request("1")),
        ("expires", json!("2025-06-15T15:11:41Z")),
        ("expires", json!("2025-06-15T15:11:40.0Z")),
        ("opaque", json!(Base64::Url.encode_json(&json!({"account": "acct_2"})))),
        ("opaque", json!("|")),
        ("header", json!("Payment-Authorization")),
        ("header", json!("X-Other")),
    ] {
        let altered = mutated(&original, &format!("/challenge/{field}"), value);
        for source in [MppSource::Authorization, MppSource::PaymentAuthorization] {
            assert_eq!(verify(source, &altered), Err(ChallengeFault::NotIssued), "{field}");
        }
    }
    let unbound = mutated(&original, "/challenge/description", json!("free"));
    assert!(verify(MppSource::Authorization, &unbound).is_ok());
    let credential = Credential::parse(MppSource::Authorization, &Base64::Url.encode_json(&original)).unwrap();
    let other = ChallengeSecret::new(&[1; 32]).unwrap();
    assert_eq!(credential.clone().verify(&other, &realm()), Err(ChallengeFault::NotIssued));
    let elsewhere = credential.verify(&ChallengeSecret::of_vectors(), &"api.example.org".parse().unwrap());
    assert_eq!(elsewhere, Err(ChallengeFault::NotIssued));
}

#[test]
fn a_credential_comes_where_its_challenge_says() {
    for file in FILES {
        let vector = vector(file);
        let own_header = source(&vector) == MppSource::PaymentAuthorization;
        for source in [MppSource::Authorization, MppSource::PaymentAuthorization, MppSource::Mcp] {
            let result = verify(source, &vector["credential"]);
            let fits = own_header == (source == MppSource::PaymentAuthorization);
            assert_eq!(result.is_ok(), fits, "{file} {source:?}");
            assert!(fits || matches!(result, Err(ChallengeFault::Place { .. })), "{file} {source:?}");
        }
    }
}

#[test]
fn clients_that_do_not_know_the_field_header_send_the_credential_in_authorization() {
    let mut credential = vector("mpp-evm-payment-authorization-header")["credential"].clone();
    credential["challenge"].as_object_mut().unwrap().remove("header");
    assert!(verify(MppSource::Authorization, &credential).is_ok());
    let expected = MppSource::Authorization.name();
    assert_eq!(verify(MppSource::PaymentAuthorization, &credential), Err(ChallengeFault::Place { expected }));
}

#[test]
fn what_was_signed_is_bound_to_the_challenge() {
    let original = vector("mpp-evm-authorization")["credential"].clone();
    let nonce = json!(format!("0x{}", "11".repeat(32)));
    let moved = mutated(&original, "/payload/nonce", nonce);
    assert_eq!(verify(MppSource::Authorization, &moved), Err(ChallengeFault::Nonce));
    let other = vector("mpp-evm-payment-authorization-header")["credential"]["payload"].clone();
    let moved = mutated(&original, "/payload", other);
    assert_eq!(verify(MppSource::Authorization, &moved), Err(ChallengeFault::Nonce));
    for (field, value) in
        [("to", json!("0x209693bc6afc0c5328ba36faf03c514ef312287d")), ("value", json!("1")), ("value", json!("500000"))]
    {
        let altered = mutated(&original, &format!("/payload/{field}"), value);
        assert_eq!(verify(MppSource::Authorization, &altered), Err(ChallengeFault::Terms), "{field}");
    }
    for (field, value) in [
        ("from", json!("0x209693bc6afc0c5328ba36faf03c514ef312287c")),
        ("validAfter", json!("1")),
        ("validBefore", json!("1750000301")),
        ("signature", json!(format!("0x{}", "11".repeat(65)))),
    ] {
        let altered = mutated(&original, &format!("/payload/{field}"), value);
        let signed = verify(MppSource::Authorization, &altered).unwrap().signed;
        assert!(!signed.authorization.is_signed_by_key(&usdc(), &signed.signature), "{field}");
    }
}

#[test]
fn a_field_that_cannot_be_read_is_named() {
    let original = vector("mpp-evm-authorization")["credential"].clone();
    for (path, value) in [
        ("challenge", json!(null)),
        ("challenge.id", json!(5)),
        ("challenge.method", json!("tempo")),
        ("challenge.intent", json!("session")),
        ("challenge.request", json!("?")),
        ("challenge.expires", json!("soon")),
        ("challenge.opaque", json!(null)),
        ("payload.type", json!("hash")),
        ("payload.nonce", json!("0x")),
        ("payload.signature", json!(null)),
    ] {
        let altered = mutated(&original, &format!("/{}", path.replace('.', "/")), value);
        let error = Credential::from_value(&altered).unwrap_err();
        assert!(matches!(&error, MalformedPayment::Field { field, .. } if field == path), "{path}: {error}");
    }
    let request = json!(Base64::Url.encode_json(&json!({"amount": "1", "methodDetails": {"chainId": "x"}})));
    let error = Credential::from_value(&mutated(&original, "/challenge/request", request)).unwrap_err().to_string();
    assert!(error.contains("methodDetails.chainId"), "{error}");
}

#[test]
fn a_challenge_of_ours_can_be_answered_over_mcp() {
    let key = KeyHash::from_bytes([3; 32]);
    let secret = ChallengeSecret::new(&[9; 32]).unwrap();
    let expires = Timestamp::from_unix_millis(1_750_000_300_000);
    let terms = ChallengeTerms { key: Some(&key), unique: "1", expires, own_header: false };
    let offers = offers();
    let challenge = Challenge::new(&secret, &realm(), offers.iter().next().unwrap(), terms);
    let mut payload = vector("mpp-evm-authorization")["credential"]["payload"].clone();
    payload["nonce"] = json!(nonces(challenge.id(), &realm())[1].to_string());
    let credential = json!({"challenge": challenge.to_value(), "payload": payload, "source": null});
    let verified = Credential::from_value(&credential).unwrap().verify(&secret, &realm()).unwrap();
    assert_eq!(verified.key, Some(key));
    assert!(!challenge.to_value().to_string().contains(&hex::encode(key.as_bytes())));
    assert_eq!(verified.check_expiry(Timestamp::from_unix_millis(1_750_000_299_999)), Ok(()));
    assert_eq!(verified.check_expiry(expires), Err(ChallengeFault::Expired { expires }));
    assert!(verified.offer(&offers).is_ok());
    assert!(matches!(verified.offer(&Offers::default()), Err(OfferMismatch::NotOffered { .. })));
}

#[test]
fn the_signature_is_not_printed() {
    let vector = vector("mpp-evm-authorization");
    let signature = &vector["signature"].as_str().unwrap()[2..20];
    let credential = Credential::parse(MppSource::Authorization, header(&vector)).unwrap();
    let mut printed = format!("{credential:?}");
    printed += &format!("{:?}", credential.verify(&ChallengeSecret::of_vectors(), &realm()).unwrap());
    assert!(!printed.contains(signature), "{printed}");
}

proptest! {
    #[test]
    fn no_header_makes_it_panic(text in "\\PC{0,300}", cut in 0_usize..2_500, with in any::<u8>()) {
        prop_assert!(Credential::parse(MppSource::Authorization, &text).is_err());
        let vector = vector("mpp-evm-authorization");
        let mut bytes = header(&vector).as_bytes().to_vec();
        if let Some(byte) = bytes.get_mut(cut) { *byte = with; }
        let credential = std::str::from_utf8(&bytes).ok().map(|text| Credential::parse(MppSource::Authorization, text));
        if let Some(Ok(credential)) = credential {
            let _ = credential.verify(&ChallengeSecret::of_vectors(), &realm());
        }
    }

    #[test]
    fn no_value_in_a_field_makes_it_panic(field in 0_usize..9, text in "\\PC{0,40}", number in any::<i64>()) {
        let original = vector("mpp-evm-authorization")["credential"].clone();
        let paths = ["/challenge/id", "/challenge/realm", "/challenge/request", "/challenge/expires", "/challenge/opaque",
            "/challenge/header", "/payload/nonce", "/payload/value", "/payload/signature"];
        for value in [json!(text), json!(number), json!([text]), json!({ "a": text })] {
            if let Ok(credential) = Credential::from_value(&mutated(&original, paths[field], value)) {
                let _ = credential.verify(&ChallengeSecret::of_vectors(), &realm());
            }
        }
    }
}
