//! The paying commands of the client, against a service and a chain that do what the test says, and killed at any moment.

mod abandoning;
mod interruptions;
mod paid_elsewhere;
mod paying;
mod refusals;
mod rotation;
mod service;
mod topping_up;
mod waiting;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use metering_core::chains::Address;
use serde_json::Value;

use self::service::Service;
use crate::node::Wallet;
use crate::program::{Program, RunOutput, WALLET, WALLET_KEY, kill};
use crate::stand_in::{NEVER, RecordedRequest, Reply, StandIn};

/// Buys the plan with tokens.
const SIGNUP: &str = "signup-pay --plan starter --agent-name agent --yes";
const CLAIM: &str = "POST /signup/pay/claim";
const SEND: &str = "eth_sendRawTransaction";

/// A user with the program, a wallet (publicly known), and a profile at a service.
struct User {
    program: Program,
    stand_in: StandIn,
    state: Arc<Mutex<State>>,
    hung: Receiver<()>,
}

/// What is behind the address: the service, and the chain at `/chain`.
struct State {
    service: Service,
    node: Wallet,
    /// The requests: `POST /path`, or the method of a call to the chain.
    requests: Vec<String>,
    steps: VecDeque<(String, Step)>,
    hung: Sender<()>,
}

/// What happens to one request, for a path of the service or a method of the chain.
#[derive(Debug)]
enum Step {
    /// It gets this response, and nothing is done.
    Respond(u16, Value),
    /// Nothing is done, and no response comes.
    HangBefore,
    /// It is done, and no response comes.
    HangAfter,
    /// A directory replaces the profile, then it is done as usual.
    Folder(PathBuf),
}

impl User {
    /// A user without an account.
    fn new() -> Self {
        let (tell, hung) = channel();
        let (service, node) = (Service::new(wallet()), Wallet::new());
        let state = State { service, node, requests: Vec::new(), steps: VecDeque::new(), hung: tell };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let stand_in = StandIn::serving(move |request| shared.lock().unwrap().reply(request));
        state.lock().unwrap().service.is_at(&stand_in.url());
        let mut program = Program::new();
        program.set("METERING_CLIENT_URL", stand_in.url());
        program.set("METERING_CLIENT_RPC_URL", format!("{}/chain", stand_in.url()));
        program.set("METERING_CLIENT_WALLET_KEY", WALLET_KEY);
        Self { program, stand_in, state, hung }
    }

    /// A user with an account, which this wallet paid for.
    fn with_account(payer: Option<Address>) -> Self {
        let user = Self::new();
        let key = user.state().service.open_account(payer);
        user.write_profile(&key);
        user
    }

    fn write_profile(&self, key: &str) {
        let text = format!("url = \"{}\"\napi_key = \"{key}\"\n", self.stand_in.url());
        self.program.write("profiles/default/profile.toml", text);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// What happens to the next request for `what`, once. Calls queue up.
    fn next(&self, what: &str, step: Step) {
        self.state().steps.push_back((what.to_owned(), step));
    }

    /// How many times `what` was requested.
    fn count(&self, what: &str) -> usize {
        self.state().requests.iter().filter(|name| *name == what).count()
    }

    /// A run that succeeds, and prints no key.
    #[track_caller]
    fn succeeds(&self, line: &str) -> RunOutput {
        succeeded(self.program.run(line))
    }

    fn run_without_wallet(&self, line: &str) -> RunOutput {
        self.program.run_without("METERING_CLIENT_WALLET_KEY", line)
    }

    /// Starts the program, and kills it while a request for `what` hangs.
    #[track_caller]
    fn is_killed(&self, line: &str, what: &str, step: Step) {
        self.next(what, step);
        let child = self.program.start(line);
        self.wait_until_it_hangs();
        let _ = kill(child);
    }

    /// Waits until a request hangs.
    #[track_caller]
    fn wait_until_it_hangs(&self) {
        self.hung.recv_timeout(Duration::from_secs(30)).expect("a request hangs");
    }

    /// Whether a payment is pending.
    fn is_paying(&self) -> bool {
        self.program.profile("default", "payment.json").exists()
    }

    /// The profile's key.
    fn key(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.program.profile("default", "profile.toml")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("api_key = "))?;
        Some(line.trim_matches('"').to_owned())
    }

