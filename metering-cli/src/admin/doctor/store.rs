//! Whether the store can be opened and written to, and agrees with this machine's clock.

use std::fs::Metadata;
use std::path::Path;

use metering_config::server::Config;
use metering_core::clock::ClockSkew;
use metering_core::store::Inspection;
use metering_core::{Clock, StoreError, SystemClock};
use metering_postgres::PostgresStore;
use metering_sqlite::SqliteStore;

use super::{disk, findings::Findings, imported};
use crate::database::{Database, IfMissing, Location, causes, sidecars};

const CHECK: &str = "store";
const CLOCK: &str = "clock";

/// A write-ahead log is checkpointed long before it is this large, unless something reads for hours.
const LARGE_LOG: u64 = 256 << 20;

const OWNER_ADVICE: &str = "make it the owner: ALTER DATABASE metering OWNER TO metering, GRANT CREATE ON SCHEMA public TO \
                            metering, and ALTER TABLE ... OWNER TO metering for each table, as a superuser";

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    let location = match Location::from_url(&config.database_url().into()) {
        Ok(location) => location,
        Err(error) => return findings.problem(CHECK, error, "correct the configuration key database"),
    };
    if let Location::Sqlite(path) = &location {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The server creates a missing folder.
        disk::check(folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new(".")), findings);
        if !path.exists() {
            let advice = "the server makes one when it starts; if there was one, check data and database";
            return findings.warning(CHECK, format_args!("there is no store at {location} yet"), advice);
        }
        files(path, folder, findings);
    }
    match inspect(&location).await {
        Err(error) => findings.problem(
            CHECK,
            format_args!("{location}: {}", causes(&error)),
            "docs/runbook.md, \"The database is down\", says what to look at",
        ),
        Ok(inspection) => {
            let is_current = judge(&location, &inspection, findings);
            // Opening the store would migrate it.
            if is_current {
                open(&location, config, findings).await;
            }
        }
    }
}

async fn inspect(location: &Location) -> Result<Inspection, StoreError> {
    match location {
        Location::Sqlite(path) => SqliteStore::inspect(path),
        Location::Postgres(config) => PostgresStore::inspect(config).await,
    }
}

/// Whether the schema matches this program's.
fn judge(location: &Location, inspection: &Inspection, findings: &mut Findings) -> bool {
    let Inspection { schema, supported, unsafe_settings, missing_rights } = inspection;
    for setting in unsafe_settings {
        let advice = "set it to on, and restart PostgreSQL: otherwise acknowledged charges can be lost";
        findings.problem(CHECK, format_args!("{location}: {setting}"), advice);
    }
    for right in missing_rights {
        let found = format_args!("{location}: the database's user {right}; the next upgrade would fail");
        findings.problem("rights", found, OWNER_ADVICE);
    }
    match schema {
        None => {
            findings.warning(CHECK, format_args!("{location} has no schema yet"), "the server makes it at its start")
        }
        Some(version) if version < supported => findings.warning(
            CHECK,
            format_args!("{location} has schema {version}; this program migrates it to {supported}"),
            "make a backup before you start this version: earlier versions cannot open a migrated store",
        ),
        Some(version) if version > supported => findings.problem(
            CHECK,
            format_args!("{location} has schema {version}; this program knows {supported} at most"),
            "use the version that migrated it, or a newer one",
        ),
        Some(_) => return true,
    }
    false
}

async fn open(location: &Location, config: &Config, findings: &mut Findings) {
    let database = match location.open(IfMissing::Fail).await {
        Ok(database) => database,
        Err(error) => return findings.problem(CHECK, error, "run this as the user that the server runs as"),
    };
    match database.store().check().await {
        Ok(()) => {
            let advice = "`metering admin verify` proves that the books add up";
            findings.ok(CHECK, format_args!("{location} can be written to; {advice}"));
        }
        Err(error) => {
            let advice = "check the disk and the permissions of the store's files; nothing is charged until it works";
            findings.problem(CHECK, format_args!("{location}: {}", causes(&error)), advice);
        }
    }
    clock(&database, findings).await;
    imported::check(config, &*database.store(), findings).await;
    // A store that cannot be read was found above.
    if let Ok((_, count)) = database.store().unclaimed(None, 0).await
        && count > 0
    {
        let advice = "`metering admin payments list` finds them, older ones with --from-block; then assign them";
        findings.warning("payments", format_args!("unclaimed payments: {count}"), advice);
    }
    if let Ok(to_refund) = database.store().payments_of_revoked(u32::MAX).await
        && !to_refund.is_empty()
    {
        let advice = "refund them at their processor; the console and the accounts' ledgers name them";
        findings.warning("payments", format_args!("payments taken for revoked accounts: {}", to_refund.len()), advice);
    }
}

async fn clock(database: &Database, findings: &mut Findings) {
    let before = SystemClock.now();
    match database.store().clock().await {
        Ok(Some(stores)) => match ClockSkew::found(before, stores, SystemClock.now()) {
            Some(skew) => {
                let advice = "check NTP on both machines: servers are not ready until the clocks agree";
                findings.problem(CLOCK, format_args!("this machine's clock is {skew} of the database's"), advice);
            }
            None => findings.ok(CLOCK, "agrees with the database's"),
        },
        Ok(None) => {}
        Err(error) => findings.problem(CLOCK, causes(&error), "the database's clock could not be read"),
    }
}

/// Whether the files next to a database have the folder's owner: the server cannot write files that root created.
fn files(path: &Path, folder: &Path, findings: &mut Findings) {
    let owner = std::fs::metadata(folder).ok().and_then(|metadata| owner(&metadata));
    let files = [path.to_owned()].into_iter().chain(sidecars(path));
    for (file, metadata) in files.filter_map(|file| std::fs::metadata(&file).ok().map(|metadata| (file, metadata))) {
        if self::owner(&metadata) != owner {
            let found = format!("{} and its folder have different owners", file.display());
            let advice = format!("chown --reference={} {}", folder.display(), file.display());
            findings.warning("permissions", found, advice);
        }
        if metadata.len() > LARGE_LOG && file != path {
            let found = format!("{} has {} MiB", file.display(), metadata.len() >> 20);
            let advice = "something has been reading for long, such as a copy or an export; end it, and it shrinks";
            findings.warning(CHECK, found, advice);
        }
    }
}

#[cfg(unix)]
fn owner(metadata: &Metadata) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(metadata))
}

#[cfg(not(unix))]
fn owner(_: &Metadata) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::super::findings::State;
    use super::*;

    #[test]
    fn stores_of_other_versions_and_unsafe_settings_are_noticed() {
        let location = Location::from_url(&"sqlite:a.db".into()).unwrap();
        // schema, unsafe settings, states, whether it is opened
        let table: [(_, &[&str], &[State], _); 5] = [
            (None, &[], &[State::Warning], false),
            (Some(6), &[], &[State::Warning], false),
            (Some(8), &[], &[State::Problem], false),
            (Some(7), &[], &[], true),
            (Some(7), &["fsync = off"], &[State::Problem], true),
        ];
        for (schema, settings, states, opened) in table {
            let unsafe_settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
            let inspection = Inspection { schema, supported: 7, unsafe_settings, missing_rights: Vec::new() };
            let mut findings = Findings::default();
            assert_eq!(judge(&location, &inspection, &mut findings), opened, "{schema:?}");
            assert_eq!(findings.of(CHECK).iter().map(|(state, _)| *state).collect::<Vec<_>>(), states, "{schema:?}");
        }
    }
}
