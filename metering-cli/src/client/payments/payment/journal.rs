//! The journal of a profile's pending payment: every step is on disk before the next one starts, and one process at a
//! time holds it. A payment that cannot be finished is moved to another file, so that no payment is ever forgotten.

use std::path::PathBuf;

use metering_core::{Clock, SystemClock};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::client::access::private_file::{self, FileLock};
use crate::client::access::profile::Profile;
use crate::client::payments::payment::entry::{Entry, Payment};
use crate::failure::Failure;

const FILE: &str = "payment.json";
const SET_ASIDE_FILE: &str = "payments-refused.json";

/// A profile's journal, locked by this process.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    aside: PathBuf,
    _lock: FileLock,
}

/// The journal and its entry.
#[derive(Debug)]
pub(crate) struct Pending {
    journal: Journal,
    entry: Entry,
}

/// A payment that was set aside.
#[derive(Serialize)]
struct AsideRecord<'a> {
    at: String,
    why: &'a str,
    payment: &'a Entry,
}

impl Journal {
    /// The lock file.
    pub(crate) const LOCK_FILE: &str = "payment.lock";

    /// Locks the journal and reads the pending payment, if there is one.
    pub(crate) fn open(profile: &Profile) -> Result<(Self, Option<Entry>), Failure> {
        let lock = FileLock::acquire(profile.file(Self::LOCK_FILE), "paying")?;
        let journal = Self { path: profile.file(FILE), aside: profile.file(SET_ASIDE_FILE), _lock: lock };
        let entry = match private_file::read(&journal.path)? {
            None => None,
            Some(text) => Some(journal.parse(&text)?),
        };
        Ok((journal, entry))
    }

    /// Starts a payment.
    pub(crate) fn begin(self, entry: Entry) -> Result<Pending, Failure> {
        let pending = self.resume(entry);
        pending.write()?;
        Ok(pending)
    }

    /// Continues the payment that was read.
    pub(crate) const fn resume(self, entry: Entry) -> Pending {
        Pending { journal: self, entry }
    }

    fn parse(&self, text: &str) -> Result<Entry, Failure> {
        // The error does not repeat the text, which contains the quote's secret.
        serde_json::from_str(text).map_err(|error| {
            Failure::Failed(format!(
                "{} is not a payment journal (line {}, column {}); a payment may be pending, so it is left alone: \
                check what it says before you remove it",
                self.path.display(),
                error.line(),
                error.column()
            ))
        })
    }
}

impl Pending {
    pub(crate) const fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Records the payment's new state.
    pub(crate) fn advance(&mut self, payment: Payment) -> Result<(), Failure> {
        self.entry.payment = payment;
        self.write()
    }

    /// Removes a payment that is complete, or was certainly never made.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        private_file::remove(&self.journal.path)
    }

    /// Moves the payment to the file of payments that are set aside; returns the journal and that file.
    pub(crate) fn set_aside(self, why: &str) -> Result<(Journal, PathBuf), Failure> {
        let file = &self.journal.aside;
        let failed = |error| Failure::Failed(format!("{} is not a list of payments: {error}", file.display()));
        let before = private_file::read(file)?;
        let mut list: Vec<Box<RawValue>> =
            before.map_or_else(|| Ok(Vec::new()), |text| serde_json::from_str(&text)).map_err(failed)?;
        let record = AsideRecord { at: SystemClock.now().to_string(), why, payment: &self.entry };
        let record = serde_json::value::to_raw_value(&record).map_err(failed)?;
        // A run that was interrupted between the two writes may have put it here already.
        if !list.iter().any(|known| same_payment(known, &record)) {
            list.push(record);
        }
        let text = serde_json::to_vec_pretty(&list).map(Zeroizing::new).map_err(failed)?;
        private_file::write(file, &text)?;
        private_file::remove(&self.journal.path)?;
        let file = file.clone();
        Ok((self.journal, file))
    }

    fn write(&self) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(&self.entry).map(Zeroizing::new);
        let text = text.map_err(|error| Failure::Failed(format!("cannot serialize the payment: {error}")))?;
        private_file::write(&self.journal.path, &text)
    }
}

