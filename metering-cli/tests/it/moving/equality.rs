//! A move copies exactly what was there, and differences are found.

use metering_tests::postgres::is_skipped;

use crate::filling::{fill, fill_at_random, later};
use crate::fixture::{Fixture, block_on, records};
use crate::snapshot::snapshot;

#[test]
fn full_store_reads_the_same_after_a_move() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(async {
        fill(&fixture).await;
        let store = fixture.sqlite();
        let (before, records_before) = (snapshot(&store).await, records(&store).await);
        drop(store);
        let moved = fixture.migrate(&["--json"]).json();
        assert_eq!((&moved["ending"], &moved["differing"]), (&"moved".into(), &0.into()));
        for section in moved["sections"].as_array().unwrap() {
            assert!(section["from"]["records"].as_u64().unwrap() > 0, "no records in section {}", section["section"]);
            assert_eq!(section["from"], section["to"]);
        }
        let store = fixture.postgres().await;
        let (after, records_after) = (snapshot(&store).await, records(&store).await);
        assert_same(&before, &after);
        assert_eq!(records_after, records_before);
    });
}

/// Compares item by item: in the output of two whole stores, a difference would be hard to find.
#[track_caller]
fn assert_same(before: &[String], after: &[String]) {
    for (was, is) in before.iter().zip(after) {
        assert_eq!(is, was);
    }
    assert_eq!(after.len(), before.len());
}

#[test]
fn random_stores_are_moved_as_they_are() {
    if is_skipped() {
        return;
    }
    for _ in 0..8 {
        let fixture = Fixture::new();
        block_on(async {
            fill_at_random(&fixture).await;
            let store = fixture.sqlite();
            let before = snapshot(&store).await;
            drop(store);
            fixture.migrate(&[]).success();
            assert_same(&before, &snapshot(&fixture.postgres().await).await);
        });
    }
}

