use std::sync::Arc;
use std::time::Duration;

use metering_core::clock::CalendarPeriod;
use metering_core::store::{EpochReason, LogSecret, LogStore, NewEpoch};
use metering_core::{Charge, Clock, Service, SystemClock, Timestamp};
use metering_log::checkpoint::{Checkpoint, SignedCheckpoint};
use metering_log::keys::{JwkSet, PrivateKey};
use metering_log::note::{KeyName, NoteSigner};
use metering_log::tree::TreeHash;
use metering_proof::{AccountStatement, Sequencer, StatementError, Statements, Stepped};
use metering_sqlite::SqliteStore;

const ORIGIN: &str = "log.example/1";

#[tokio::test]
async fn a_statement_has_what_the_sequencer_appended() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let service = Service::with_defaults(store.clone());
    let (older, _) = service.open_account("older", "5".parse().unwrap()).await.unwrap();
    let month = CalendarPeriod::Month(SystemClock.now().day().month());
    let key = PrivateKey::from_seed(&[7; 32]);
    let statements = Statements::new(store.clone(), key.clone(), "https://api.example.com".to_owned());
    let none = statements.page(&older, month, None, SystemClock.now()).await;
    assert!(matches!(none, Err(StatementError::NoLog)));

    let new = NewEpoch {
        origin: ORIGIN.to_owned(),
        secret: LogSecret::new([1; 32]),
        reason: EpochReason::Init,
        previous: None,
    };
    store.begin_log(new, None, SystemClock.now()).await.unwrap().unwrap();
    let (account, api_key) = service.open_account("my-agent", "2".parse().unwrap()).await.unwrap();
    for _ in 0..3 {
        service.charge(Charge::new(&api_key, "0.25".parse().unwrap(), "GET", "/price")).await.unwrap();
    }
    let now = SystemClock.now();
    let mut sequencer = Sequencer::new(store.clone(), "node".to_owned());
    let Stepped::Leading { head, .. } = sequencer.step(now).await.unwrap() else { panic!("it has the lease") };
    let none = statements.page(&account, month, None, now).await;
    assert!(matches!(none, Err(StatementError::NoCheckpoint)));

    let checkpoint = Checkpoint::new(ORIGIN, head.size, TreeHash::from_bytes(head.root)).unwrap();
    let signer = NoteSigner::new(KeyName::new(ORIGIN).unwrap(), key.clone());
    let note = SignedCheckpoint::sign(checkpoint.clone(), &signer).unwrap().to_string();
    store.publish_checkpoint(head.number, head.size, note).await.unwrap();
    let keys = JwkSet::new([key.public()]);
    // account, types of its lines, requests, funds before and after
    let table = [
        (&account, vec!["signup_bonus", "charged", "charged", "charged"], 3, "0", "1.25"),
        (&older, vec!["opening"], 0, "0", "5"),
    ];
    for (account, kinds, requests, before, after) in table {
        let page = statements.page(account, month, None, now).await.unwrap();
        assert_eq!(page.lines.iter().map(|line| line.kind.as_str()).collect::<Vec<_>>(), kinds);
        assert_eq!(page.lines.iter().filter_map(|line| line.calls).sum::<u64>(), requests);
        assert_eq!((page.complete, page.next), (false, None));
        let summary = AccountStatement::new(page).verify(&keys, &checkpoint).unwrap();
        assert_eq!(summary.account, account.id);
        assert_eq!(summary.opening.unwrap().funds, before.parse().unwrap());
        assert_eq!(summary.closing.unwrap().funds, after.parse().unwrap());
    }
    // A request for what follows the last line must not get a signed statement of outdated funds.
    let beyond = statements.page(&account, month, Some(999), now).await.unwrap();
    assert_eq!((beyond.after, beyond.opening, beyond.closing), (Some(999), None, None));
    let early = statements.page(&account, "2020-01".parse().unwrap(), None, now).await;
    assert!(matches!(early, Err(StatementError::BeforeLog(_))));
    let late = statements.page(&account, "9998-01".parse().unwrap(), None, now).await;
    assert!(matches!(late, Err(StatementError::NotBegun(_))));
}

/// Appends what is not in the log yet, and publishes its head.
async fn publish(store: &Arc<SqliteStore>, key: &PrivateKey, now: Timestamp) -> Checkpoint {
    let mut sequencer = Sequencer::new(store.clone(), "node".to_owned());
    let Stepped::Leading { head, .. } = sequencer.step(now).await.unwrap() else { panic!("it has the lease") };
    let checkpoint = Checkpoint::new(head.origin.as_str(), head.size, TreeHash::from_bytes(head.root)).unwrap();
    let signer = NoteSigner::new(KeyName::new(head.origin.as_str()).unwrap(), key.clone());
    let note = SignedCheckpoint::sign(checkpoint.clone(), &signer).unwrap().to_string();
    store.publish_checkpoint(head.number, head.size, note).await.unwrap();
    checkpoint
}

#[tokio::test]
async fn a_statement_says_what_the_log_before_its_own_has() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let service = Service::with_defaults(store.clone());
    let (account, _) = service.open_account("my-agent", "2".parse().unwrap()).await.unwrap();
    let key = PrivateKey::from_seed(&[7; 32]);
    let keys = JwkSet::new([key.public()]);
    let statements = Statements::new(store.clone(), key.clone(), "https://api.example.com".to_owned());
    let noon = Timestamp::from_unix_millis(1_795_262_400_000);
    let later = noon.saturating_add(Duration::from_secs(60));
    let new = |origin: &str, reason| NewEpoch {
        origin: origin.to_owned(),
        secret: LogSecret::new([1; 32]),
        reason,
        previous: None,
    };
    let page = async |period: &str, checkpoint: &Checkpoint| {
        let page = statements.page(&account, period.parse().unwrap(), None, later).await.unwrap();
        AccountStatement::new(page).verify(&keys, checkpoint).unwrap()
    };

    store.begin_log(new("log.example/1", EpochReason::Init), None, noon).await.unwrap().unwrap();
    let first = publish(&store, &key, noon).await;
    assert_eq!(page("2026-11-21", &first).await.gap, None, "no log was before it");
    store.begin_log(new("log.example/2", EpochReason::Restored), Some(1), later).await.unwrap().unwrap();
    let second = publish(&store, &key, later).await;
    // A day and a month lack what was before the new epoch; the line has the funds at its beginning.
    for (period, start) in [("2026-11-21", "2026-11-21T00:00:00.000Z"), ("2026-11", "2026-11-01T00:00:00.000Z")] {
        let summary = page(period, &second).await;
        assert_eq!((summary.from, summary.lines.len()), (later, 1));
        let gap = summary.gap.unwrap();
        assert_eq!((gap.from.to_string().as_str(), gap.until, gap.reason.as_str()), (start, later, "restored"));
        let previous = gap.previous.unwrap();
        let expected = ("log.example/1", first.size(), first.root().to_string());
        assert_eq!((previous.origin.as_str(), previous.size, previous.root), expected);
    }
}
