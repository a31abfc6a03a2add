//! Clients that generators make from the OpenAPI document of a running server: they compile, and a metered call with
//! them is charged the route's price. The Python client also reads a receipt as bytes.
//!
//! openapi-python-client and openapi-typescript are installed by `./test.sh`, from `tests/clients`.

use std::path::{Path, PathBuf};
use std::process::Command;

use metering_tests::chain::Chain;
use metering_tests::site::Site;
use metering_tests::venv;
use serde_json::{Value, json};

use crate::support::shop::{Kind, Shop};

/// Set by `./test.sh` on a machine without Node.js or Python.
const SKIP: &str = "TESTS_SKIP_CLIENTS";
/// Ten base calls.
const PRICE: &str = "0.0013888889";
/// A name that must be escaped in comments and strings of clients.
const BRAND: &str = "Acme: Data & \"Prices\"";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// Runs a program to its end, and returns what it printed.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {printed}\n{errors}");
    // Generators report what they left out as warnings.
    assert!(!errors.contains("WARNING") && !printed.contains("WARNING"), "{command:?}: {printed}\n{errors}");
    printed
}

/// Checks what a generated client printed about its call, and the balance after it.
#[track_caller]
fn assert_used(printed: &str, balance: &Value) {
    let used: Value = serde_json::from_str(printed.trim()).unwrap_or_else(|error| panic!("{error}: {printed}"));
    assert_eq!((&used["status"], &used["block"], &used["charged"]), (&json!(200), &json!(19_000_001), &json!(PRICE)));
    assert!(used["price"].as_str().is_some_and(|price| price.parse::<f64>().is_ok()), "{used}");
    assert_eq!(used["balance"], *balance, "{used}");
}

#[test]
fn a_generated_python_client_makes_a_metered_call() {
    if metering_tests::skipped::by(SKIP) {
        return;
    }
    let Some(shop) = Shop::with(Chain::setup(), "1", &format!("[brand]\nname = '{BRAND}'")) else { return };
    let key = shop.signed_up(Kind::Token, &shop.customer());
    let base = format!("http://{}", shop.server.address());
    let client = shop.site.path("client");
    let mut generate = Command::new(venv::program("clients-venv", "openapi-python-client"));
    let url = format!("{base}/openapi.json");
    generate.args(["generate", "--meta", "none", "--fail-on-warning", "--url", &url, "--config"]);
    run(generate.arg(folder().join("python.yaml")).arg("--output-path").arg(client.join("generated_client")));
    let python = venv::program("clients-venv", "python");
    run(Command::new(&python).args(["-m", "compileall", "-q"]).arg(&client));
    let mut used = Command::new(python);
    used.env("PYTHONPATH", &client).arg(folder().join("use.py")).args([&base, &key]);
    assert_used(&run(&mut used), &json!(12.4986111111));
}

#[test]
fn a_generated_typescript_client_makes_a_metered_call() {
    if metering_tests::skipped::by(SKIP) {
        return;
    }
    let packages = folder().join("node_modules");
    assert!(packages.is_dir(), "{} is missing: run `npm ci` in tests/clients, or ./test.sh", packages.display());
    let site = Site::verified();
    let server = site.server().set("METERING_BRAND__NAME", BRAND).start();
    let key = site.account("1").api_key;
    let base = format!("http://{}", server.address());
    // Node.js and the compiler look for packages in the folders above a file.
    let client = site.path("client");
    std::fs::create_dir(&client).unwrap();
    std::os::unix::fs::symlink(&packages, client.join("node_modules")).unwrap();
    std::fs::write(client.join("package.json"), r#"{"type": "module"}"#).unwrap();
    for file in ["use.ts", "tsconfig.json"] {
        std::fs::copy(folder().join(file), client.join(file)).unwrap();
    }
    let node = |script: &str| {
        let mut command = Command::new("node");
        command.current_dir(&client).arg(packages.join(script));
        command
    };
    let url = format!("{base}/openapi.json");
    run(node("openapi-typescript/bin/cli.js").args([&url, "--output", "schema.ts"]));
    run(&mut node("typescript/bin/tsc"));
    assert_used(&run(Command::new("node").arg(client.join("use.js")).args([&base, &key])), &json!(0.9986111111));
}
