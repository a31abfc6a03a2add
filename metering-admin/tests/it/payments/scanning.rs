//! Which payments a scan finds, in which blocks, and with which status.

use std::num::NonZeroU64;

use metering_admin::AdminError;
use metering_admin::payments::{ReadableChain, Scan, ScanError, ScanRequest, Unread, scan};
use metering_core::chains::{ChainError, TxHash};
use metering_core::payments::{ArrivalLocation, UnreadableArrival};
use metering_core::{Clock, PaymentStore};

use super::scene::{MAIN, STARTER, Scene, chain};
use super::wallet::Wallet;
use super::{account, everything, pay, pay_at_once, reverse, scan_main, top_up};

fn hashes(scan: &Scan) -> Vec<TxHash> {
    scan.found.iter().map(|found| found.arrival.tx.hash).collect()
}

#[tokio::test]
async fn every_payment_has_its_status() {
    let scene = Scene::new().await;
    let (_, owner) = scene.customer(&Wallet::of(1), MAIN).await;
    let (key, id) = scene.account_without_wallet().await;
    let quoted = scene.quote(&Wallet::of(2), "starter", MAIN).await.unwrap();
    let quoted = scene.pay(&Wallet::of(2), &quoted);
    let top_up_quote = scene.top_up_quote(&key, "starter", MAIN).await.unwrap();
    let top_up_quoted = scene.pay_top_up(Wallet::of(8).address, &top_up_quote);
    let known = scene.pay_price(&Wallet::of(1), MAIN);
    let own_top_up = pay(&scene, 3, STARTER);
    top_up(&scene, &id, own_top_up).await;
    let linked = pay(&scene, 3, STARTER);
    let unknown = pay(&scene, 4, STARTER - 1);
    let unclear = pay_at_once(&scene.main, 5, &[STARTER, STARTER], 0);

    let unclaimed = scan_main(&scene, everything()).await.unwrap();
    let owner = owner.org_id;
    // transaction, status, accounts, note
    let table: [(TxHash, &str, &[&str], String); 6] = [
        (quoted, "quoted", &[], "quote of agent is not claimed yet".to_owned()),
        (top_up_quoted, "quoted", &[], format!("top-up quote of {id} waits for it")),
        (known, "known_payer", &[&owner], format!("its wallet paid for the signup of {owner}")),
        (linked, "linked_wallet", &[id.as_str()], format!("its wallet is linked to {id}")),
        (unknown, "unknown_payer", &[], "matches no quote or account".to_owned()),
        (unclear, "unclear", &[], "The transaction has 2 transfers of the token to the recipient".to_owned()),
    ];
    assert_eq!(hashes(&unclaimed), table.each_ref().map(|(hash, ..)| *hash), "in chain order");
    for (found, (hash, status, accounts, note)) in unclaimed.found.iter().zip(&table) {
        assert_eq!((found.status.as_str(), found.status.state()), (*status, None), "{hash}");
        let found_accounts: Vec<&str> = found.status.accounts().into_iter().map(|id| id.as_str()).collect();
        assert_eq!(found_accounts, *accounts, "{hash}");
        assert!(found.status.to_string().starts_with(note), "{}", found.status);
        assert_eq!(found.status.quote().is_some(), *status == "quoted");
    }

    let all = scan_main(&scene, ScanRequest { with_used: true, ..everything() }).await.unwrap();
    let used: Vec<_> = all.found.iter().filter(|found| found.status.is_used()).collect();
    assert_eq!(all.found.len(), table.len() + used.len());
    let notes: Vec<String> = used.iter().map(|found| found.status.to_string()).collect();
    assert_eq!(notes, [format!("signup of {owner}, plan starter"), format!("top-up of {id}")]);
    assert_eq!((used[1].status.as_str(), used[1].status.state()), ("used", Some("unsettled")));
}

#[tokio::test]
async fn default_range_looks_back_from_the_watchers_block() {
    let scene = Scene::new().await;
    scene.main.grow(50_000);
    let range = async || {
        let scan = scan_main(&scene, ScanRequest::default()).await.unwrap();
        (scan.from_block, scan.to_block, scan.next_block)
    };
    // The newest block with three confirmations.
    assert_eq!(range().await, (39_998, 49_998, None), "no watcher has run");
    scene.store.set_scan_mark(MAIN, 30_000).await.unwrap();
    assert_eq!(range().await, (20_000, 49_998, None), "the watcher is behind");
    let request = ScanRequest { to_block: Some(25_000), ..ScanRequest::default() };
    assert_eq!(scan_main(&scene, request).await.unwrap().from_block, 15_000, "the watcher is ahead");
    let request = ScanRequest { to_block: Some(9_000), ..ScanRequest::default() };
    assert_eq!(scan_main(&scene, request).await.unwrap().from_block, 0);
}

#[tokio::test]
async fn scan_reads_only_the_requested_blocks() {
    let scene = Scene::new().await;
    let payments: Vec<TxHash> = (1..=3).map(|payer| pay(&scene, payer, STARTER)).collect();
    // Blocks 1, 12 and 23.
    let request = ScanRequest { from_block: Some(2), to_block: Some(12), ..ScanRequest::default() };
    let some = scan_main(&scene, request).await.unwrap();
    assert_eq!((hashes(&some), some.from_block, some.to_block), (vec![payments[1]], 2, 12));

    let too_new = ScanRequest { to_block: Some(33), ..ScanRequest::default() };
    let error = scan_main(&scene, too_new).await.unwrap_err();
    assert_eq!(error.to_string(), "block 33 is not confirmed yet; the newest confirmed block is 31");
    let backwards = ScanRequest { from_block: Some(13), to_block: Some(12), ..ScanRequest::default() };
    let error = scan_main(&scene, backwards).await.unwrap_err();
    assert_eq!(error.to_string(), "block 13 is after block 12, the last block to read");
    assert!(matches!(AdminError::from(error), AdminError::Invalid(_)));
}

