//! The log of every posting stays behind, and goes on in a new epoch, whose first entry says how it ended.

use metering_core::store::{EpochReason, LogStep, LogStore, Logged, PreviousLog};
use metering_log::checkpoint::{Checkpoint, SignedCheckpoint};
use metering_log::keys::PrivateKey;
use metering_log::note::{KeyName, NoteSigner};
use metering_log::tree::TreeHash;
use metering_tests::postgres::is_skipped;

use super::{Move, NOON};
use crate::store::block_on;

const ORIGIN: &str = "example.com/log/1";

/// Appends entries as a sequencer does, and publishes the checkpoint of the first of them.
async fn publish(store: &dyn LogStore) -> PreviousLog {
    let epoch = store.claim_log("node", std::time::Duration::from_secs(9), NOON).await.unwrap().unwrap();
    let step = |from: u64, size: u64| LogStep {
        epoch: 1,
        node: "node".to_owned(),
        from,
        size,
        root: [u8::try_from(size).unwrap(); 32],
        bundles: Vec::new(),
        tiles: Vec::new(),
        accounts: Vec::new(),
        lines: Vec::new(),
        taken: epoch.taken,
        batches: Vec::new(),
        swept: Vec::new(),
        swept_from: None,
    };
    assert!(store.append_log(step(0, 5)).await.unwrap());
    let signer = NoteSigner::new(KeyName::new(ORIGIN).unwrap(), PrivateKey::from_seed(&[7; 32]));
    let checkpoint = Checkpoint::new(ORIGIN, 5, TreeHash::from_bytes([5; 32])).unwrap();
    let note = SignedCheckpoint::sign(checkpoint, &signer).unwrap().to_string();
    store.publish_checkpoint(1, 5, note).await.unwrap();
    assert!(store.append_log(step(5, 9)).await.unwrap());
    PreviousLog { origin: ORIGIN.to_owned(), size: 5, root: [5; 32] }
}

#[test]
fn a_move_says_how_the_log_ended_and_the_next_epoch_begins_with_that() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::with_one_account();
    moving.program.run("log init log.pem --public-url https://example.com --database $from").success();
    let ended = block_on(async { publish(&moving.sqlite()).await });
    let moved = moving.migrate();
    assert!(moved.contains(&format!("--because moved --previous {ended}")), "what was signed last: {moved}");
    let next = format!(
        "log new-epoch log.pem --because moved --previous {ended} --public-url https://example.com --yes --database $to"
    );
    assert!(moving.program.run(&next).success().contains("example.com/log/2"));
    block_on(async {
        let store = moving.postgres().await;
        let epochs = store.log_epochs().await.unwrap();
        let [epoch] = &epochs[..] else { panic!("the old epoch stays behind: {epochs:?}") };
        assert_eq!((epoch.number, epoch.previous.as_ref()), (2, Some(&ended)));
        let first = store.unlogged(epoch, 1).await.unwrap().postings.remove(0);
        assert_eq!(first.what, Logged::epoch(&ended, EpochReason::Moved));
    });
}
