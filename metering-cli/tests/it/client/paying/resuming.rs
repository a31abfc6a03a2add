//! A call whose first run failed is not paid another time.

use std::time::{Duration, Instant};

use super::shop::{CALL, asks, offer, payments, refused, sent, settled, shop, unsettled};
use crate::client::new_key;
use crate::program::{OTHER as WALLET, OTHER_KEY as WALLET_KEY, ended, kill};
use crate::stand_in::Reply;

const JOURNAL: &str = "profiles/default/pay/journal.jsonl";

fn ask() -> Reply {
    asks(&[offer(50_000)])
}

fn paid() -> Reply {
    settled(Reply::ok("{}"))
}

#[test]
fn same_payment_is_sent_until_the_response_has_arrived() {
    // how the first run ends, and with which exit code
    for (reply, code) in [
        (unsettled(Reply::error(503, "settlement_pending"), "settlement_pending"), 8),
        (Reply::html(500), 1),
        (Reply::html(502), 8),
        (Reply::error(429, "rate_limited"), 8),
        (settled(Reply::html(500)), 1),
        (settled(Reply::ok("{\"a\"")).cut_off(), 8),
        (Reply::error(404, "not_found"), 4),
    ] {
        let (program, shop) = shop([ask(), reply.clone(), reply.clone(), paid(), ask()]);
        for sent_before in [1, 2] {
            program.run(CALL).failure(code);
            assert_eq!(sent(&shop), (sent_before, 1), "{reply:?}");
        }
        assert_eq!(program.run(CALL).expect(0).stdout, "{}");
        assert_eq!((sent(&shop), shop.requests().len()), ((3, 1), 4), "{reply:?}");
        // Another call, and another body, have nothing to do with it.
        program.run(&format!("{CALL} -d 1")).failure(7);
        assert_eq!(sent(&shop), (4, 2));
    }
}

#[test]
fn run_that_was_killed_is_continued_with_the_same_payment() {
    let (program, shop) = shop([ask(), paid().late(Duration::from_secs(60)), paid()]);
    let child = program.start(CALL);
    shop.await_requests("/x", 2);
    let _ = kill(child);
    program.refuses(&[("config remove --yes", 5, "may still be executed")]);
    let _ = program.run(CALL).expect(0).says("which was signed before");
    assert_eq!((sent(&shop), shop.requests().len()), ((2, 1), 3));
    let _ = program.run("config remove --yes").expect(0);
}

#[test]
fn line_that_was_never_whole_was_never_sent() {
    let (program, shop) = shop([ask(), paid()]);
    let _ = program.run(CALL).expect(0);
    let first = program.read(JOURNAL).lines().next().unwrap().to_owned();
    let torn = &first[..first.len() - 5];
    // As if a crash had stopped the run while it wrote the first line.
    program.write(JOURNAL, torn);
    shop.on_each("/x", [ask(), paid()]);
    let before = shop.requests().len();
    let _ = program.run(CALL).expect(0);
    assert_eq!(shop.requests().len(), before + 1, "the service's last reply repeats: no payment was asked for");
    program.write(JOURNAL, format!("{torn}\n{first}\n"));
    program.refuses(&[(CALL, 1, "line 1 of"), (CALL, 1, "left alone")]);
    assert_eq!(shop.requests().len(), before + 1, "nothing is sent while the journal cannot be read");
}

#[test]
fn payment_of_unknown_outcome_makes_way_only_for_a_deliberate_one() {
    let used = refused("invalid_exact_evm_nonce_already_used");
    let (program, shop) = shop([ask(), Reply::html(500), ask(), used, ask(), paid()]);
    program.run(CALL).failure(1);
    let message = program.run(CALL).failure(5);
    assert!(message.contains("may have been executed") && message.contains("--again"), "{message}");
    program.refuses(&[(CALL, 5, "was executed, but")]);
    assert_eq!(sent(&shop), (3, 1));
    let _ = program.run(&format!("{CALL} --again")).expect(0);
    assert_eq!(sent(&shop), (4, 2));
}

#[test]
fn refused_payment_makes_way_once_it_has_expired() {
    let (program, shop) = shop([ask(), refused("insufficient_funds"), ask(), paid()]);
    program.run(CALL).failure(7);
    let text = program.read(JOURNAL);
    let (_, rest) = text.split_once("\"valid_before\":").unwrap();
    program.write(JOURNAL, text.replace(rest.split(',').next().unwrap(), "1000000000"));
    let _ = program.run(CALL).expect(0);
    assert_eq!((sent(&shop), shop.requests().len()), ((2, 2), 4));
}

#[test]
fn refused_payment_makes_way_for_another_wallet_or_account() {
    let no = || refused("insufficient_funds");
    let (program, shop) = shop([ask(), no(), no(), ask(), no(), ask(), paid()]);
    let message = program.run(CALL).failure(7);
    assert!(message.contains("--again") && message.contains(WALLET), "{message}");
    program.run(CALL).failure(7);
    assert_eq!(sent(&shop), (2, 1), "the same wallet has nothing else to send");
    let (other, key, url) = (WALLET_KEY.replace("690d", "690e"), new_key(), shop.url());
    let wallet = ("METERING_CLIENT_WALLET_KEY", other.as_str());
    program.run_with(&[wallet], CALL).failure(7);
    assert_eq!(sent(&shop), (3, 2));
    let account = [wallet, ("METERING_CLIENT_API_KEY", &key), ("METERING_CLIENT_URL", &url)];
    let _ = program.run_with(&account, CALL).expect(0);
    assert_eq!(sent(&shop), (4, 3));
}

#[test]
fn payment_that_is_credit_already_needs_no_other() {
    let credited = || unsettled(Reply::error(409, "payment_credited"), "invalid_exact_evm_nonce_already_used");
    let (program, shop) = shop([ask(), Reply::html(500), credited(), Reply::ok("{}")]);
    shop.on_each("/y", [ask(), Reply::html(500), credited(), ask()]);
    program.run(CALL).failure(1);
    assert_eq!(program.run(CALL).expect(0).stdout, "{}");
    let with: Vec<_> = payments(&shop).iter().map(Option::is_some).collect();
    assert_eq!(with, [false, true, true, false]);
    // If that is not enough, the same run pays nothing more.
    program.refuses(&[("call $shop/y --pay --max 1", 1, ""), ("call $shop/y --pay --max 1", 7, "")]);
    assert_eq!(sent(&shop), (4, 2));
}

#[test]
fn two_runs_of_one_call_take_turns() {
    const LATE: Duration = Duration::from_secs(2);
    let (program, shop) = shop([ask(), paid().late(LATE), ask(), paid()]);
    let start = Instant::now();
    let first = program.start(CALL);
    shop.await_requests("/x", 2);
    let second = program.start(CALL);
    std::thread::sleep(Duration::from_millis(300));
    // Unless this machine is so busy that the first run may have ended.
    assert!(shop.requests().len() == 2 || start.elapsed() >= LATE, "the second run waits");
    for child in [first, second] {
        let _ = ended(child).expect(0);
    }
    assert_eq!((sent(&shop), shop.requests().len()), ((2, 2), 4), "each run is a call, and is paid once");
}
