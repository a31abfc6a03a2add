//! `metering topup --sign`.

use super::shop::{SHOP, TX, asks, assert_signed, offer, own_service, payments, shop};
use crate::client::misuses;
use crate::stand_in::Reply;

const PATH: &str = "/credits/pay";

#[test]
fn chosen_amount_is_signed_and_credited() {
    let ask = || asks(&[offer(50_000), offer(500_000)]);
    let credited = format!(r#"{{"credited":0.5,"balance":"1.25","transaction":"{TX}"}}"#);
    let (program, service) = own_service(PATH, [ask(), ask(), Reply::ok(credited)]);
    program.refuses(&[("topup --sign", 2, "--amount: 0.05 USDC, 0.5 USDC"), ("topup --sign --amount 0.5", 2, "--yes")]);
    let ran = program.run("topup --sign --amount 0.5 --yes").expect(0);
    assert_eq!(ran.stdout, format!("Credited     0.5\nBalance      1.25\nTransaction  {TX}\n"));
    let _ = ran.says(&format!("To pay: 0.5 USDC on chain 84532 to {SHOP}, from 0x"));
    let (requests, key) = (service.requests(), program.text("$key"));
    assert_signed(requests[2].header("payment-signature").unwrap(), 500_000);
    assert!(requests.iter().all(|request| request.method == "POST" && request.key() == Some(&key)));
    // The other form of the transaction, and JSON as the service wrote it.
    let other = format!(r#"{{"credited": 0.50, "balance": 2, "transaction": {{"chain": 84532, "hash": "{TX}"}}}}"#);
    service.on(PATH, ask()).on(PATH, Reply::ok(other.clone()));
    let _ = program.run("topup --sign --amount 0.5 --yes").expect(0);
    assert_eq!(program.run("topup --sign --amount 0.5 --yes --json").stdout, format!("{other}\n"));
}

#[test]
fn pending_top_up_is_continued_and_no_limit_of_calls_is_in_its_way() {
    let pending = Reply::error(503, "settlement_pending").header("retry-after", 1);
    let credited = format!(r#"{{"credited":"5","balance":"5","transaction":"{TX}"}}"#);
    let (program, service) = own_service(PATH, [asks(&[offer(5_000_000)]), pending, Reply::ok(credited)]);
    program.refuses(&[
        ("topup --sign --amount 5 --yes", 8, "try again in 1 s"),
        ("topup --sign --amount 4 --yes", 5, "is pending"),
    ]);
    let _ = program.run("topup --sign --amount 5 --yes").expect(0);
    let sent: Vec<_> = payments(&service).into_iter().flatten().collect();
    assert_eq!((sent.len(), sent[0] == sent[1]), (2, true));
}

#[test]
fn service_without_payments_by_signature_says_so() {
    let (program, service) = own_service(PATH, []);
    program.refuses(&[("topup --sign --amount 5 --yes", 4, "takes no payments by signature")]);
    let (plan, tx) = ("topup --sign --amount 5 --plan starter", format!("topup --sign --amount 5 --tx {TX}"));
    misuses(&program, &service, &[plan, &tx, "topup --sign --amount 5 --abandon"]);
    // Credits need an account.
    let (program, _shop) = shop([]);
    program.refuses(&[("topup --sign --amount 5 --yes", 6, "")]);
}