#[test]
fn every_later_change_is_found() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(fill(&fixture));
    fixture.migrate(&[]).success();
    let busy = "(SELECT id FROM account WHERE org_id = 'org_x0000000000000000001')";
    let keyed = "(SELECT id FROM account WHERE org_id = 'org_x0000000000000000008')";
    // The newest of the packed entries: a form, its number, its line, then the amount, whose first bit is its sign.
    let sign = format!(
        "UPDATE activity SET entries = set_byte(entries, 11, get_byte(entries, 11) # 1) \
         WHERE account = {busy} AND block = (SELECT entries / 16 FROM meter WHERE account = {busy})"
    );
    let (third, visitor) = ("decode(repeat('03', 32), 'hex')", "decode(repeat('a1', 32), 'hex')");
    let link = "decode(repeat('b6', 32), 'hex')";
    let notified = "(SELECT id FROM account WHERE org_id = 'org_x0000000000000000010')";
    let webhook = "decode(repeat('09', 16), 'hex')";
    let hold = "decode(repeat('e0', 16), 'hex')";
    let gas = "decode(repeat('cc', 20), 'hex')";
    // Only the owner of the tables can change the audit log.
    let reason = |new: &str| {
        format!(
            "ALTER TABLE audit_entry DISABLE TRIGGER USER; UPDATE audit_entry SET reason = {new} WHERE id = 1; \
             ALTER TABLE audit_entry ENABLE TRIGGER USER"
        )
    };
    // the change, how to undo it, what the message contains
    let table = [
        (
            format!("UPDATE meter SET balance = balance + 1 WHERE account = {busy}"),
            format!("UPDATE meter SET balance = balance - 1 WHERE account = {busy}"),
            "account org_x0000000000000000001 differs; its balance was",
        ),
        (
            "UPDATE key_secret SET revoked_at = revoked_at + 1 WHERE hash = decode(repeat('04', 32), 'hex')".to_owned(),
            "UPDATE key_secret SET revoked_at = revoked_at - 1 WHERE hash = decode(repeat('04', 32), 'hex')".to_owned(),
            "of org_x0000000000000000004 differs",
        ),
        (
            format!("UPDATE api_key SET max_in_flight = max_in_flight + 1 WHERE account = {keyed} AND number = 2"),
            format!("UPDATE api_key SET max_in_flight = max_in_flight - 1 WHERE account = {keyed} AND number = 2"),
            "of org_x0000000000000000008 differs",
        ),
        (
            format!("UPDATE key_meter SET day_count = day_count + 1 WHERE account = {keyed} AND key = 1"),
            format!("UPDATE key_meter SET day_count = day_count - 1 WHERE account = {keyed} AND key = 1"),
            "of org_x0000000000000000008 differs",
        ),
        (
            format!("UPDATE hold SET fallback = fallback - 1 WHERE id = {hold}"),
            format!("UPDATE hold SET fallback = fallback + 1 WHERE id = {hold}"),
            "hold req_e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0 of org_x0000000000000000009 differs",
        ),
        (
            "UPDATE payment_authorization SET failed_at = failed_at + 1 WHERE nonce = decode(repeat('c4', 32), 'hex')"
                .to_owned(),
            "UPDATE payment_authorization SET failed_at = failed_at - 1 WHERE nonce = decode(repeat('c4', 32), 'hex')"
                .to_owned(),
            "authorization 0xc4c4c4c4",
        ),
        (
            "UPDATE authorization_submission SET signed_at = signed_at + 1 WHERE hash = decode(repeat('c1', 32), 'hex')"
                .to_owned(),
            "UPDATE authorization_submission SET signed_at = signed_at - 1 WHERE hash = decode(repeat('c1', 32), 'hex')"
                .to_owned(),
            "authorization 0xc1c1c1c1",
        ),
        (
            format!("INSERT INTO free_gas_place VALUES (8453, {gas}, decode('0000000000000001', 'hex'))"),
            format!("DELETE FROM free_gas_place WHERE wallet = {gas} AND nonce = decode('0000000000000001', 'hex')"),
            "gas places of 0x",
        ),
        (
            format!("UPDATE meter SET alert_below = alert_below + 1 WHERE account = {notified}"),
            format!("UPDATE meter SET alert_below = alert_below - 1 WHERE account = {notified}"),
            "account org_x0000000000000000010 differs",
        ),
        (
            format!("UPDATE webhook SET old_secret_expires_at = old_secret_expires_at + 1 WHERE public_id = {webhook}"),
            format!("UPDATE webhook SET old_secret_expires_at = old_secret_expires_at - 1 WHERE public_id = {webhook}"),
            "webhook we_09090909090909090909090909090909 differs",
        ),
        (
            "UPDATE event SET data = data || ' ' WHERE number = (SELECT max(number) FROM event)".to_owned(),
            "UPDATE event SET data = rtrim(data) WHERE number = (SELECT max(number) FROM event)".to_owned(),
            "event evt_",
        ),
        (
            "UPDATE delivery SET since = since + 1 WHERE id = (SELECT max(id) FROM delivery)".to_owned(),
            "UPDATE delivery SET since = since - 1 WHERE id = (SELECT max(id) FROM delivery)".to_owned(),
            "to we_00000000000000000000000000000000 differs",
        ),
        (sign.clone(), sign, "activity of org_x0000000000000000001"),
        (
            format!("UPDATE quote SET expires_at = expires_at + 1 WHERE nonce = {third}"),
            format!("UPDATE quote SET expires_at = expires_at - 1 WHERE nonce = {third}"),
            "quote NonceHash(03030303…) differs",
        ),
        (
            format!("UPDATE signup SET expires_at = expires_at + 1 WHERE token = {visitor}"),
            format!("UPDATE signup SET expires_at = expires_at - 1 WHERE token = {visitor}"),
            "signup SessionHash(a1a1a1a1…) differs",
        ),
        (
            format!("UPDATE email_link SET expires_at = expires_at + 1 WHERE token = {link}"),
            format!("UPDATE email_link SET expires_at = expires_at - 1 WHERE token = {link}"),
            "email link LinkHash(b6b6b6b6…) of org_x0000000000000000006 differs",
        ),
        (
            "UPDATE operator SET revoked_at = NULL WHERE name = 'jo'".to_owned(),
            format!("UPDATE operator SET revoked_at = {} WHERE name = 'jo'", later(60).unix_millis()),
            "operator jo differs",
        ),
        (reason("reason || 'x'"), reason("rtrim(reason, 'x')"), "audit entry 1 differs"),
        (
            "INSERT INTO audit_outcome (entry, at, result, detail) VALUES (4, 0, 'done', '')".to_owned(),
            "ALTER TABLE audit_outcome DISABLE TRIGGER USER; DELETE FROM audit_outcome WHERE entry = 4; \
             ALTER TABLE audit_outcome ENABLE TRIGGER USER"
                .to_owned(),
            "audit entry 4 differs",
        ),
        (
            "UPDATE account SET email_verified_at = email_verified_at + 1 WHERE org_id = 'org_x0000000000000000007'"
                .to_owned(),
            "UPDATE account SET email_verified_at = email_verified_at - 1 WHERE org_id = 'org_x0000000000000000007'"
                .to_owned(),
            "account org_x0000000000000000007 differs",
        ),
        (
            format!("INSERT INTO wallet_link VALUES (999999, decode(repeat('01', 20), 'hex'), {busy})"),
            "DELETE FROM wallet_link WHERE id = 999999".to_owned(),
            "link of 0x0101010101010101010101010101010101010101 to org_x0000000000000000001 is new",
        ),
    ];
    for (change, undo, expected) in table {
        fixture.psql(&change);
        let message = fixture.migrate(&[]).failure(5);
        assert!(message.contains(expected) && message.contains("written to since"), "{change}: {message}");
        fixture.psql(&undo);
    }
    assert!(fixture.migrate(&[]).success().contains("Already moved to"));
}
