//! The catalogue that sellers copy, in front of a service that records the true cost.

use std::path::{Path, PathBuf};

use metering_core::Credits;
use metering_tests::client::{Client, exchange};
use metering_tests::llm_upstream::LlmUpstream;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};
use serde_json::Value;

use crate::support::wait::until;

/// A gateway with `deploy/llm/routes.json`.
pub(super) struct Scene {
    pub(super) site: Site,
    pub(super) upstream: LlmUpstream,
    pub(super) server: Server,
}

/// The charge of an account for a request, in atoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Paid {
    pub(super) charged: u64,
    /// The released part of the hold; 0 if the cost exceeded it.
    pub(super) released: u64,
}

/// The folder with the files to copy.
pub(super) fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/llm")
}

impl Scene {
    pub(super) fn new() -> Self {
        Self::selling(Site::verified(), &shipped().join("routes.json"))
    }

    /// The same with another catalogue.
    pub(super) fn selling(site: Site, catalogue: &Path) -> Self {
        let upstream = LlmUpstream::start();
        let server = site
            .server()
            .set("METERING_HTTP__MAX_BODY_BYTES", "10000000")
            .set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "64")
            .args(["--upstream", &upstream.url(), "--catalogue", &catalogue.display().to_string()])
            .start();
        Self { site, upstream, server }
    }

    pub(super) fn client(&self, account: &IssuedAccount) -> Client {
        self.server.client_with(&account.api_key)
    }

    /// Sends a request exactly as given, with the key in `Authorization`.
    #[track_caller]
    pub(super) fn send(
        &self,
        account: &IssuedAccount,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let mut request = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        request.push_str(&format!("Authorization: Bearer {}\r\nContent-Length: {}\r\n", account.api_key, body.len()));
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            request.push_str("Content-Type: application/json\r\n");
        }
        request.push_str("\r\n");
        let bytes = [request.as_bytes(), body].concat();
        let received = exchange(self.server.address(), &bytes).expect("a response comes");
        Response::parse(&received).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&received)))
    }

    /// The charge for a request, after it is settled.
    #[track_caller]
    pub(super) fn paid(&self, account: &IssuedAccount, response: &Response) -> Paid {
        let id = response.header("x-bds-request-id").unwrap_or_else(|| panic!("no id: {:?}", response.headers));
        self.settled(account, id)
    }

    #[track_caller]
    pub(super) fn settled(&self, account: &IssuedAccount, id: &str) -> Paid {
        let (client, path) = (self.client(account), format!("/requests/{id}"));
        until("the hold is settled", || client.get(&path).expect(200).json()["state"] != "held");
        let request = client.get(&path).expect(200).json();
        Paid { charged: atoms(&request["charged"]), released: atoms(&request["released"]) }
    }

    /// The balance in atoms, once nothing is held.
    #[track_caller]
    pub(super) fn balance(&self, account: &IssuedAccount) -> i64 {
        let client = self.client(account);
        until("nothing is held", || client.get("/credits/balance").expect(200).member("credits_held") == "0");
        let balance = client.get("/credits/balance").expect(200).member("credit_balance");
        balance.parse::<Credits>().unwrap().atoms()
    }
}

/// A printed amount in atoms. All prices of the catalogue are whole atoms and have few decimals, so nothing is rounded.
pub(super) fn atoms(printed: &Value) -> u64 {
    let printed = printed.as_str().map_or_else(|| printed.to_string(), str::to_owned);
    u64::try_from(printed.parse::<Credits>().unwrap().atoms()).unwrap()
}
