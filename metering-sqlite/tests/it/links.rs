//! Emailed links, across versions of the schema.

use metering_core::signups::LinkHash;
use metering_core::store::{EmailVerified, SignupStore};
use metering_sqlite::SqliteStore;

use crate::migration::write_version;
use crate::scene::{NOON, database_path};

/// Version 19 recreates the table of links, and must not lose links that were sent before.
#[tokio::test]
async fn links_of_earlier_versions_still_work() {
    let (_folder, file) = database_path();
    let connection = write_version(16, &file);
    let email = "UPDATE account SET email = 'owner@example.com' WHERE org_id = ?1";
    assert_eq!(connection.execute(email, ["org_aaaaaaaaaaaaaaaaaaaa"]).unwrap(), 1);
    let link = "INSERT INTO email_link (token, account, purpose, expires_at) \
                SELECT zeroblob(32), id, 'verify_address', 1795262400001 FROM account WHERE org_id = ?1";
    assert_eq!(connection.execute(link, ["org_aaaaaaaaaaaaaaaaaaaa"]).unwrap(), 1);
    drop(connection);
    let store = SqliteStore::open(&file).unwrap();
    let verified = store.verify_email(&LinkHash::from_bytes([0; 32]), NOON).await.unwrap();
    assert!(matches!(verified, EmailVerified::Account { .. }), "{verified:?}");
}
