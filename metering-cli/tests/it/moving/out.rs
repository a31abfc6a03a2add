//! Moving out with `export accounts --with-hashes`, and in again on another backend.

use metering_tests::postgres::is_skipped;

use super::Move;

const HEADINGS: &str = "agent_name,email,payer_address,payer_chain_id,credit_balance,total_credits_purchased,\
    total_credits_used,created_at,revoked_at,key_hash,hash_kind,used_transactions\n";

#[test]
fn accounts_are_the_same_after_moving_to_another_backend_and_back() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::new();
    let program = &moving.program;
    let used = format!(r#""[{{""chain_id"":1,""tx_hash"":""0x{}""}}]""#, "1b".repeat(32));
    let (first, second) = ("1a".repeat(32), "2a".repeat(32));
    let payer = format!("0x{}", "3a".repeat(20));
    let rows = format!(
        "{HEADINGS}a,A@Example.com,{payer},8453,12.00000001,15,4,2025-01-02,,{first},sha256,{used}\n\
         b,,,,-1,0,2.5,2025-01-02T03:04:05Z,2025-06-07,{second},sha3-256,\n"
    );
    program.write("rows.csv", rows);
    program.call("third", "sqlite:third.db");
    let import = |to: &str, file: &str| {
        program.prints(&[
            (
                &format!("--database {to} import --from {file} --format accounts --json"),
                &[r#""created":2"#, r#""equal":2"#],
            ),
            (&format!("--database {to} verify"), &[]),
        ]);
    };
    let export = |from: &str, format: &str, file: &str| {
        let line = format!("--database {from} export accounts --with-hashes --format {format} --output {file}");
        program.run(&line).success();
        program.read(file)
    };
    import("$from", "rows.csv");
    let moved = export("$from", "jsonl", "a.jsonl");
    assert!(moved.contains(r#""hash_kind":"sha256""#) && moved.contains(&first), "{moved}");
    import("$to", "a.jsonl");
    assert_eq!(export("$to", "jsonl", "b.jsonl"), moved);
    export("$to", "csv", "c.csv");
    import("$third", "c.csv");
    assert_eq!(export("$third", "jsonl", "d.jsonl"), moved);
    // The kind of a hash moves with the whole store, too.
    let other = Move::new();
    std::fs::copy(program.path("third.db"), other.file()).unwrap();
    other.migrate();
    assert_eq!(other.psql("SELECT string_agg(hash_kind, ' ' ORDER BY hash) FROM key_secret").trim(), "sha256 sha3-256");
}
