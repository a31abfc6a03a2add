//! A move copies exactly what was there, and differences are found.

use metering_tests::postgres::is_skipped;
use serde_json::Value;

use super::filling::{fill_at_random, later};
use super::snapshot::snapshot;
use super::{MIGRATE, Move};
use crate::store::{block_on, records};

#[test]
fn full_store_reads_the_same_after_a_move() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::full();
    let (before, records_before) = block_on(async {
        let store = moving.sqlite();
        (snapshot(&store).await, records(&store).await)
    });
    let moved: Value = moving.program.json(MIGRATE);
    assert_eq!((&moved["ending"], &moved["differing"]), (&"moved".into(), &0.into()));
    let sections = moved["sections"].as_array().unwrap();
    for section in sections {
        assert!(section["from"]["records"].as_u64().unwrap() > 0, "no records in section {}", section["section"]);
        assert_eq!(section["from"], section["to"]);
    }
    let held_in = |name: &str| {
        let section = sections.iter().find(|section| section["section"] == name).unwrap();
        section["to"]["amounts"]["held"].to_string()
    };
    assert_eq!(held_in("holds"), held_in("accounts"), "{moved}");
    assert_ne!(held_in("holds"), "0");
    block_on(async {
        let store = moving.postgres().await;
        assert_same(&before, &snapshot(&store).await);
        assert_eq!(records(&store).await, records_before);
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
    metering_tests::skip_if!(is_skipped());
    for _ in 0..8 {
        let moving = Move::new();
        block_on(async {
            fill_at_random(&moving).await;
            let store = moving.sqlite();
            let before = snapshot(&store).await;
            drop(store);
            moving.migrate();
            assert_same(&before, &snapshot(&moving.postgres().await).await);
        });
    }
}

#[test]
fn every_later_change_is_found() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::full();
    moving.migrate();
    let busy = "(SELECT id FROM account WHERE org_id = 'org_x0000000000000000001')";
    let keyed = "account = (SELECT id FROM account WHERE org_id = 'org_x0000000000000000008')";
    let notified = "account = (SELECT id FROM account WHERE org_id = 'org_x0000000000000000010')";
    let buyer = "account = (SELECT id FROM account WHERE org_id = 'org_x0000000000000000002')";
    let sent = "account, day, route_template, http_method, source, key";
    let first_sent = format!("({sent}) = (SELECT {sent} FROM usage_sent ORDER BY {sent} LIMIT 1)");
    let is = |column: &str, byte: &str, times: u32| format!("{column} = decode(repeat('{byte}', {times}), 'hex')");
    let gas = is("wallet", "cc", 20);
    let verified = "org_id = 'org_x0000000000000000007'";
    // A number that is changed by one: its table, its column, its row, and what the message contains.
    let numbers = [
        ("meter", "balance", format!("account = {busy}"), "account org_x0000000000000000001 differs; its balance was"),
        ("key_secret", "revoked_at", is("hash", "04", 32), "of org_x0000000000000000004 differs"),
        ("api_key", "max_in_flight", format!("{keyed} AND number = 2"), "of org_x0000000000000000008 differs"),
        ("key_meter", "day_count", format!("{keyed} AND key = 1"), "of org_x0000000000000000008 differs"),
        (
            "hold",
            "fallback",
            is("id", "e0", 16),
            "hold req_e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0 of org_x0000000000000000009 differs",
        ),
        ("payment_authorization", "failed_at", is("nonce", "c4", 32), "authorization 0xc4c4c4c4"),
        ("payment_authorization", "used_credits", is("nonce", "c7", 32), "authorization 0xc7c7c7c7"),
        ("authorization_submission", "signed_at", is("hash", "c1", 32), "authorization 0xc1c1c1c1"),
        ("meter", "alert_below", notified.to_owned(), "account org_x0000000000000000010 differs"),
        (
            "webhook",
            "old_secret_expires_at",
            is("public_id", "09", 16),
            "webhook we_09090909090909090909090909090909 differs",
        ),
        (
            "delivery",
            "since",
            "id = (SELECT max(id) FROM delivery)".to_owned(),
            "to we_00000000000000000000000000000000 differs",
        ),
        ("quote", "expires_at", is("nonce", "03", 32), "quote NonceHash(03030303…) differs"),
        ("signup", "expires_at", is("token", "a1", 32), "signup SessionHash(a1a1a1a1…) differs"),
        (
            "email_link",
            "expires_at",
            is("token", "b6", 32),
            "email link LinkHash(b6b6b6b6…) of org_x0000000000000000006 differs",
        ),
        (
            "browser_session",
            "used_at",
            is("token", "07", 32),
            "session ses_07070707070707070707070707070707 of org_x0000000000000000007 differs",
        ),
        ("auto_top_up", "monthly_limit", buyer.to_owned(), "saved card of org_x0000000000000000002 differs"),
        ("top_up_charge", "amount", "state = 'open'".to_owned(), "of org_x0000000000000000002 differs"),
        ("receipt_terms", "since", "id = 1".to_owned(), "receipt terms 1 differs"),
        (
            "issued_receipt",
            "sequence",
            "sequence = (SELECT max(sequence) FROM issued_receipt)".to_owned(),
            "receipt of payment",
        ),
        ("usage_sink", "since", "state = 'pending'".to_owned(), "usage sink größe's differs"),
        ("usage_sent", "sequence", first_sent, "at sink größe's differs"),
        ("oauth_client", "expires_at", "id = 'cli_moved'".to_owned(), "OAuth client cli_moved differs"),
        (
            "oauth_grant",
            "expires_at",
            is("id", "07", 16),
            "OAuth grant GrantTokenHash(07070707…) of org_x0000000000000000007 differs",
        ),
        ("account", "email_verified_at", verified.to_owned(), "account org_x0000000000000000007 differs"),
    ];
    let numbers = numbers.map(|(table, column, row, expected)| {
        let by = |sign: &str| format!("UPDATE {table} SET {column} = {column} {sign} 1 WHERE {row}");
        (by("+"), by("-"), expected)
    });
    // The newest of the packed entries: a form, its number, its line, then the amount, whose first bit is its sign.
    let sign = format!(
        "UPDATE activity SET entries = set_byte(entries, 11, get_byte(entries, 11) # 1) \
         WHERE account = {busy} AND block = (SELECT entries / 16 FROM meter WHERE account = {busy})"
    );
    // Only the owner of the tables can change the audit log.
    let audit = |table: &str, sql: &str| {
        format!("ALTER TABLE {table} DISABLE TRIGGER USER; {sql}; ALTER TABLE {table} ENABLE TRIGGER USER")
    };
    let reason = |new: &str| audit("audit_entry", &format!("UPDATE audit_entry SET reason = {new} WHERE id = 1"));
    let last_event = "WHERE number = (SELECT max(number) FROM event)";
    // the change, how to undo it, what the message contains
    let others = [
        (
            "INSERT INTO free_gas_place VALUES (8453, decode(repeat('cc', 20), 'hex'), decode('0000000000000001', 'hex'))"
                .to_owned(),
            format!("DELETE FROM free_gas_place WHERE {gas} AND nonce = decode('0000000000000001', 'hex')"),
            "gas places of 0x",
        ),
        (
            format!("UPDATE event SET data = data || ' ' {last_event}"),
            format!("UPDATE event SET data = rtrim(data) {last_event}"),
            "event evt_",
        ),
        (sign.clone(), sign, "activity of org_x0000000000000000001"),
        (
            "UPDATE operator SET revoked_at = NULL WHERE name = 'jo'".to_owned(),
            format!("UPDATE operator SET revoked_at = {} WHERE name = 'jo'", later(60).unix_millis()),
            "operator jo differs",
        ),
        (reason("reason || 'x'"), reason("rtrim(reason, 'x')"), "audit entry 1 differs"),
        (
            "INSERT INTO audit_outcome (entry, at, result, detail) VALUES (100, 0, 'done', '')".to_owned(),
            audit("audit_outcome", "DELETE FROM audit_outcome WHERE entry = 100"),
            "audit entry 100 differs",
        ),
        (
            format!("INSERT INTO wallet_link VALUES (999999, decode(repeat('01', 20), 'hex'), {busy})"),
            "DELETE FROM wallet_link WHERE id = 999999".to_owned(),
            "link of 0x0101010101010101010101010101010101010101 to org_x0000000000000000001 is new",
        ),
    ];
    for (change, undo, expected) in numbers.into_iter().chain(others) {
        moving.psql(&change);
        let ran = moving.program.run(MIGRATE).expect(5).says("written to since");
        assert!(ran.stderr.contains(expected) && ran.stderr.lines().count() == 1, "{change}: {ran:?}");
        moving.psql(&undo);
    }
    assert!(moving.migrate().contains("Already moved to"));
}
