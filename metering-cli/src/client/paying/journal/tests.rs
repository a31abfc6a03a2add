use std::fs;

use super::*;
use crate::client::access::home::Home;

struct Scene {
    _directory: tempfile::TempDir,
    journal: Journal,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::find(|_| Some(directory.path().into())).unwrap();
        let journal = Journal::of(&Profile::load(&home, "default".parse().unwrap()).unwrap());
        Self { _directory: directory, journal }
    }

    async fn add(&self, entry: &Entry) {
        self.journal.lock().await.unwrap().add(entry).unwrap();
    }

    async fn open(&self, call: &str) -> Option<String> {
        self.journal.open_payment(call).await.unwrap().map(|payment| payment.entry.id)
    }
}

fn entry(id: &str, call: &str, amount: &str, at: Timestamp) -> Entry {
    let address = metering_core::chains::Address::from_bytes([7; 20]);
    Entry {
        id: id.to_owned(),
        at,
        call: call.to_owned(),
        account: None,
        method: "GET".to_owned(),
        url: "https://a.example/x".to_owned(),
        is_automatic: true,
        amount: amount.parse().unwrap(),
        symbol: "USDC".to_owned(),
        units: metering_core::chains::TokenUnits::new(1),
        chain_id: 8_453,
        token: address,
        payer: address,
        pay_to: address,
        valid_before: u64::try_from(at.unix_seconds()).unwrap() + 60,
        header: "payment-signature".to_owned(),
        payment: "secret".to_owned(),
    }
}

#[tokio::test]
async fn a_payment_is_found_until_its_response_has_arrived() {
    let scene = Scene::new();
    assert_eq!(scene.open("call").await, None);
    let now = SystemClock.now();
    scene.add(&entry("0x1", "call", "0.05", now)).await;
    scene.add(&entry("0x2", "other", "0.05", now)).await;
    for state in [State::Unknown, State::Refused { why: "no".to_owned() }, State::Settled { transaction: None }] {
        scene.journal.change("0x1", state).await.unwrap();
        assert_eq!(scene.open("call").await.as_deref(), Some("0x1"));
    }
    scene.journal.change("0x1", State::Done { transaction: Some("0xab".to_owned()) }).await.unwrap();
    assert_eq!(scene.open("call").await, None);
    assert_eq!(scene.open("other").await.as_deref(), Some("0x2"));
    let payment = scene.journal.open_payment("other").await.unwrap().unwrap();
    assert_eq!(payment.entry.to_header().unwrap().1, "secret");
    assert!(!format!("{payment:?}").contains("secret"));
}

#[tokio::test]
async fn line_that_was_cut_short_is_removed_and_damage_is_left_alone() {
    let scene = Scene::new();
    let now = SystemClock.now();
    scene.add(&entry("0x1", "call", "0.05", now)).await;
    let path = scene.journal.path();
    let whole = fs::read_to_string(&path).unwrap();
    let cut = |text: &str| text[..text.len() - 9].to_owned();
    fs::write(&path, format!("{whole}{}", cut(&whole.replace("0x1", "0x2")))).unwrap();
    assert_eq!(scene.open("call").await.as_deref(), Some("0x1"));
    scene.add(&entry("0x3", "other", "0.05", now)).await;
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!((text.lines().count(), text.contains("0x2")), (2, false));
    let damaged = format!("{}\n{text}", cut(&whole));
    fs::write(&path, &damaged).unwrap();
    let error = scene.journal.open_payment("call").await.unwrap_err().to_string();
    assert!(error.contains("line 1 of") && !error.contains("secret"), "{error}");
    assert!(scene.journal.lock().await.unwrap().add(&entry("0x4", "call", "1", now)).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
}

#[tokio::test]
async fn automatic_payments_of_the_last_day_count_whatever_became_of_them() {
    let scene = Scene::new();
    let now = SystemClock.now();
    let ago = |minutes: u64| now.saturating_sub(Duration::from_secs(minutes * 60));
    scene.add(&entry("0x1", "a", "0.1", ago(24 * 60))).await;
    scene.add(&entry("0x2", "b", "0.2", ago(24 * 60 - 1))).await;
    scene.add(&entry("0x3", "c", "0.4", ago(1))).await;
    scene.add(&Entry { is_automatic: false, ..entry("0x4", "d", "8", ago(1)) }).await;
    scene.journal.change("0x2", State::Refused { why: String::new() }).await.unwrap();
    scene.journal.change("0x3", State::GivenUp).await.unwrap();
    // As if the clock had been set back since.
    scene.add(&entry("0x5", "e", "0.05", now.saturating_add(Duration::from_secs(3_600)))).await;
    let book = scene.journal.lock().await.unwrap().read().unwrap();
    assert_eq!(book.spent(now).to_string(), "0.65");
}

#[tokio::test]
async fn long_file_loses_what_is_long_finished() {
    let scene = Scene::new();
    let now = SystemClock.now();
    let old = now.saturating_sub(KEPT * 2);
    let long = "x".repeat(usize::try_from(FILE_BYTES_MAX).unwrap() / 2);
    let big = |id: &str| Entry { url: long.clone(), ..entry(id, id, "1", old) };
    for id in ["0x1", "0x2", "0x3"] {
        scene.add(&big(id)).await;
    }
    scene.journal.change("0x1", State::Done { transaction: None }).await.unwrap();
    scene.journal.change("0x2", State::Refused { why: String::new() }).await.unwrap();
    scene.journal.change("0x3", State::Unknown).await.unwrap();
    scene.add(&entry("0x4", "0x4", "1", now)).await;
    let book = scene.journal.lock().await.unwrap().read().unwrap();
    let ids: Vec<_> = book.payments.iter().map(|payment| payment.entry.id.as_str()).collect();
    assert_eq!(ids, ["0x3", "0x4"]);
    assert_eq!(book.payments[0].state, State::Unknown);
}

#[tokio::test]
async fn one_process_writes_at_a_time() {
    let scene = Scene::new();
    let lock = scene.journal.lock().await.unwrap();
    let (journal, now) = (scene.journal.clone(), SystemClock.now());
    let waiting = tokio::spawn(async move {
        journal.lock().await.unwrap().add(&entry("0x2", "b", "1", now)).unwrap();
    });
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert!(!waiting.is_finished());
    lock.add(&entry("0x1", "a", "1", now)).unwrap();
    drop(lock);
    waiting.await.unwrap();
    assert_eq!(scene.journal.lock().await.unwrap().read().unwrap().payments.len(), 2);
}
