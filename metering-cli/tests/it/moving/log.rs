//! The log of every posting stays behind, and goes on in a new epoch.

use metering_core::store::LogStore;
use metering_tests::postgres::is_skipped;

use super::Move;
use crate::store::block_on;

#[test]
fn a_move_names_the_last_epoch_and_the_next_one_begins_in_the_database() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::with_one_account();
    moving.program.run("log init log.pem --public-url https://example.com --database $from").success();
    let moved = moving.migrate();
    assert!(moved.contains("--because moved --after 1"), "{moved}");
    let next = "log new-epoch log.pem --because moved --after 1 --public-url https://example.com --yes --database $to";
    assert!(moving.program.run(next).success().contains("example.com/log/2"));
    let epochs = block_on(async { moving.postgres().await.log_epochs().await.unwrap() });
    assert_eq!(epochs.iter().map(|epoch| epoch.number).collect::<Vec<_>>(), [2]);
}
