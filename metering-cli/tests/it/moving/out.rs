//! Moving out with `export accounts --with-hashes`, and in again on another backend.

use std::fs;

use metering_tests::postgres::is_skipped;

use crate::fixture::Fixture;

const HEADINGS: &str = "agent_name,email,payer_address,payer_chain_id,credit_balance,total_credits_purchased,\
    total_credits_used,created_at,revoked_at,key_hash,hash_kind,used_transactions\n";

#[test]
fn accounts_are_the_same_after_moving_to_another_backend_and_back() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    let file = |name: &str| fixture.folder.path().join(name);
    let used = format!(r#""[{{""chain_id"":1,""tx_hash"":""0x{}""}}]""#, "1b".repeat(32));
    let (first, second) = ("1a".repeat(32), "2a".repeat(32));
    let payer = format!("0x{}", "3a".repeat(20));
    let rows = format!(
        "{HEADINGS}a,A@Example.com,{payer},8453,12.00000001,15,4,2025-01-02,,{first},sha256,{used}\n\
         b,,,,-1,0,2.5,2025-01-02T03:04:05Z,2025-06-07,{second},sha3-256,\n"
    );
    fs::write(file("rows.csv"), rows).unwrap();
    let from = fixture.from();
    let export = |database: &str, format: &str, output: &str| {
        let export =
            ["--database", database, "export", "accounts", "--with-hashes", "--format", format, "--output", output];
        let ran = fixture.admin(&export);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        fs::read_to_string(file(output)).unwrap()
    };
    let import = |database: &str, from: &str| {
        let ran = fixture.admin(&["--database", database, "import", "--from", from, "--format", "accounts", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains(r#""created":2"#) && ran.stdout.contains(r#""equal":2"#), "{ran:?}");
        let ran = fixture.admin(&["--database", database, "verify"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    import(&from, "rows.csv");
    let moved = export(&from, "jsonl", "a.jsonl");
    assert!(moved.contains(r#""hash_kind":"sha256""#) && moved.contains(&first), "{moved}");
    import(&fixture.url, "a.jsonl");
    assert_eq!(export(&fixture.url, "jsonl", "b.jsonl"), moved);
    export(&fixture.url, "csv", "c.csv");
    let third = format!("sqlite:{}", file("third.db").display());
    import(&third, "c.csv");
    assert_eq!(export(&third, "jsonl", "d.jsonl"), moved);
    // The kind of a hash moves with the whole store, too.
    let other = Fixture::new();
    fs::copy(file("third.db"), other.file()).unwrap();
    assert_eq!(other.migrate(&[]).code, Some(0));
    assert_eq!(other.psql("SELECT string_agg(hash_kind, ' ' ORDER BY hash) FROM key_secret").trim(), "sha256 sha3-256");
}