/// Whether two records are of the same payment, regardless of when and why they were set aside.
fn same_payment(one: &RawValue, other: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Record {
        payment: serde_json::Value,
    }
    let read = |raw: &RawValue| serde_json::from_str::<Record>(raw.get()).ok().map(|record| record.payment);
    read(one).is_some_and(|payment| read(other) == Some(payment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::access::home::Home;

    const ENTRY: &str = r#"{
        "service": "https://api.example", "payer": "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
        "purpose": {"signup": {"agent_name": "agent", "signup_nonce": "sqn_secret", "terms_url": "",
            "expires_at": "2026-11-21T07:04:30.417Z", "replaces_key": false, "paid_elsewhere": false}},
        "bill": {"plan_id": "starter", "sells": "10 credits", "chain_id": 8453, "chain_name": "base",
             "token_symbol": "USDC", "token_decimals": 6,
            "recipient": "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "confirmations": 1, "rpc_hint": null,
            "token": "0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359", "amount": "5003817"},
        "payment": "unpaid"}"#;

    struct Scene {
        _directory: tempfile::TempDir,
        profile: Profile,
    }

    impl Scene {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let home = Home::find(|_| Some(directory.path().into())).unwrap();
            Self { profile: Profile::load(&home, "default".parse().unwrap()).unwrap(), _directory: directory }
        }
    }

    fn entry() -> Entry {
        serde_json::from_str(ENTRY).unwrap()
    }

    fn hash() -> metering_core::chains::TxHash {
        metering_core::chains::TxHash::from_bytes([7; 32])
    }

    #[test]
    fn payment_round_trips_and_is_removed_when_finished() {
        let scene = Scene::new();
        let (journal, none) = Journal::open(&scene.profile).unwrap();
        assert!(none.is_none());
        let mut pending = journal.begin(entry()).unwrap();
        pending.advance(Payment::Elsewhere(hash())).unwrap();
        assert!(matches!(Journal::open(&scene.profile), Err(Failure::Conflict(_))), "one process at a time");
        drop(pending);
        let (journal, read) = Journal::open(&scene.profile).unwrap();
        let read = read.unwrap();
        assert_eq!(read.payment.hash(), Some(hash()));
        assert_eq!(read.signup().unwrap().signup_nonce.expose(), "sqn_secret");
        assert!(!format!("{read:?} {read}").contains("secret"));
        journal.resume(read).finish().unwrap();
        assert!(Journal::open(&scene.profile).unwrap().1.is_none());
    }

    #[test]
    fn unreadable_journal_is_left_unchanged_and_not_printed() {
        let scene = Scene::new();
        let text = ENTRY.replace("unpaid", "lost");
        private_file::write(&scene.profile.file(FILE), text.as_bytes()).unwrap();
        let error = Journal::open(&scene.profile).unwrap_err().to_string();
        assert!(error.contains("left alone") && !error.contains("secret"), "{error}");
        assert_eq!(private_file::read(&scene.profile.file(FILE)).unwrap().unwrap().as_str(), text);
    }

    #[test]
    fn payment_is_set_aside_once_and_earlier_ones_kept() {
        let scene = Scene::new();
        let open = || Journal::open(&scene.profile).unwrap().0;
        let (_, file) = open().begin(entry()).unwrap().set_aside("expired").unwrap();
        let other = Entry { payment: Payment::Elsewhere(hash()), ..entry() };
        // As if the first run had been interrupted before it removed the journal.
        for _ in 0..2 {
            open().begin(other.clone()).unwrap().set_aside("payment_mismatch").unwrap();
        }
        let text = private_file::read(&file).unwrap().unwrap();
        let list: serde_json::Value = serde_json::from_str(&text).unwrap();
        let whys: Vec<_> = list.as_array().unwrap().iter().map(|record| record["why"].as_str().unwrap()).collect();
        assert_eq!(whys, ["expired", "payment_mismatch"]);
        assert_eq!(list[1]["payment"]["payment"]["elsewhere"], hash().to_string());
    }

    #[test]
    fn other_plans_and_chains_are_different_payments() {
        // plan, chain, agrees
        let table = [
            (None, None, true),
            (Some("starter"), None, true),
            (Some("starter"), Some("8453"), true),
            (None, Some("base"), true),
            (Some("coin"), None, false),
            (None, Some("1"), false),
        ];
        for (plan, chain, agrees) in table {
            assert_eq!(entry().check_matches(plan, chain).is_ok(), agrees, "{plan:?} {chain:?}");
        }
        assert!(entry().conflict().to_string().contains("metering signup-pay --abandon"));
    }
}
