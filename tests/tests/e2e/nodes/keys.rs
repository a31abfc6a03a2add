//! Keys and credits across several nodes: a change by one node holds on all nodes from the moment of its response.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use metering_tests::client::Client;
use metering_tests::postgres::{Cluster, is_skipped};
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::support::shop::{Kind, Shop, key_of, top_up};
use crate::support::wait::until;
use crate::support::wire::{BASE, balance};

/// When a request was sent, and the status of its response.
type Sent = (Instant, u16);

/// How many responses there are before a change.
const BEFORE: usize = 6;

/// Runs `work` while clients of each node send requests without a pause, and returns the responses' statuses.
fn while_busy<T>(clients: &[Client], work: impl FnOnce() -> T) -> (T, Vec<Sent>) {
    let (over, responses) = (AtomicBool::new(false), AtomicUsize::new(0));
    let responded = |count| until("enough requests have responses", || responses.load(Ordering::Relaxed) >= count);
    thread::scope(|scope| {
        let busy: Vec<_> = clients
            .iter()
            .flat_map(|client| [client, client])
            .map(|client| {
                scope.spawn(|| {
                    let mut sent = Vec::new();
                    while !over.load(Ordering::Relaxed) {
                        let started = Instant::now();
                        sent.push((started, client.get(BASE).status));
                        responses.fetch_add(1, Ordering::Relaxed);
                    }
                    sent
                })
            })
            .collect();
        responded(BEFORE);
        let done = work();
        // One more than there are clients: so one of them has sent its request after the change.
        responded(responses.load(Ordering::Relaxed) + busy.len() + 1);
        over.store(true, Ordering::Relaxed);
        (done, busy.into_iter().flat_map(|busy| busy.join().unwrap()).collect())
    })
}

fn clients(nodes: &[&Server], key: &str) -> Vec<Client> {
    nodes.iter().map(|node| node.client_with(key)).collect()
}

#[test]
fn rotation_on_one_node_takes_effect_on_all() {
    metering_tests::skip_if!(is_skipped());
    let Some(shop) = Shop::open_on(Site::on_database(Cluster::shared().fresh_schema())) else { return };
    let others = [shop.another(), shop.another()];
    let nodes = [&shop.server, &others[0], &others[1]];
    let customer = shop.customer();
    let mut key = shop.signed_up(Kind::Token, &customer);
    // Accounts from a signup have rate limits, which the load would reach.
    let about = shop.server.client_with(&key).get("/credits/balance").expect(200).json();
    let _ = shop.site.admin_json(&["account", "limits", about["org_id"].as_str().unwrap(), "--rpm", "0", "--rpd", "0"]);
    for round in 0..6 {
        // The nodes verify in turn; the first one issues every challenge.
        let (nonce, message) = shop.challenge(&customer.address());
        let signature = shop.chain.wallet().sign_message(&customer, &message);
        let body = serde_json::json!({ "address": customer.address(), "nonce": nonce, "signature": signature });
        let verifier = nodes[round % 3].client();
        let ((rotated, responded_at), sent) = while_busy(&clients(&nodes, &key), || {
            (verifier.post("/api-key/recover/verify", &body).expect(200), Instant::now())
        });
        let accepted = sent.iter().filter(|(_, status)| *status == 200).count();
        assert!(accepted >= BEFORE, "round {round}: {accepted} of {}", sent.len());
        assert!(sent.iter().all(|(_, status)| [200, 401].contains(status)), "round {round}");
        let after: Vec<_> = sent.iter().filter(|(started, _)| *started > responded_at).collect();
        assert!(!after.is_empty());
        assert!(after.iter().all(|(_, status)| *status == 401), "round {round}: {} sent after it", after.len());
        key = key_of(&rotated);
        for node in nodes {
            let _ = node.client_with(&key).get(BASE).expect(200);
        }
    }
    // A payment reported to one node counts on the others.
    let (chain, hash) = (shop.chain.chain_id(), shop.pay(Kind::Token, &customer, Kind::Token.price()));
    let before = balance(&others[0].client_with(&key));
    let _ = top_up(&shop.server.client_with(&key), chain, Kind::Token, &hash, None).expect(200);
    let after = balance(&others[0].client_with(&key));
    assert_ne!(after, before);
    // Reported again to another node, it is still the same payment.
    let _ = top_up(&others[1].client_with(&key), chain, Kind::Token, &hash, None).expect(200);
    for node in nodes {
        assert_eq!(balance(&node.client_with(&key)), after);
    }
    shop.site.verify();
}
