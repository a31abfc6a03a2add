//! Bundles: their bytes, and the openings in them.

use std::convert::Infallible;

use metering_core::access::KeyNumber;
use metering_core::chains::{TxHash, TxRef};
use metering_core::charging::UsageKind;
use metering_core::money::LedgerKind;
use metering_core::store::{EpochReason, LogEpoch, Taken};
use metering_core::{AccountId, Credits, Day, Timestamp, UsageLine};
use metering_proof::{
    AccountSalts, BUNDLE_LEAVES, Bundle, ChainHead, Leaf, LeafFault, Names, OpenedLeaf, Posting, UnknownName, entry,
};

use crate::hex;
use crate::leaf::{account, chat_line, cli_line, openings, secret};

/// [`example`], packed by a Python program from the description of the format, in hex.
const VECTOR: &str = include_str!("../vectors/bundle.txt");
const NOON: i64 = 1_795_262_400_000;
/// The log's numbers in the example.
const ACCOUNT: u32 = 5;
const OTHER_ACCOUNT: u32 = 70_000;
const CLI_LINE: u32 = 3;
const CHAT_LINE: u32 = 300;

fn public_text() -> String {
    format!("metering-public-v1\nprices 3 1795248000000 {}", "0".repeat(64))
}

/// The leaves of [`openings`], a public entry with an earlier time, and a leaf of another account that repeats one of them.
fn example() -> Bundle {
    let mut bundle = Bundle::default();
    let mut before = ChainHead::default();
    for opening in openings() {
        let line = |line: &UsageLine| Ok::<_, Infallible>(if *line == cli_line() { CLI_LINE } else { CHAT_LINE });
        let (at, amount, posting) = (opening.at, opening.amount, opening.posting.with_line(line).unwrap());
        bundle.push(Leaf::Posted { account: ACCOUNT, before, at, amount, posting }).unwrap();
        before = before.after(amount).unwrap();
    }
    let first = bundle.leaves()[0].at();
    bundle.push(Leaf::Public { at: first, text: public_text() }).unwrap();
    let Leaf::Posted { amount, posting, .. } = bundle.leaves()[3].clone() else { panic!("it is of an account") };
    let before = ChainHead { leaves: 99, funds: Credits::from_atoms(-1) };
    let at = Timestamp::from_unix_millis(first.unix_millis() + 7);
    bundle.push(Leaf::Posted { account: OTHER_ACCOUNT, before, at, amount, posting }).unwrap();
    bundle
}

fn names() -> Names {
    Names::new(&LogEpoch {
        number: 1,
        origin: "api.example.com/log".to_owned(),
        secret: secret(),
        reason: EpochReason::Init,
        previous: None,
        began_at: Timestamp::from_unix_millis(NOON),
        ended_at: None,
        size: 0,
        root: [0; 32],
        minimum: 0,
        accounts: 0,
        taken: Taken::default(),
        swept_from: 0,
        checkpoint: None,
    })
}

#[test]
fn bundles_have_the_bytes_of_another_program() {
    assert_eq!(hex(&example().pack()), VECTOR.trim());
}

#[test]
fn bundles_open_to_the_openings_that_they_were_made_of() {
    let (mut names, bundle) = (names(), Bundle::unpack(&example().pack()).unwrap());
    assert_eq!(bundle.open(&names), Err(UnknownName::Account(ACCOUNT)));
    names.add_account(ACCOUNT, &account());
    assert_eq!(bundle.open(&names), Err(UnknownName::Line(CLI_LINE)));
    names.add_line(CLI_LINE, cli_line());
    names.add_line(CHAT_LINE, chat_line());
    let other: AccountId = "org_BBBBBBBBBBBBBBBBBBBB".parse().unwrap();
    names.add_account(OTHER_ACCOUNT, &other);

    let opened = bundle.open(&names).unwrap();
    let salts = AccountSalts::new(&secret(), &account());
    for (opened, opening) in opened.iter().zip(openings()) {
        let salt = salts.salt(opening.number);
        assert_eq!(opened.entry(), entry(&salt, &opening.to_bytes()));
        assert_eq!(*opened, OpenedLeaf::Posted { opening, salt });
    }
    assert_eq!(opened[7].entry(), public_text().as_bytes());
    let OpenedLeaf::Posted { opening, .. } = &opened[8] else { panic!("it is of an account") };
    assert_eq!((&opening.account, opening.number, opening.funds.atoms()), (&other, 99, -750_001));
    assert_eq!(opened.len(), 9);
}

#[test]
fn heads_are_where_the_leaves_of_each_account_end() {
    let (heads, last) = (example().heads().clone(), openings().pop().unwrap());
    assert_eq!(heads[&ACCOUNT], ChainHead { leaves: 7, funds: last.funds });
    assert_eq!(heads[&OTHER_ACCOUNT], ChainHead { leaves: 100, funds: Credits::from_atoms(-750_001) });
    let earlier = example().first(2).unwrap();
    assert_eq!(earlier.leaves(), &example().leaves()[..2]);
    assert_eq!(earlier.heads().len(), 1);
}

