//! SIGKILL under load: every confirmed charge is in the database, and the next start is quick.

use std::time::{Duration, Instant};

use metering_core::{Randomness, SystemRandomness};
use metering_tests::load::{Stop, request, start};
use metering_tests::site::Site;

use crate::wire::{BASE, BASE_CALL, CREDIT, amount, balance, patient_plan, usage_events};

const ROUNDS: usize = 12;
const CONNECTIONS: usize = 24;
const ACCOUNTS: usize = 3;
const CREDITS: i64 = 1_000;

#[test]
fn killed_at_random_moments_no_answered_request_is_lost() {
    let site = Site::new();
    let accounts: Vec<_> = (0..ACCOUNTS).map(|_| site.account(&CREDITS.to_string())).collect();
    let calls: Vec<_> = accounts.iter().map(|account| request("GET", BASE, Some(&account.api_key), &[])).collect();
    let (mut answered, mut unanswered_at_most) = (0, 0);
    let mut slowest_start = Duration::ZERO;
    for round in 0..ROUNDS {
        let begun = Instant::now();
        let server = site.server().start();
        let _ = server.client().get("/ready").expect(200);
        slowest_start = slowest_start.max(begun.elapsed());

        let counted: u64 = accounts.iter().map(|account| usage_events(&server.client_with(&account.api_key))).sum();
        assert!((answered..=answered + unanswered_at_most).contains(&counted), "{round}: {counted}, not {answered}");
        // Charges without a response stay: the response was lost, not the request.
        (answered, unanswered_at_most) = (counted, 0);
        for account in &accounts {
            let client = server.client_with(&account.api_key);
            let used = i64::try_from(usage_events(&client)).unwrap() * BASE_CALL;
            assert_eq!(balance(&client), amount(CREDITS * CREDIT - used));
        }
        site.verify();

        let plan = patient_plan(server.address(), CONNECTIONS, Stop::After(Duration::from_secs(30)), calls.clone());
        let load = start(plan, |_| ());
        std::thread::sleep(random_pause());
        server.kill();
        let result = load.join();
        assert_eq!(result.responses(), result.with_status(200), "{result:?}");
        answered += result.with_status(200);
        unanswered_at_most += u64::try_from(CONNECTIONS).unwrap();
    }
    assert!(answered > 100, "there was no load: {answered}");
    let server = site.server().start();
    let counted: u64 = accounts.iter().map(|account| usage_events(&server.client_with(&account.api_key))).sum();
    assert!((answered..=answered + unanswered_at_most).contains(&counted), "{counted}, not {answered}");
    site.verify();
    assert!(slowest_start < Duration::from_secs(1), "{slowest_start:?}");
}

/// 20 to 275 milliseconds.
fn random_pause() -> Duration {
    let mut byte = [0];
    SystemRandomness.fill(&mut byte);
    Duration::from_millis(20 + u64::from(byte[0]))
}
