//! The debug output of requests and responses.

use std::fmt::Debug;

use crate::wire::{
    ApproveRequest, ClaimRequest, CompletionRequest, InitiateResponse, LeakedKeyRequest, LinkRequest, TopUpRequest,
    VerifyRequest, WalletSignInRequest,
};

const SECRET: &str = "must not be in a log";

fn assert_hidden(shown: &str, value: &dyn Debug) {
    let printed = format!("{value:?}");
    assert!(printed.contains(shown) && !printed.contains(SECRET), "{printed}");
}

#[test]
fn secrets_are_not_printed() {
    let (secret, shown) = (|| Some(SECRET.to_owned()), || Some("0xab".to_owned()));
    assert_hidden("0xab", &VerifyRequest { address: shown(), nonce: secret(), signature: secret() });
    let top_up = TopUpRequest { tx_hash: shown(), signature: secret(), ..TopUpRequest::default() };
    assert_hidden("0xab", &top_up);
    let completion = CompletionRequest { tx_hash: shown(), signature: secret(), ..CompletionRequest::default() };
    assert_hidden("0xab", &completion);
    let approval = ApproveRequest { user_code: secret(), tos_accepted: true, captcha_token: secret() };
    assert_hidden("true", &approval);
    let initiated = InitiateResponse {
        session_token: SECRET.to_owned(),
        verification_url: "0xab".to_owned(),
        verification_url_complete: SECRET.to_owned(),
        user_code: SECRET.to_owned(),
        expires_in: 600,
        interval: 5,
    };
    assert_hidden("0xab", &initiated);
    let claim = ClaimRequest { signup_nonce: secret().map(Into::into), tx_hash: shown(), signature: secret() };
    assert_hidden("0xab", &claim);
    let link = LinkRequest { token: secret().map(Into::into), signature: secret(), org_id: shown() };
    assert_hidden("0xab", &link);
    let wallet = WalletSignInRequest { address: shown(), invitation: secret().map(Into::into) };
    assert_hidden("0xab", &wallet);
    assert_hidden("LeakedKeyRequest", &LeakedKeyRequest { key: secret() });
}
