//! A snapshot of the database: its tables, and the changes that are not folded into them yet.

use std::cell::{Cell, Ref, RefCell};
use std::ops::Deref;

use rusqlite::Connection;

use crate::error::Result;
use crate::journal::{Touched, Unfolded};

/// A transaction's view of the database. Everything that charges change must be read through
/// [`unfolded`](Self::unfolded) as well as from the tables.
#[derive(Debug)]
pub(crate) struct Snapshot<'s> {
    connection: &'s Connection,
    unfolded: RefCell<&'s mut Unfolded>,
    is_synced: Cell<bool>,
    /// The accounts in rows of the journal that were read later.
    touched: RefCell<Vec<i64>>,
}

impl<'s> Snapshot<'s> {
    /// `connection` must be in a transaction. `unfolded` may be of an earlier one of the same connection.
    pub(crate) const fn new(connection: &'s Connection, unfolded: &'s mut Unfolded) -> Self {
        Self {
            connection,
            unfolded: RefCell::new(unfolded),
            is_synced: Cell::new(false),
            touched: RefCell::new(Vec::new()),
        }
    }

    /// Like [`Snapshot::new`], for changes that are up to date.
    pub(crate) const fn synced(connection: &'s Connection, unfolded: &'s mut Unfolded) -> Self {
        Self {
            connection,
            unfolded: RefCell::new(unfolded),
            is_synced: Cell::new(true),
            touched: RefCell::new(Vec::new()),
        }
    }

    /// The changes that are not in the tables yet. Reads the journal on the first use, and after this transaction wrote to
    /// it.
    pub(crate) fn unfolded(&self) -> Result<Ref<'_, Unfolded>> {
        if !self.is_synced.replace(true)
            && let Touched::Only(accounts) = self.unfolded.borrow_mut().sync(self.connection)?
        {
            self.touched.borrow_mut().extend(accounts);
        }
        Ok(Ref::map(self.unfolded.borrow(), |unfolded| &**unfolded))
    }

    /// To be called after this transaction wrote to the journal.
    pub(crate) fn wrote_journal(&self) {
        self.is_synced.set(false);
    }

    /// The accounts in rows of the journal that were read after the snapshot was made.
    pub(crate) fn into_touched(self) -> Vec<i64> {
        self.touched.into_inner()
    }
}

impl Deref for Snapshot<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}
