//! Commands while another process has the store open and charges on it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use metering_core::{Credits, Decision};
use serde_json::Value;

use crate::fixture::{Fixture, block_on, charge, now};

#[test]
fn concurrent_commands_and_charges_lose_nothing() {
    let fixture = Fixture::new();
    let account = fixture.create("busy", "1000");
    let org = account.org_id.as_str();
    fixture.admin(&["account", "limits", org, "--rpm", "0", "--rpd", "0"]).success();
    let store = fixture.store();
    let (stop, charged) = (AtomicBool::new(false), AtomicI64::new(0));
    let rounds = 8;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            block_on(async {
                while !stop.load(Ordering::Relaxed) {
                    let decision = charge(store.as_ref(), &account.api_key, "/a", Credits::BASE_CALL, now()).await;
                    assert!(matches!(decision, Decision::Accepted(_)), "{decision:?}");
                    charged.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        // Also stops the charging when a check in this thread fails, which would otherwise wait forever.
        let stop_at_end = StopAtEnd(&stop);
        for round in 0..rounds {
            fixture.admin(&["account", "grant", org, "--credits", "0.5"]).success();
            fixture.create(&format!("agent-{round}"), "1");
            fixture.admin(&["verify", "--json"]).success();
            fixture.admin(&["usage", org]).success();
            let copy = format!("copy-{round}.db");
            fixture.admin(&["backup", &copy]).success();
            fixture.admin(&["--database", &format!("sqlite:{copy}"), "verify"]).success();
        }
        drop(stop_at_end);
    });
    let charged = charged.into_inner();
    assert!(charged > rounds, "{charged}");
    let account: Value = fixture.json(&["account", "show", org]);
    let granted = (1000 * 2 + rounds) * 7_200_000_000 / 2;
    let balance = Credits::from_atoms(granted - charged * Credits::BASE_CALL.atoms());
    assert_eq!(account["credit_balance"].to_string(), balance.to_string());
    let verified: Value = fixture.json(&["verify"]);
    assert_eq!(verified["accounts"], 1 + rounds);
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
