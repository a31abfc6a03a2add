//! A snapshot of the database: its tables, and what is not folded into them yet.

use std::cell::{Cell, Ref, RefCell};
use std::ops::Deref;

use rusqlite::Connection;

use crate::error::Result;
use crate::journal::Unfolded;

/// A transaction's view of the database. Everything that charges change must be read through
/// [`unfolded`](Self::unfolded) as well as from the tables.
#[derive(Debug)]
pub(crate) struct Snapshot<'s> {
    connection: &'s Connection,
    unfolded: RefCell<&'s mut Unfolded>,
    is_synced: Cell<bool>,
}

impl<'s> Snapshot<'s> {
    /// `connection` must be in a transaction. `unfolded` may be of an earlier one of the same connection.
    pub(crate) const fn new(connection: &'s Connection, unfolded: &'s mut Unfolded) -> Self {
        Self { connection, unfolded: RefCell::new(unfolded), is_synced: Cell::new(false) }
    }

    /// Like [`Snapshot::new`], for changes that are up to date.
    pub(crate) const fn synced(connection: &'s Connection, unfolded: &'s mut Unfolded) -> Self {
        Self { connection, unfolded: RefCell::new(unfolded), is_synced: Cell::new(true) }
    }

    /// The changes that are not in the tables yet, when the transaction began. Reads the journal on the first use.
    pub(crate) fn unfolded(&self) -> Result<Ref<'_, Unfolded>> {
        if !self.is_synced.replace(true) {
            self.unfolded.borrow_mut().sync(self.connection)?;
        }
        Ok(Ref::map(self.unfolded.borrow(), |unfolded| &**unfolded))
    }
}

impl Deref for Snapshot<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}
