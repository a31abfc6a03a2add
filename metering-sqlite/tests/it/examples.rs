//! Runs the examples as programs, as a reader would.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

/// The program of an example. Cargo builds it along with the tests.
fn example(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).expect("tests are in target/PROFILE/deps");
    let program = profile.join("examples").join(format!("{name}{}", env::consts::EXE_SUFFIX));
    assert!(
        program.exists(),
        "{} is not built: run `cargo build -p metering-sqlite --examples`, or the tests without `--test`",
        program.display()
    );
    program
}

#[test]
fn first_charge_example_prints_the_balance() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(example("first_charge_sqlite")).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.ends_with(" paid 0.25 credits\nbalance: 1.75 credits\n"), "{text}");
}

#[test]
fn the_embedding_example_charges_refunds_and_balances() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(example("embed")).arg(folder.path()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    // 199 base calls of 1/7200 credit remain charged.
    for expected in
        ["balance 1.9723611111, used 0.0276388889", "  200 calls  0.0276388889 credits", "GET /quotes/{number}"]
    {
        assert!(text.contains(expected), "{expected} is missing in:\n{text}");
    }
    assert!(text.contains("verified 1 account(s): every balance adds up"), "{text}");
    assert!(folder.path().join("metering.db").exists());
}

/// A running axum example.
struct Site {
    process: Child,
    output: BufReader<ChildStdout>,
    address: String,
    key: String,
}

impl Site {
    fn start() -> Self {
        let mut command = Command::new(example("axum_layer"));
        let mut process = command.arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            line.trim().to_owned()
        };
        let address = line().strip_prefix("listening on http://").expect("the example prints its address").to_owned();
        let curl = line();
        let key = curl
            .split(['\'', ' '])
            .find(|word| word.starts_with("sk_live_"))
            .expect("the example prints a key")
            .to_owned();
        Self { process, output, address, key }
    }

    /// Status, headers in lower case, and body of a GET.
    fn get(&self, path: &str, key: Option<&str>) -> (u16, String, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let authorization = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: example\r\nConnection: close\r\n{authorization}\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").expect("an HTTP response");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line");
        (status, head.to_lowercase(), serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_axum_example_charges_for_its_routes() {
    let site = Site::start();
    let key = Some(site.key.as_str());
    let balance = || site.get("/credits/balance", key).2["credit_balance"].to_string();

    let (status, head, body) = site.get("/squares/12", key);
    assert_eq!((status, &body["square"]), (200, &Value::from(144)));
    assert!(body["paid_by"].as_str().is_some_and(|id| id.starts_with("org_")), "{body}");
    assert!(head.contains("x-bds-credit-charged: 0.0013888889"), "{head}");
    assert!(head.contains("x-bds-credit-balance: 1.9986111111"), "{head}");

    // path, with a key, status, error code
    let refused = [
        ("/squares/12", false, 401, "unauthorized"),
        ("/squares/twelve", true, 400, "invalid_parameter"),
        ("/squares/12/13", true, 404, "unknown_route"),
        ("/credits/balance", false, 401, "unauthorized"),
    ];
    for (path, with_key, expected, code) in refused {
        let (status, _, body) = site.get(path, key.filter(|_| with_key));
        assert_eq!((status, body["error"].as_str()), (expected, Some(code)), "{path}");
    }
    assert_eq!(site.get("/squares/limits", None).0, 200);
    assert_eq!(site.get("/credits/plans", None).2["plans"], Value::Array(Vec::new()));
    assert_eq!(balance(), "1.9986111111");

    let (status, head, _) = site.get("/squares/9223372036854775807", key);
    assert_eq!(status, 503);
    assert!(head.contains("x-bds-credit-charged: 0\r"), "{head}");
    assert_eq!(balance(), "1.9986111111", "a request that was not served is refunded");
}

#[cfg(unix)]
#[test]
fn axum_example_shuts_down_gracefully() {
    let mut site = Site::start();
    let killed = Command::new("sh").arg("-c").arg(format!("kill -TERM {}", site.process.id())).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    site.output.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("stopped\n"), "{rest}");
    assert!(site.process.wait().unwrap().success());
}
