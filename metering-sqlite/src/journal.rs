//! The charge journal: one row per commit, folded into the tables later.
//!
//! A commit over many accounts would touch a page of each table for each account. So a commit appends one row to
//! `charge_journal`, with everything that it changes in meters, daily totals and recent activity, and those tables are
//! brought up to date later, for many commits at once and account by account. Until then they lag behind, and every
//! reader adds the changes that are not folded yet: see [`Snapshot`].

pub(crate) mod change;
pub(crate) mod fold;
pub(crate) mod holds;
pub(crate) mod noted;
pub(crate) mod sequence;
pub(crate) mod snapshot;
pub(crate) mod sum;
pub(crate) mod unfolded;
pub(crate) mod unlogged;

pub(crate) use change::{Change, Path, Row, Usage};
pub(crate) use holds::Holds;
pub(crate) use noted::{Noted, NotedChanges};
pub(crate) use snapshot::Snapshot;
pub(crate) use unfolded::{Touched, Unfolded};
