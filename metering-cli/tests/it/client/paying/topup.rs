//! `metering topup --sign`.

use super::shop::{SHOP, TX, asks, assert_signed, offer, payments, run};
use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

const PATH: &str = "/credits/pay";

#[test]
fn chosen_amount_is_signed_and_credited() {
    let service = StandIn::start();
    let offers = [offer(50_000), offer(500_000)];
    let credited = format!(r#"{{"credited":0.5,"balance":"1.25","transaction":"{TX}"}}"#);
    service.on(PATH, asks(&offers)).on(PATH, asks(&offers)).on(PATH, Reply::ok(credited.clone()));
    let (home, key) = Home::of(&service);
    let message = run(&home, &["topup", "--sign"]).failure(2);
    assert!(message.contains("--amount: 0.05 USDC, 0.5 USDC"), "{message}");
    let message = run(&home, &["topup", "--sign", "--amount", "0.5"]).failure(2);
    assert!(message.contains("--yes"), "{message}");
    let ran = run(&home, &["topup", "--sign", "--amount", "0.5", "--yes"]);
    let expected = format!("credited     0.5\nbalance      1.25\ntransaction  {TX}\n");
    assert_eq!((ran.code, ran.stdout), (0, expected), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("To pay: 0.5 USDC on chain 84532 to {SHOP}, from 0x")), "{}", ran.stderr);
    let requests = service.requests();
    assert_signed(requests[2].header("payment-signature").unwrap(), 500_000);
    let bearer = format!("Bearer {}", key.expose());
    for request in &requests {
        assert_eq!((request.method.as_str(), request.header("authorization")), ("POST", Some(bearer.as_str())));
    }
    // The other form of the transaction, and JSON as the service wrote it.
    let other = format!(r#"{{"credited": 0.50, "balance": 2, "transaction": {{"chain": 84532, "hash": "{TX}"}}}}"#);
    service.on(PATH, asks(&offers)).on(PATH, Reply::ok(other.clone()));
    assert_eq!(run(&home, &["topup", "--sign", "--amount", "0.5", "--yes"]).code, 0, "the last reply repeats");
    let ran = run(&home, &["topup", "--sign", "--amount", "0.5", "--yes", "--json"]);
    assert_eq!(ran.stdout, format!("{other}\n"), "{}", ran.stderr);
}

#[test]
fn pending_top_up_is_continued_and_no_limit_of_calls_is_in_its_way() {
    let service = StandIn::start();
    let offers = [offer(5_000_000)];
    let pending = Reply::error(503, "settlement_pending").header("retry-after", 1);
    let credited = format!(r#"{{"credited":"5","balance":"5","transaction":"{TX}"}}"#);
    service.on(PATH, asks(&offers)).on(PATH, pending).on(PATH, Reply::ok(credited));
    let (home, _) = Home::of(&service);
    let args = ["topup", "--sign", "--amount", "5", "--yes"];
    let message = run(&home, &args).failure(8);
    assert!(message.contains("try again in 1 s"), "{message}");
    let message = run(&home, &["topup", "--sign", "--amount", "4", "--yes"]).failure(5);
    assert!(message.contains("is pending"), "{message}");
    assert_eq!(run(&home, &args).code, 0);
    let sent: Vec<_> = payments(&service).into_iter().flatten().collect();
    assert_eq!((sent.len(), sent[0] == sent[1]), (2, true));
}

#[test]
fn service_without_payments_by_signature_says_so() {
    let service = StandIn::start();
    let (home, _) = Home::of(&service);
    let message = run(&home, &["topup", "--sign", "--amount", "5", "--yes"]).failure(4);
    assert!(message.contains("takes no payments by signature"), "{message}");
    for args in [&["--plan", "starter"][..], &["--tx", TX], &["--abandon"]] {
        assert_eq!(run(&home, &[&["topup", "--sign", "--amount", "5"], args].concat()).code, 2, "{args:?}");
    }
    assert_eq!(run(&Home::new(), &["topup", "--sign", "--amount", "5", "--yes"]).code, 6, "credits need an account");
}
