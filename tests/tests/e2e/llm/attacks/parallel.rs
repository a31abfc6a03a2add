//! Many requests at once never take a balance below zero.

use std::thread;

use crate::llm::scene::Scene;

/// Twenty requests whose `extra_body` requests more than a balance of 0.003 credits can pay.
#[test]
fn limits_in_extra_body_do_not_lower_what_is_held() {
    let scene = Scene::new();
    let account = scene.site.account("0.003");
    let body = r#"{"model": "small", "messages": [{"role": "user", "content": "Hi. output=99999"}], "max_tokens": 1,
        "extra_body": {"max_tokens": 99999}}"#;
    let statuses: Vec<u16> = thread::scope(|scope| {
        let send = || scene.send(&account, "/v1/chat/completions", &[], body.as_bytes()).status;
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(send)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| [200, 402].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&200), "{statuses:?}");
    let spent = 21_600_000 - scene.balance(&account);
    assert!(spent <= 21_600_000, "the balance is below zero: {spent} atoms were spent");
    assert_eq!(u64::try_from(spent).unwrap(), scene.upstream.cost_atoms());
}

/// Requests without a limit hold the maximum cost of one, so only as many run as the balance can pay.
#[test]
fn requests_without_a_limit_never_cost_more_than_the_balance() {
    let scene = Scene::new();
    let account = scene.site.account("1.2");
    let body = r#"{"model": "small", "messages": [{"role": "user", "content": "Hi. output=16000"}], "stream": true}"#;
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| scene.send(&account, "/v1/chat/completions", &[], body.as_bytes()));
        }
    });
    let left = scene.balance(&account);
    assert!(left >= 0, "{left} atoms");
    assert_eq!(u64::try_from(8_640_000_000 - left).unwrap(), scene.upstream.cost_atoms());
}