/// A bundle with these leaves, one per millisecond, of accounts that already have 100 leaves each.
fn bundle(leaves: impl IntoIterator<Item = (u32, (i64, Posting<u32>))>) -> Bundle {
    let mut bundle = Bundle::default();
    for (millis, (account, (atoms, posting))) in (0..).zip(leaves) {
        let start = ChainHead { leaves: 100, funds: Credits::from_atoms(14_400_000_000) };
        let before = bundle.heads().get(&account).copied().unwrap_or(start);
        let (at, amount) = (Timestamp::from_unix_millis(NOON + millis), Credits::from_atoms(atoms));
        bundle.push(Leaf::Posted { account, before, at, amount, posting }).unwrap();
    }
    bundle
}

fn charge(price: i64) -> (i64, Posting<u32>) {
    let day = Timestamp::from_unix_millis(NOON).day();
    (-price, Posting::Usage { line: 3, kind: UsageKind::Charged, day, key: KeyNumber::FIRST, calls: 1 })
}

/// Leaves of every kind, with numbers as large and as small as they can be.
fn extremes() -> Bundle {
    let tx = TxRef { chain_id: u64::MAX, hash: TxHash::from_bytes([9; 32]) };
    let ledger = |id, kind, tx| Posting::Ledger { id, kind, tx };
    let (calls, key) = (u64::MAX, KeyNumber::new(u32::MAX));
    let usage = |kind, day| Posting::Usage { line: u32::MAX, kind, day: Day::from_unix_days(day), key, calls };
    let entries = LedgerKind::ALL.map(|kind| (7, (1, ledger(i64::MAX, kind, None))));
    let uses = UsageKind::ALL.map(|kind| (u32::MAX, (-1, usage(kind, i64::MIN))));
    let others = [
        (5, (i64::MIN, Posting::Opening)),
        (9, (-2, ledger(i64::MIN, LedgerKind::Adjustment, Some(tx)))),
        (5, (i64::MAX, Posting::Imported)),
        (u32::MAX, (-1, usage(UsageKind::Charged, i64::MAX))),
    ];
    let mut extremes = bundle(entries.into_iter().chain(uses).chain(others));
    for millis in [i64::MIN, i64::MAX, 0] {
        let (at, text) = (Timestamp::from_unix_millis(millis), format!("metering-public-v1\n{millis}"));
        extremes.push(Leaf::Public { at, text }).unwrap();
    }
    extremes
}

#[test]
fn bundles_round_trip_and_a_damaged_one_is_an_error_or_another_bundle() {
    assert_eq!(Bundle::unpack(&Bundle::default().pack()), Ok(Bundle::default()));
    for bundle in [example(), extremes()] {
        let packed = bundle.pack();
        assert_eq!(Bundle::unpack(&packed).as_ref(), Ok(&bundle));
        for length in 0..packed.len() {
            assert!(Bundle::unpack(&packed[..length]).is_err(), "{length} bytes");
        }
        assert!(Bundle::unpack(&[&packed[..], &[0]].concat()).is_err());
        for bit in 0..8 * packed.len() {
            let mut damaged = packed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(Bundle::unpack(&damaged).as_ref(), Ok(&bundle), "bit {bit}");
        }
    }
}

#[test]
fn a_leaf_takes_few_bytes() {
    let bytes = |leaves: &dyn Fn(u32) -> (u32, i64)| {
        let leaf = |number| {
            let (account, price) = leaves(number);
            (100_000 + account, charge(price))
        };
        bundle((0..256).map(leaf)).pack().len()
    };
    // Prices differ, so that none repeats.
    let all_differ = bytes(&|number: u32| (number, 1_000_003 * i64::from(number + 1)));
    let same_price = bytes(&|number: u32| (number, 1_000_000));
    let busy = bytes(&|number: u32| (number % 4, 1_000_000));
    assert!(all_differ <= 24 * 256, "{all_differ}");
    assert!(same_price <= 14 * 256, "{same_price}");
    assert!(busy <= 6 * 256, "{busy}");
}

#[test]
fn leaves_that_do_not_fit_are_refused_and_change_nothing() {
    let mut bundle = bundle([(1, charge(1))]);
    let head = bundle.heads()[&1];
    let at = Timestamp::from_unix_millis(NOON);
    let posted = |before, atoms| Leaf::Posted {
        account: 1,
        before,
        at,
        amount: Credits::from_atoms(atoms),
        posting: Posting::Imported,
    };
    let public = |text: &str| Leaf::Public { at, text: text.to_owned() };
    let as_long_as_a_commitment = "metering-public-v1\n3456789012345";
    assert_eq!(as_long_as_a_commitment.len(), 32);
    let table = [
        (posted(ChainHead { leaves: head.leaves + 1, ..head }, 0), LeafFault::Gap),
        (posted(ChainHead { leaves: head.leaves - 1, ..head }, 0), LeafFault::Gap),
        (posted(ChainHead { funds: Credits::ZERO, ..head }, 0), LeafFault::Gap),
        (posted(head, i64::MAX), LeafFault::OutOfRange),
        (public(as_long_as_a_commitment), LeafFault::Ambiguous),
        (public("prices 1 2 3"), LeafFault::Ambiguous),
    ];
    let before = bundle.clone();
    for (leaf, fault) in table {
        assert_eq!(bundle.push(leaf.clone()), Err(fault), "{leaf:?}");
        assert_eq!(bundle, before);
    }
    while !bundle.is_full() {
        bundle.push(public("metering-public-v1\n")).unwrap();
    }
    assert_eq!(bundle.leaves().len(), BUNDLE_LEAVES);
    assert_eq!(bundle.push(public("metering-public-v1\n")), Err(LeafFault::Full));
}
