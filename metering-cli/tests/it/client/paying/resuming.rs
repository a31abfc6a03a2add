//! A call whose first run failed is not paid another time.

use std::fs;
use std::time::Duration;

use metering_core::{ApiKey, SystemRandomness};

use super::shop::{WALLET, WALLET_KEY, asks, offer, payments, run, settled, unsettled};
use crate::home::{Home, RunOutput, signal};
use crate::stand_in::{Reply, StandIn};

/// Starts a run with the wallet.
fn start(home: &Home, args: &[&str]) -> std::process::Child {
    let mut command = home.command(args);
    command.env("METERING_CLIENT_WALLET_KEY", WALLET_KEY);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
}

/// The payments that were sent, and how many different ones.
fn sent(shop: &StandIn) -> (usize, usize) {
    let mut payments: Vec<_> = payments(shop).into_iter().flatten().collect();
    let all = payments.len();
    payments.sort();
    payments.dedup();
    (all, payments.len())
}

#[test]
fn same_payment_is_sent_until_the_response_has_arrived() {
    let pending = || unsettled(Reply::error(503, "settlement_pending"), "settlement_pending");
    // how the first run ends, and with which exit code
    let table = [
        (pending(), 8),
        (Reply::html(500), 1),
        (Reply::html(502), 8),
        (Reply::error(429, "rate_limited"), 8),
        (settled(Reply::html(500)), 1),
        (settled(Reply::ok("{\"a\"")).cut_off(), 8),
        (Reply::error(404, "not_found"), 4),
    ];
    for (reply, code) in table {
        let shop = StandIn::start();
        shop.on("/x", asks(&[offer(50_000)]))
            .on("/x", reply.clone())
            .on("/x", reply.clone())
            .on("/x", settled(Reply::ok("{}")));
        shop.on("/x", asks(&[offer(50_000)]));
        let home = Home::new();
        let url = format!("{}/x", shop.url());
        let args = ["call", &url, "--pay", "--max", "1"];
        for sent_before in [1, 2] {
            run(&home, &args).failure(code);
            assert_eq!(sent(&shop), (sent_before, 1), "{reply:?}");
        }
        let ran = run(&home, &args);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "{}"), "{ran:?}");
        assert_eq!((sent(&shop), shop.requests().len()), ((3, 1), 4), "{reply:?}");
        // Another call, and another body, have nothing to do with it.
        run(&home, &[&args[..], &["-d", "1"]].concat()).failure(7);
        assert_eq!(sent(&shop), (4, 2));
    }
}

#[test]
fn run_that_was_killed_is_continued_with_the_same_payment() {
    let shop = StandIn::start();
    let slow = settled(Reply::ok("{}")).late(Duration::from_secs(60));
    shop.on("/x", asks(&[offer(50_000)])).on("/x", slow).on("/x", settled(Reply::ok("{}")));
    let home = Home::new();
    let url = format!("{}/x", shop.url());
    let args = ["call", &url, "--pay", "--max", "1"];
    let mut child = start(&home, &args);
    shop.await_requests("/x", 2);
    signal(&child, "KILL");
    child.wait().unwrap();
    let message = home.metering(&["config", "remove", "--yes"]).failure(5);
    assert!(message.contains("may still be executed"), "{message}");
    let ran = run(&home, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("which was signed before"), "{ran:?}");
    assert_eq!((sent(&shop), shop.requests().len()), ((2, 1), 3));
    assert_eq!(home.metering(&["config", "remove", "--yes"]).code, 0);
}

#[test]
fn line_that_was_never_whole_was_never_sent() {
    let shop = StandIn::start();
    shop.on("/x", asks(&[offer(50_000)])).on("/x", settled(Reply::ok("{}")));
    let home = Home::new();
    let (url, journal) = (format!("{}/x", shop.url()), home.profile("default", "pay/journal.jsonl"));
    let args = ["call", &url, "--pay", "--max", "1"];
    assert_eq!(run(&home, &args).code, 0);
    let first = fs::read_to_string(&journal).unwrap().lines().next().unwrap().to_owned();
    // As if a crash had stopped the run while it wrote the first line.
    fs::write(&journal, &first[..first.len() - 5]).unwrap();
    shop.on("/x", asks(&[offer(50_000)])).on("/x", settled(Reply::ok("{}")));
    let before = shop.requests().len();
    assert_eq!(run(&home, &args).code, 0);
    assert_eq!(shop.requests().len(), before + 1, "the service's last reply repeats: no payment was asked for");
    fs::write(&journal, format!("{}\n{first}\n", &first[..first.len() - 5])).unwrap();
    let message = run(&home, &args).failure(1);
    assert!(message.contains("line 1 of") && message.contains("left alone"), "{message}");
    assert_eq!(shop.requests().len(), before + 1, "nothing is sent while the journal cannot be read");
}

