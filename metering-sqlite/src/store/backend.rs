//! Runs the scripts of `metering-sql`: writes go to the writer, reads to a reader.

use metering_core::StoreError;
use metering_sql::{Backend, BoxFuture, Erased, Script};

use crate::script::run;
use crate::store::SqliteStore;

impl Backend for SqliteStore {
    fn write(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(self.writer.write(move |snapshot| run(snapshot, &script)))
    }

    fn delete(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Backend::write(self, script)
    }

    /// Takes a few milliseconds.
    fn deleted_at_once(&self) -> u64 {
        500
    }

    fn read(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(self.read(move |snapshot| run(snapshot, &script)))
    }

    fn snapshot(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(self.read(move |snapshot| run(snapshot, &script)))
    }
}
