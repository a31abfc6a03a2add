//! The log's tables.

use metering_core::store::{LogEpoch, LogSecret, PreviousLog, StoredBundle, Taken};

use crate::fault::Result;
use crate::record::Record;
use crate::row::Reader;
use crate::table::Column::Own;
use crate::table::Table;
use crate::value::Value;
use crate::values;

/// Tiles of level 1 and above.
pub(super) const TILES: Table = Table {
    name: "log_tile",
    key: &["epoch", "level", "number"],
    columns: &[Own("epoch"), Own("level"), Own("number"), Own("hashes")],
};

/// The log's numbers of usage lines.
pub(super) const LINES: Table = Table {
    name: "log_line",
    key: &["number"],
    columns: &[Own("number"), Own("route_template"), Own("http_method"), Own("source")],
};

/// The row also has the holder of the lease.
impl Record for LogEpoch {
    const TABLE: Table = Table {
        name: "log_epoch",
        key: &["number"],
        columns: &[
            Own("number"),
            Own("origin"),
            Own("secret"),
            Own("reason"),
            Own("previous_origin"),
            Own("previous_size"),
            Own("previous_root"),
            Own("began_at"),
            Own("ended_at"),
            Own("size"),
            Own("root"),
            Own("minimum"),
            Own("accounts"),
            Own("journal"),
            Own("ledger"),
            Own("prices"),
            Own("openings"),
            Own("swept_from"),
            Own("checkpoint_size"),
            Own("checkpoint"),
        ],
    };

    fn values(&self) -> Result<Vec<Value>> {
        let Self { number, origin, secret, began_at, ended_at, size, root, minimum, accounts, .. } = self;
        let Taken { journal, ledger, prices, openings } = self.taken;
        let mut values = values![number, origin, *secret.expose(), self.reason];
        let previous = self.previous.as_ref();
        let (previous_origin, previous_size) = previous.map(|log| (log.origin.clone(), log.size)).unzip();
        values.extend(values![previous_origin, previous_size, previous.map(|log| log.root)]);
        values.extend(values![began_at, ended_at, size, *root, minimum, accounts]);
        let (checkpoint_size, checkpoint) = self.checkpoint.clone().unzip();
        values.extend(values![journal, ledger, prices, openings, self.swept_from, checkpoint_size, checkpoint]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (number, origin, secret) = (row.next()?, row.next()?, LogSecret::new(row.next()?));
        let reason = row.next()?;
        // The schema ensures that all three are set or none is.
        let previous: (Option<String>, Option<u64>, Option<[u8; 32]>) = (row.next()?, row.next()?, row.next()?);
        let previous = match previous {
            (Some(origin), Some(size), Some(root)) => Some(PreviousLog { origin, size, root }),
            _ => None,
        };
        let (began_at, ended_at, size, root) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let (minimum, accounts) = (row.next()?, row.next()?);
        let taken = Taken { journal: row.next()?, ledger: row.next()?, prices: row.next()?, openings: row.next()? };
        let swept_from = row.next()?;
        // The schema ensures that both are set or neither is.
        let (checkpoint_size, checkpoint): (Option<u64>, Option<String>) = (row.next()?, row.next()?);
        let checkpoint = checkpoint_size.zip(checkpoint);
        Ok(Self {
            number,
            origin,
            secret,
            reason,
            previous,
            began_at,
            ended_at,
            size,
            root,
            minimum,
            accounts,
            taken,
            swept_from,
            checkpoint,
        })
    }
}

/// A bundle, with the number of its epoch.
impl Record for (u32, StoredBundle) {
    const TABLE: Table = Table {
        name: "log_bundle",
        key: &["epoch", "number"],
        columns: &[Own("epoch"), Own("number"), Own("until"), Own("hash"), Own("leaves")],
    };

    fn values(&self) -> Result<Vec<Value>> {
        let (epoch, StoredBundle { index, until, hash, leaves }) = self;
        Ok(values![epoch, index, until, hash, leaves.as_slice()])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let epoch = row.next()?;
        let (index, until, hash, leaves) = (row.next()?, row.next()?, row.next()?, row.next()?);
        Ok((epoch, StoredBundle { index, until, hash, leaves }))
    }
}