    /// The reasons of the payments that were set aside.
    fn set_aside(&self) -> Vec<String> {
        let file = self.program.profile("default", "payments-refused.json");
        let Ok(text) = std::fs::read_to_string(file) else { return Vec::new() };
        let list: Value = serde_json::from_str(&text).unwrap();
        list.as_array().unwrap().iter().map(|record| record["why"].as_str().unwrap().to_owned()).collect()
    }

    /// How many transactions were sent.
    fn sent(&self) -> usize {
        self.state().node.sent.len()
    }

    /// Asserts that the only account was credited once for the only payment, and that nothing is pending.
    #[track_caller]
    fn is_credited_once(&self) {
        let state = self.state();
        let [account] = state.service.accounts.as_slice() else { panic!("{:?}", state.service.accounts) };
        assert_eq!(account.credits, 12, "a new account's and the plan's");
        assert_eq!((state.node.sent.len(), state.service.used.len()), (1, 1));
        assert!(!self.is_paying());
    }

    /// The same; and the profile has the account's key.
    #[track_caller]
    fn is_settled(&self) {
        self.is_credited_once();
        self.has_the_key();
    }

    /// Asserts that the profile has the first account's key.
    #[track_caller]
    fn has_the_key(&self) {
        assert_eq!(self.key().as_ref(), Some(&self.state().service.accounts[0].key));
    }

    /// A run that gets a key while the profile cannot be written prints it, once.
    #[track_caller]
    fn prints_the_key(&self, line: &str, what: &str) -> RunOutput {
        // A file cannot replace a directory.
        self.next(what, Step::Folder(self.program.profile("default", "profile.toml")));
        let ran = self.program.run(line).expect(1);
        let key = self.state().service.accounts[0].key.clone();
        assert!(ran.stdout == format!("{key}\n") && !ran.stderr.contains(&key), "{ran:?}");
        ran.says("on standard output, only this once")
    }
}

impl State {
    fn reply(&mut self, request: &RecordedRequest) -> Reply {
        let names = names_of(request);
        self.requests.extend_from_slice(&names);
        let position = self.steps.iter().position(|(what, _)| names.contains(what));
        let (status, body) = match position.and_then(|position| self.steps.remove(position)) {
            Some((_, Step::Respond(status, body))) => (status, body),
            Some((_, Step::HangBefore)) => return self.hang(),
            Some((_, Step::HangAfter)) => {
                self.respond(request);
                return self.hang();
            }
            Some((_, Step::Folder(path))) => {
                // The profile may already name the service.
                let _ = std::fs::remove_file(&path);
                std::fs::create_dir_all(path).unwrap();
                self.respond(request)
            }
            None => self.respond(request),
        };
        Reply::new(status, body.to_string())
    }

    fn hang(&self) -> Reply {
        let _ = self.hung.send(());
        Reply::ok("").late(NEVER)
    }

    fn respond(&mut self, request: &RecordedRequest) -> (u16, Value) {
        match request.path() {
            "/chain" => (200, self.node.answer(&request.json())),
            _ => self.service.respond(request, &self.node),
        }
    }
}

fn names_of(request: &RecordedRequest) -> Vec<String> {
    match request.json() {
        Value::Array(calls) => calls.iter().map(|call| call["method"].as_str().unwrap().to_owned()).collect(),
        _ => vec![format!("{} {}", request.method, request.path())],
    }
}

#[track_caller]
fn succeeded(ran: RunOutput) -> RunOutput {
    assert!(ran.code == 0 && !ran.stdout.contains("sk_live_"), "{ran:?}");
    ran
}

fn wallet() -> Address {
    WALLET.parse().unwrap()
}
