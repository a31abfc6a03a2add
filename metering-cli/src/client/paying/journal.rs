//! The journal of payments for calls: a line of JSON for each payment, and one for each change of its state.
//!
//! A line is on disk before its action is taken. A line truncated by a crash is removed before the next one is written:
//! its payment was not sent. Lines are written, and the limit is checked, under a lock.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use metering_core::{Clock, SystemClock, Timestamp};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::client::access::private_file::{self, FileLock, make_directory};
use crate::client::access::profile::Profile;
use crate::client::paying::amount::Amount;
use crate::client::paying::entry::Entry;
use crate::client::paying::lock::wait_for_lock;
use crate::client::paying::state::State;
use crate::failure::Failure;
use crate::new_file::sync_directory;

/// The period of the daily limit.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A longer file is rewritten without payments that finished long ago.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The minimum time to keep finished payments.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long to wait for the lock. It is never held for long.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A profile's payments for calls.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    directory: PathBuf,
}

/// The journal, locked by this process.
#[derive(Debug)]
pub(super) struct LockedJournal {
    path: PathBuf,
    _lock: FileLock,
}

/// A payment and its state.
#[derive(Debug, Clone)]
pub(crate) struct Payment {
    pub(crate) entry: Entry,
    pub(crate) state: State,
}

/// What the journal says.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// Oldest first.
    payments: Vec<Payment>,
    /// How many bytes of the file are whole lines.
    whole_bytes: u64,
}

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line<'l> {
    Signed {
        signed: std::borrow::Cow<'l, Entry>,
    },
    Changed {
        id: String,
        at: Timestamp,
        #[serde(flatten)]
        state: State,
    },
}

impl Journal {
    /// The journal of a profile.
    pub(crate) fn of(profile: &Profile) -> Self {
        Self { directory: profile.file("pay") }
    }

    /// The directory of the journal and its locks.
    pub(super) const fn directory(&self) -> &PathBuf {
        &self.directory
    }

    fn path(&self) -> PathBuf {
        self.directory.join("journal.jsonl")
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// [`Failure::Conflict`] when another process keeps it.
    pub(super) async fn lock(&self) -> Result<LockedJournal, Failure> {
        let lock = wait_for_lock(&self.directory.join("journal.lock"), LOCK_TIMEOUT, "writing down a payment").await?;
        Ok(LockedJournal { path: self.path(), _lock: lock })
    }

    /// The only payment that may be sent for this call, if there is one.
    pub(super) async fn open_payment(&self, call: &str) -> Result<Option<Payment>, Failure> {
        if !self.path().exists() {
            return Ok(None);
        }
        Ok(self.lock().await?.read()?.open_payment(call, SystemClock.now()).cloned())
    }

    /// A payment that may still be executed, and whose response has not arrived; `None` if there is none.
    pub(crate) async fn live_payment(&self) -> Result<Option<Payment>, Failure> {
        if !self.path().exists() {
            return Ok(None);
        }
        let now = SystemClock.now();
        let is_live = |payment: &Payment| payment.state.is_live(payment.entry.valid_before, now);
        Ok(self.lock().await?.read()?.payments.into_iter().find(is_live))
    }

    /// Records a payment's new state.
    pub(super) async fn change(&self, id: &str, state: State) -> Result<(), Failure> {
        self.lock().await?.append(&Line::Changed { id: id.to_owned(), at: SystemClock.now(), state })
    }
}

impl LockedJournal {
    /// Reads all of it.
    ///
    /// # Errors
    /// When it cannot be read. The file is not changed then: it may contain payments that must not be repeated.
    pub(super) fn read(&self) -> Result<Book, Failure> {
        let Some(text) = private_file::read(&self.path)? else { return Ok(Book::default()) };
        Book::parse(&text).map_err(|line| {
            Failure::Failed(format!(
                "line {line} of {} is not an entry of the journal of payments; payments may be pending, so it is left \
                 alone: check what it says before you remove it",
                self.path.display()
            ))
        })
    }

