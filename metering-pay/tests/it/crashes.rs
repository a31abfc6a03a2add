//! A process that stops in the middle of a payment, and another that continues it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::scene::{SMALL, Scene, assert_served};

#[tokio::test(start_paused = true)]
async fn whatever_call_is_the_last_the_next_process_credits_the_payment_once() {
    let mut stored = 0;
    for calls in 0..16 {
        for keyed in [true, false] {
            let scene = Scene::new().await;
            scene.node.mines.store(calls % 2 == 0, Ordering::SeqCst);
            scene.node.calls_left.store(calls, Ordering::SeqCst);
            let (key, signed) = (keyed.then_some(&scene.key), scene.signed(1, SMALL, 1));
            let sent = tokio::time::timeout(Duration::from_secs(40), scene.send("/quote", key, Some(&signed))).await;
            let was_served = sent.is_ok_and(|response| response.status() == 200);
            scene.node.mine();
            let is_stored = scene.record(&signed).await.is_some();
            stored += u32::from(is_stored);
            assert!(is_stored || scene.received() == 0, "{calls}: nothing is sent before it is stored");
            let next = scene.restarted();
            next.wait(61).await;
            let taken_over = next.payments.settle_authorizations().await.unwrap();
            assert!(taken_over <= 1);
            next.wait(60).await;
            let again = next.send("/quote", key, Some(&signed)).await;
            if keyed || !was_served {
                assert_served(&again);
            }
            assert_eq!(scene.received(), SMALL, "{calls} {keyed}");
            scene.assert_credited_what_was_received().await;
        }
    }
    assert!(stored > 16, "most processes stopped after the payment was stored: {stored}");
}

#[tokio::test(start_paused = true)]
async fn two_processes_that_settle_one_payment_credit_it_once() {
    let scene = Scene::new().await;
    let other = scene.restarted();
    let signed = scene.signed(1, SMALL, 1);
    let (here, there) = tokio::join!(
        scene.send("/quote", Some(&scene.key), Some(&signed)),
        other.send("/quote", Some(&scene.key), Some(&signed))
    );
    assert_served(&here);
    assert_served(&there);
    assert_eq!((scene.balance(&scene.account).await, scene.received()), ("0.01".to_owned(), SMALL));
    scene.assert_credited_what_was_received().await;
}
