//! SIGKILL under load: every confirmed charge is in the database. `bench startup` measures how long the next start takes.

use std::time::Duration;

use metering_core::{Randomness, SystemRandomness};
use metering_tests::load::{Stop, request, start};
use metering_tests::site::Site;

use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance, plan_with_long_timeout, usage_events};

const ROUNDS: usize = 12;
const CONNECTIONS: usize = 24;
const ACCOUNTS: usize = 3;
const CREDITS: i64 = 1_000;

#[test]
fn sigkill_at_random_moments_loses_no_confirmed_charge() {
    let site = Site::new();
    let accounts: Vec<_> = (0..ACCOUNTS).map(|_| site.account(&CREDITS.to_string())).collect();
    let calls: Vec<_> = accounts.iter().map(|account| request("GET", BASE, Some(&account.api_key), &[])).collect();
    let (mut confirmed, mut max_unknown) = (0, 0);
    for round in 0..ROUNDS {
        let server = site.server().start();
        let _ = server.client().get("/ready").expect(200);

        let counted: u64 = accounts.iter().map(|account| usage_events(&server.client_with(&account.api_key))).sum();
        assert!((confirmed..=confirmed + max_unknown).contains(&counted), "{round}: {counted}, not {confirmed}");
        // Charges without a response stay: the response was lost, not the request.
        (confirmed, max_unknown) = (counted, 0);
        for account in &accounts {
            let client = server.client_with(&account.api_key);
            let used = i64::try_from(usage_events(&client)).unwrap() * BASE_CALL;
            assert_eq!(balance(&client), amount(CREDITS * CREDIT - used));
        }
        site.verify();

        let plan =
            plan_with_long_timeout(server.address(), CONNECTIONS, Stop::After(Duration::from_secs(30)), calls.clone());
        let load = start(plan, |_| ());
        std::thread::sleep(random_pause());
        server.kill();
        let result = load.join();
        assert_eq!(result.responses(), result.with_status(200), "{result:?}");
        confirmed += result.with_status(200);
        max_unknown += u64::try_from(CONNECTIONS).unwrap();
    }
    assert!(confirmed > 100, "there was no load: {confirmed}");
    let server = site.server().start();
    let counted: u64 = accounts.iter().map(|account| usage_events(&server.client_with(&account.api_key))).sum();
    assert!((confirmed..=confirmed + max_unknown).contains(&counted), "{counted}, not {confirmed}");
    site.verify();
}

/// 20 to 275 milliseconds.
fn random_pause() -> Duration {
    let mut byte = [0];
    SystemRandomness.fill(&mut byte);
    Duration::from_millis(20 + u64::from(byte[0]))
}
