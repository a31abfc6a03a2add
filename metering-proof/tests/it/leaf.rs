//! Openings, salts and commitments.

use metering_core::access::KeyNumber;
use metering_core::chains::{TxHash, TxRef};
use metering_core::charging::UsageKind;
use metering_core::money::LedgerKind;
use metering_core::store::LogSecret;
use metering_core::{AccountId, ClientSource, Credits, Day, Timestamp, UsageLine};
use metering_log::tree::TreeHash;
use metering_proof::{AccountSalts, Opening, Posting, entry};

use crate::hex;

/// A line for each of [`openings`], made by a Python program from the description of the format: opening, salt, entry and
/// the hash of the leaf, in hex. The log's secret is 32 times the byte 7.
const VECTORS: &str = include_str!("../vectors/leaves.txt");

pub(crate) fn account() -> AccountId {
    "org_AAAAAAAAAAAAAAAAAAAA".parse().unwrap()
}

pub(crate) fn secret() -> LogSecret {
    LogSecret::new([7; LogSecret::BYTES])
}

pub(crate) fn cli_line() -> UsageLine {
    UsageLine { route_template: "/quotes/{number}".into(), http_method: "GET".into(), source: ClientSource::Cli }
}

pub(crate) fn chat_line() -> UsageLine {
    let line = UsageLine { route_template: "/chat".into(), http_method: "POST".into(), source: ClientSource::Direct };
    line.of_model("gpt-5*")
}

fn usage(kind: UsageKind, day: i64, key: u32, calls: u64, line: UsageLine) -> Posting {
    Posting::Usage { line, kind, day: Day::from_unix_days(day), key: KeyNumber::new(key), calls }
}

/// The first leaves of an account, one per millisecond.
pub(crate) fn openings() -> Vec<Opening> {
    let tx = TxRef { chain_id: 8_453, hash: TxHash::from_bytes([0xab; 32]) };
    // what, change of the funds, funds
    let table = [
        (Posting::Opening, 14_400_000_000, 14_400_000_000),
        (Posting::Ledger { id: 7, kind: LedgerKind::PurchaseTopup, tx: Some(tx) }, 7_200_000_000, 21_600_000_000),
        (Posting::Ledger { id: 8, kind: LedgerKind::Adjustment, tx: None }, -600, 21_599_999_400),
        (usage(UsageKind::Charged, 20_778, 2, 3, cli_line()), -750_000, 21_599_249_400),
        (usage(UsageKind::Refunded, 20_777, 0, 1, chat_line()), 250_000, 21_599_499_400),
        (usage(UsageKind::Released, 20_778, 0, 1, chat_line()), 0, 21_599_499_400),
        (Posting::Imported, -250_000, 21_599_249_400),
    ];
    let opening = |(number, (posting, atoms, funds)): (u32, (Posting, i64, i64))| Opening {
        account: account(),
        number: number.into(),
        at: Timestamp::from_unix_millis(1_795_248_000_005 + i64::from(number)),
        amount: Credits::from_atoms(atoms),
        funds: Credits::from_atoms(funds),
        posting,
    };
    (0..).zip(table).map(opening).collect()
}

#[test]
fn openings_salts_and_commitments_are_those_of_another_program() {
    let salts = AccountSalts::new(&secret(), &account());
    let line = |opening: &Opening| {
        let (bytes, salt) = (opening.to_bytes(), salts.salt(opening.number));
        let entry = entry(&salt, &bytes);
        let leaf = TreeHash::leaf(&entry);
        format!("{} {} {} {}\n", hex(&bytes), hex(salt.as_bytes()), hex(&entry), hex(leaf.as_bytes()))
    };
    assert_eq!(openings().iter().map(line).collect::<String>(), VECTORS);
}

#[test]
fn openings_round_trip_and_a_damaged_one_is_an_error_or_another_commitment() {
    let salt = AccountSalts::new(&secret(), &account()).salt(0);
    for opening in openings() {
        let bytes = opening.to_bytes();
        assert_eq!(Opening::parse(&bytes), Ok(opening.clone()));
        for length in 0..bytes.len() {
            assert!(Opening::parse(&bytes[..length]).is_err(), "{length} bytes of {opening:?}");
        }
        assert!(Opening::parse(&[&bytes[..], &[0]].concat()).is_err(), "{opening:?} and a byte");
        for place in 0..bytes.len() {
            for flipped in 1..=u8::MAX {
                let mut damaged = bytes.clone();
                damaged[place] ^= flipped;
                if let Ok(other) = Opening::parse(&damaged) {
                    assert_eq!(other.to_bytes(), damaged, "byte {place} of {opening:?}");
                    assert_ne!(other, opening, "byte {place}");
                }
            }
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert_ne!(entry(&salt, &damaged), entry(&salt, &bytes), "byte {place}");
        }
    }
}

#[test]
fn each_leaf_of_each_account_and_log_has_a_salt_of_its_own() {
    let other: AccountId = "org_BBBBBBBBBBBBBBBBBBBB".parse().unwrap();
    let salts = [
        AccountSalts::new(&secret(), &account()).salt(0),
        AccountSalts::new(&secret(), &account()).salt(1),
        AccountSalts::new(&secret(), &other).salt(0),
        AccountSalts::new(&LogSecret::new([8; LogSecret::BYTES]), &account()).salt(0),
    ];
    for (place, salt) in salts.iter().enumerate() {
        assert!(!salts[..place].contains(salt), "{place}");
    }
}

#[test]
fn long_texts_are_cut_and_far_days_are_the_last() {
    let mut opening = openings().remove(3);
    let Posting::Usage { line, day, .. } = &mut opening.posting else { panic!("it is of usage") };
    line.route_template = "ä".repeat(40_000).into();
    *day = Day::from_unix_days(i64::MAX);
    let read = Opening::parse(&opening.to_bytes()).unwrap();
    let Posting::Usage { line, day, .. } = read.posting else { panic!("it is of usage") };
    assert_eq!((line.route_template.len(), day), (65_534, Day::from_unix_days(i32::MAX.into())));
}