#[test]
fn payment_of_unknown_outcome_makes_way_only_for_a_deliberate_one() {
    let shop = StandIn::start();
    let used = || unsettled(Reply::error(402, "payment_refused"), "invalid_exact_evm_nonce_already_used");
    shop.on("/x", asks(&[offer(50_000)])).on("/x", Reply::html(500)).on("/x", asks(&[offer(50_000)])).on("/x", used());
    shop.on("/x", asks(&[offer(50_000)])).on("/x", settled(Reply::ok("{}")));
    let home = Home::new();
    let url = format!("{}/x", shop.url());
    let args = ["call", &url, "--pay", "--max", "1"];
    run(&home, &args).failure(1);
    let message = run(&home, &args).failure(5);
    assert!(message.contains("may have been executed") && message.contains("--again"), "{message}");
    let message = run(&home, &args).failure(5);
    assert!(message.contains("was executed, but"), "{message}");
    assert_eq!(sent(&shop), (3, 1));
    let ran = run(&home, &[&args[..], &["--again"]].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(sent(&shop), (4, 2));
}

#[test]
fn refused_payment_makes_way_once_it_has_expired() {
    let shop = StandIn::start();
    let refused = || unsettled(Reply::error(402, "payment_refused"), "insufficient_funds");
    shop.on("/x", asks(&[offer(50_000)])).on("/x", refused()).on("/x", asks(&[offer(50_000)]));
    shop.on("/x", settled(Reply::ok("{}")));
    let home = Home::new();
    let (url, journal) = (format!("{}/x", shop.url()), home.profile("default", "pay/journal.jsonl"));
    let args = ["call", &url, "--pay", "--max", "1"];
    run(&home, &args).failure(7);
    let text = fs::read_to_string(&journal).unwrap();
    let (_, rest) = text.split_once("\"valid_before\":").unwrap();
    let expiry = rest.split(',').next().unwrap();
    fs::write(&journal, text.replace(expiry, "1000000000")).unwrap();
    assert_eq!(run(&home, &args).code, 0);
    assert_eq!((sent(&shop), shop.requests().len()), ((2, 2), 4));
}

#[test]
fn refused_payment_makes_way_for_another_wallet_or_account() {
    let shop = StandIn::start();
    let refused = || unsettled(Reply::error(402, "payment_refused"), "insufficient_funds");
    shop.on("/x", asks(&[offer(50_000)])).on("/x", refused()).on("/x", refused());
    shop.on("/x", asks(&[offer(50_000)])).on("/x", refused());
    shop.on("/x", asks(&[offer(50_000)])).on("/x", settled(Reply::ok("{}")));
    let home = Home::new();
    let url = format!("{}/x", shop.url());
    let run = |wallet: &str, key: Option<&ApiKey>| -> RunOutput {
        let mut command = home.command(&["call", &url, "--pay", "--max", "1"]);
        command.env("METERING_CLIENT_WALLET_KEY", wallet);
        if let Some(key) = key {
            command.env("METERING_CLIENT_API_KEY", key.expose()).env("METERING_CLIENT_URL", shop.url());
        }
        command.output().unwrap().into()
    };
    let message = run(WALLET_KEY, None).failure(7);
    assert!(message.contains("--again") && message.contains(WALLET), "{message}");
    run(WALLET_KEY, None).failure(7);
    assert_eq!(sent(&shop), (2, 1), "the same wallet has nothing else to send");
    let other = WALLET_KEY.replace("690d", "690e");
    run(&other, None).failure(7);
    assert_eq!(sent(&shop), (3, 2));
    let ran = run(&other, Some(&ApiKey::generate(&SystemRandomness)));
    assert_eq!((ran.code, sent(&shop)), (0, (4, 3)), "{ran:?}");
}

#[test]
fn payment_that_is_credit_already_needs_no_other() {
    let shop = StandIn::start();
    let credited = || unsettled(Reply::error(409, "payment_credited"), "invalid_exact_evm_nonce_already_used");
    shop.on("/x", asks(&[offer(50_000)])).on("/x", Reply::html(500)).on("/x", credited()).on("/x", Reply::ok("{}"));
    shop.on("/y", asks(&[offer(50_000)]))
        .on("/y", Reply::html(500))
        .on("/y", credited())
        .on("/y", asks(&[offer(50_000)]));
    let home = Home::new();
    let call = |path: &str| run(&home, &["call", &format!("{}{path}", shop.url()), "--pay", "--max", "1"]);
    call("/x").failure(1);
    let ran = call("/x");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{}"), "{ran:?}");
    let with: Vec<_> = payments(&shop).iter().map(Option::is_some).collect();
    assert_eq!(with, [false, true, true, false]);
    // If that is not enough, the same run pays nothing more.
    call("/y").failure(1);
    call("/y").failure(7);
    assert_eq!(sent(&shop), (4, 2));
}

#[test]
fn two_runs_of_one_call_take_turns() {
    let shop = StandIn::start();
    let slow = || settled(Reply::ok("{}")).late(Duration::from_millis(700));
    shop.on("/x", asks(&[offer(50_000)])).on("/x", slow()).on("/x", asks(&[offer(50_000)])).on("/x", slow());
    let home = Home::new();
    let url = format!("{}/x", shop.url());
    let args = ["call", &url, "--pay", "--max", "1"];
    let first = start(&home, &args);
    shop.await_requests("/x", 2);
    let second = start(&home, &args);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(shop.requests().len(), 2, "the second run waits");
    for child in [first, second] {
        let ran = RunOutput::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    assert_eq!((sent(&shop), shop.requests().len()), ((2, 2), 4), "each run is a call, and is paid once");
}