    /// Adds a signed payment.
    pub(super) fn add(&self, entry: &Entry) -> Result<(), Failure> {
        self.append(&Line::Signed { signed: std::borrow::Cow::Borrowed(entry) })
    }

    fn append(&self, line: &Line<'_>) -> Result<(), Failure> {
        let book = self.read()?;
        if book.whole_bytes > FILE_BYTES_MAX {
            private_file::write(&self.path, &book.shortened(SystemClock.now())?)?;
            return self.append_after(self.read()?.whole_bytes, line);
        }
        self.append_after(book.whole_bytes, line)
    }

    /// Writes a line after these bytes, and returns once it is on disk.
    fn append_after(&self, whole_bytes: u64, line: &Line<'_>) -> Result<(), Failure> {
        let text = to_text(line)?;
        let failed = |error: std::io::Error| Failure::Failed(format!("cannot write {}: {error}", self.path.display()));
        let directory = self.path.parent().unwrap_or(&self.path);
        make_directory(directory)?;
        let is_new = !self.path.exists();
        let written = open(&self.path).and_then(|mut file| {
            file.set_len(whole_bytes)?;
            std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(failed)?;
        if is_new { sync_directory(directory).map_err(failed) } else { Ok(()) }
    }
}

fn open(path: &PathBuf) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn to_text(line: &Line<'_>) -> Result<Zeroizing<String>, Failure> {
    let text = serde_json::to_string(line).map(Zeroizing::new);
    let mut text = text.map_err(|error| Failure::Failed(format!("cannot serialize the payment: {error}")))?;
    text.push('\n');
    Ok(text)
}

impl Book {
    /// Reads whole lines. The error is the number of the invalid line.
    fn parse(text: &str) -> Result<Self, usize> {
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut book = Self { payments: Vec::new(), whole_bytes: whole as u64 };
        for (number, line) in text[..whole].lines().enumerate() {
            match serde_json::from_str(line).map_err(|_| number + 1)? {
                Line::Signed { signed } => {
                    book.payments.push(Payment { entry: signed.into_owned(), state: State::Signed });
                }
                Line::Changed { id, state, .. } => {
                    let payment = book.payments.iter_mut().rev().find(|payment| payment.entry.id == id);
                    payment.ok_or(number + 1)?.state = state;
                }
            }
        }
        Ok(book)
    }

    /// The only payment that may be sent for this call, if there is one.
    pub(super) fn open_payment(&self, call: &str, now: Timestamp) -> Option<&Payment> {
        let of_call = |payment: &&Payment| payment.entry.call == call;
        let is_open = |payment: &&Payment| payment.state.is_open(payment.entry.valid_before, now);
        self.payments.iter().rev().filter(of_call).find(is_open)
    }

    /// The total signed for automatic payments in the last 24 hours. Each may have been executed, whatever its state,
    /// so all of them count.
    pub(super) fn spent(&self, now: Timestamp) -> Amount {
        let since = now.saturating_sub(DAY);
        let counts = |payment: &&Payment| payment.entry.is_automatic && payment.entry.at > since;
        self.payments
            .iter()
            .filter(counts)
            .map(|payment| payment.entry.amount)
            .fold(Amount::default(), Amount::saturating_add)
    }

    /// The file without payments that finished long ago.
    fn shortened(&self, now: Timestamp) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let since = now.saturating_sub(KEPT);
        let mut text = Zeroizing::new(Vec::new());
        for Payment { entry, state } in &self.payments {
            if entry.at <= since && !state.is_open(entry.valid_before, now) {
                continue;
            }
            text.extend_from_slice(to_text(&Line::Signed { signed: std::borrow::Cow::Borrowed(entry) })?.as_bytes());
            let change = Line::Changed { id: entry.id.clone(), at: now, state: state.clone() };
            text.extend_from_slice(to_text(&change)?.as_bytes());
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
