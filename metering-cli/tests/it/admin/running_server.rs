//! Commands while another process has the store open and charges on it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use metering_core::{Credits, Decision};

use super::{charge, now};
use crate::program::Program;
use crate::store::block_on;

#[test]
fn concurrent_commands_and_charges_lose_nothing() {
    let program = Program::without_store();
    let account = program.create("busy", "1000");
    program.call("busy", &account.org_id);
    program.run("account limits $busy --rpm 0 --rpd 0").success();
    let (store, rounds) = (program.store(), 8);
    let (stop, charged) = (AtomicBool::new(false), AtomicI64::new(0));
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
            let lines = [
                "account grant $busy --credits 0.5".to_owned(),
                format!("account create --agent-name agent-{round} --credits 1"),
                "verify --json".to_owned(),
                "usage $busy".to_owned(),
                format!("backup copy-{round}.db"),
                format!("--database sqlite:copy-{round}.db verify"),
            ];
            for line in lines {
                program.run(&line).success();
            }
        }
        drop(stop_at_end);
    });
    let charged = charged.into_inner();
    assert!(charged > rounds, "{charged}");
    let granted = (1000 * 2 + rounds) * 7_200_000_000 / 2;
    let balance = Credits::from_atoms(granted - charged * Credits::BASE_CALL.atoms()).to_string();
    program.prints(&[("account show $busy --json", &[&format!("\"credit_balance\":{balance},")])]);
    program.documents(&[("verify", &[("/accounts", &(1 + rounds).to_string())])]);
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