#[tokio::test]
async fn bounded_scans_continue_where_the_last_one_ended() {
    let scene = Scene::new().await;
    let (_, reversed) = scene.customer(&Wallet::of(9), MAIN).await;
    let reversed: TxHash = reversed.tx_hash.parse().unwrap();
    reverse(&scene, reversed).await;
    let payments: Vec<TxHash> = (1..=3).map(|payer| pay(&scene, payer, STARTER)).collect();

    let (mut found, mut ranges, mut next) = (Vec::new(), Vec::new(), Some(0));
    while let Some(from_block) = next {
        let request = ScanRequest { from_block: Some(from_block), blocks_max: NonZeroU64::new(20), ..everything() };
        let scan = scan_main(&scene, request).await.unwrap();
        found.extend(hashes(&scan));
        ranges.push((scan.from_block, scan.to_block));
        next = scan.next_block;
    }
    assert_eq!(ranges, [(0, 19), (20, 39), (40, 44)]);
    assert_eq!(found, [payments.as_slice(), &[reversed]].concat(), "each once");
    assert_eq!(hashes(&scan_main(&scene, everything()).await.unwrap()), found, "as without a bound");

    let exact = ScanRequest { blocks_max: NonZeroU64::new(45), ..everything() };
    assert_eq!(scan_main(&scene, exact).await.unwrap().next_block, None);
    let one = ScanRequest { blocks_max: NonZeroU64::new(1), ..everything() };
    assert_eq!(scan_main(&scene, one).await.unwrap().next_block, Some(1));
}

#[tokio::test]
async fn reversed_payment_is_always_listed() {
    let scene = Scene::new().await;
    let (_, claimed) = scene.customer(&Wallet::of(1), MAIN).await;
    assert_eq!(hashes(&scan_main(&scene, everything()).await.unwrap()), []);
    reverse(&scene, claimed.tx_hash.parse().unwrap()).await;
    let request = ScanRequest { from_block: Some(9), ..ScanRequest::default() };
    let scan = scan_main(&scene, request).await.unwrap();
    assert_eq!(scan.found.len(), 1);
    assert_eq!((scan.found[0].status.as_str(), scan.found[0].status.state()), ("used", Some("reversed")));
    assert_eq!(scan.found[0].arrival.tx.hash.to_string(), claimed.tx_hash);
}

#[tokio::test]
async fn unreadable_arrivals_are_listed_with_the_watchers_record() {
    let scene = Scene::new().await;
    let (new, recorded, before) = (pay(&scene, 1, STARTER), pay(&scene, 2, STARTER), pay(&scene, 3, STARTER));
    for hash in [new, recorded] {
        scene.main.spoil(hash, Some(ChainError::Unreadable("too large".to_owned())));
    }
    let location = |block_number, hash| ArrivalLocation { chain_id: MAIN, block_number, hash: Some(hash) };
    let record = UnreadableArrival::new(location(12, recorded), "its receipt is too large", scene.clock.now());
    scene.store.put_unreadable(record.clone()).await.unwrap();
    let request = ScanRequest { to_block: Some(23), ..everything() };
    let scan = scan_main(&scene, request).await.unwrap();
    assert_eq!(hashes(&scan), [before]);
    let reason = "the chain's RPC response cannot be read: too large".to_owned();
    let expected = [Unread::Now { location: location(1, new), reason }, Unread::Recorded(record)];
    assert_eq!(scan.unread, expected);
    let later = ScanRequest { from_block: Some(13), ..ScanRequest::default() };
    assert_eq!(scan_main(&scene, later).await.unwrap().unread, []);
}

#[tokio::test]
async fn scan_reports_its_progress() {
    let scene = Scene::new().await;
    scene.main.grow(4_502);
    let (plans, listed) = (scene.store.plans().await.unwrap(), chain(MAIN));
    let readable = ReadableChain { name: "main", chain: &listed, reader: &*scene.main };
    let mut steps = Vec::new();
    let mut progress = |next, last| steps.push((next, last));
    scan(&*scene.store, &plans, readable, everything(), &mut progress).await.unwrap();
    assert_eq!(steps, [(0, 4_500), (2_000, 4_500), (4_000, 4_500)]);
}

#[tokio::test]
async fn chain_that_cannot_be_read_is_named() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    scene.main.trouble(Some(ChainError::Unavailable("timeout".to_owned())));
    let error = scan_main(&scene, everything()).await.unwrap_err();
    assert!(matches!(&error, ScanError::Chain { chain, .. } if chain == "main"), "{error:?}");
    let expected = "could not read chain main: the chain's RPC failed: timeout";
    assert_eq!(AdminError::from(error).to_string(), expected);
    let assignment = super::starter(TxHash::from_bytes([1; 32]), &id);
    let error = super::assign_main(&scene, &assignment).await.unwrap_err();
    assert!(matches!(AdminError::from(error), AdminError::Chain { .. }));
}
