//! Signed receipts of requests: anyone can verify one, with the command line, the documented Python script or a browser, also
//! after the key was rotated.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use metering_core::Credits;
use metering_tests::ports::free_address;
use metering_tests::program::program;
use metering_tests::site::Site;
use metering_tests::{skipped, venv};
use serde_json::{Value, json};

use crate::pages::play;
use crate::support::wire::BASE;

/// The result of the command line and the script for a receipt: its statement, or `None` if both refuse it.
#[track_caller]
fn verified(site: &Site, receipt: &str, keys: &Path) -> Option<Value> {
    let file = site.write("receipt.txt", receipt);
    let mut command = Command::new(program("metering"));
    command.env("METERING_CLIENT_HOME", site.path("home")).args(["receipt", "verify", "--json", "--keys"]);
    let stated = stated(&command.arg(keys).arg(&file).output().unwrap());
    if !skipped::by("TESTS_SKIP_CLIENTS") {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/verify_receipt.py");
        let mut python = Command::new(venv::program("clients-venv", "python"));
        assert_eq!(self::stated(&python.arg("-B").arg(script).arg(file).arg(keys).output().unwrap()), stated);
    }
    stated
}

#[track_caller]
fn stated(output: &Output) -> Option<Value> {
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Some(serde_json::from_slice(&output.stdout).unwrap()),
        Some(1) if errors.lines().count() == 1 => None,
        _ => panic!("{output:?}"),
    }
}

#[test]
fn receipts_are_verified_without_the_service_and_outlive_their_key() {
    let (site, address) = (Site::new(), free_address());
    let (file, url) = (site.path("receipts.pem").display().to_string(), format!("http://{address}"));
    assert_eq!(site.admin(&["receipt-key", "create", &file]).code, Some(0));
    let account = site.account("2");
    let server = site.server_at(&address.to_string()).set("METERING_PUBLIC_URL", &url);
    let server = server.set("METERING_RECEIPTS__KEY_FILE", &file).start();
    let published = |name: &str| -> PathBuf {
        let keys = server.client().get("/.well-known/metering-keys").expect(200);
        assert_eq!(keys.header("content-type"), Some("application/jwk-set+json"));
        site.write(name, &keys.text())
    };
    let did = server.client().get("/.well-known/did.json").expect(200).json();
    assert_eq!(did["id"], format!("did:web:127.0.0.1%3A{}", address.port()));
    let client = server.client_with(&account.api_key);
    assert_eq!(client.get(BASE).expect(200).header("metering-receipt"), None);
    let asking = client.clone().with_header("Prefer", "metering-receipt");
    let charge = || asking.get(BASE).expect(200);

    let (response, before) = (charge(), published("before.json"));
    let header = |name: &str| response.header(name).unwrap_or_else(|| panic!("no {name}")).to_owned();
    let receipt = header("metering-receipt");
    let what = verified(&site, &receipt, &before).unwrap();
    let credits = |member: &str| Credits::from_atoms(what[member].as_str().unwrap().parse().unwrap()).to_string();
    assert_eq!([&what["iss"], &what["sub"], &what["kind"]], [url.as_str(), &account.org_id, "charge"]);
    assert_eq!(what["request"], header("x-request-id"));
    assert_eq!([credits("atoms"), credits("balance")], ["x-bds-credit-charged", "x-bds-credit-balance"].map(header));
    // The version of the format, in the payload.
    let tampered = receipt.replacen("eyJ2Ijox", "eyJ2Ijoy", 1);
    assert_ne!(tampered, receipt);
    assert_eq!(verified(&site, &tampered, &before), None);

    assert_eq!(site.admin(&["receipt-key", "rotate", &file]).code, Some(0));
    server.hang_up();
    server.expect_log("the configuration was reloaded");
    let (newer, after) = (charge().header("metering-receipt").unwrap().to_owned(), published("after.json"));
    assert_eq!(verified(&site, &newer, &before), None, "a new key signs");
    for receipt in [&receipt, &newer] {
        assert!(verified(&site, receipt, &after).is_some(), "both keys are published");
    }
    let keys = std::fs::read_to_string(&before).unwrap();
    let more = json!({"receipt": receipt, "tampered": tampered, "keys": keys, "account": account.org_id});
    play("verifyReceipt", &server, more);
    let metrics = server.client().get("/metrics").expect(200).text();
    assert!(metrics.contains("metering_receipts_total{outcome=\"signed\"} 2"), "{metrics}");
    site.verify();
}
