//! The client against witnesses that follow the protocol, and some that do not.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use metering_core::SystemClock;
use metering_log::checkpoint::Checkpoint;
use metering_log::keys::PrivateKey;
use metering_log::note::{Cosigner, KeyName, NoteSigner, SignatureKind};
use metering_log::tree::{Leaves, consistency_proof, read_root};
use metering_log::witness::{Seen, Witness, WitnessedLog};

use super::*;

const ORIGIN: &str = "api.example.com/log/1";

/// A witness's response to a body: status and text.
type Respond = Box<dyn FnOnce(&str) -> (u16, String) + Send>;

struct Tree(Vec<TreeHash>);

impl Tree {
    fn new(size: u8) -> Self {
        Self((0..size).map(|leaf| TreeHash::leaf(&[leaf])).collect())
    }

    fn head(&self, size: usize) -> Seen {
        let size_of = size as u64;
        Seen { size: size_of, root: read_root(&Leaves(&self.0[..size]), size_of).unwrap() }
    }

    fn signed(&self, size: usize) -> SignedCheckpoint {
        let Seen { size, root } = self.head(size);
        SignedCheckpoint::sign(Checkpoint::new(ORIGIN, size, root).unwrap(), &log_signer()).unwrap()
    }
}

#[async_trait]
impl ConsistencyProofs for Tree {
    async fn prove(&self, old: u64, new: u64) -> Result<Vec<TreeHash>, String> {
        consistency_proof(&Leaves(&self.0), old, new).map_err(|error| error.to_string())
    }
}

fn log_signer() -> NoteSigner {
    NoteSigner::new(KeyName::new(ORIGIN).unwrap(), PrivateKey::from_seed(&[1; 32]))
}

fn cosigner() -> Cosigner {
    Cosigner::new(KeyName::new("example.com/witness").unwrap(), PrivateKey::from_seed(&[2; 32]))
}

/// Serves `responses` to one request each, on loopback, and returns the URL of the witness.
fn serve(responses: Vec<Respond>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/w", listener.local_addr().unwrap());
    thread::spawn(move || {
        for respond in responses {
            let (mut connection, _) = listener.accept().unwrap();
            let request = read_request(&mut connection);
            let (head, body) = request.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("POST /w/add-checkpoint HTTP/1.1\r\n"), "{head}");
            let (status, text) = respond(body);
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
            // The client may be gone.
            let _ = connection.write_all(format!("{head}{text}").as_bytes());
        }
    });
    url
}

fn read_request(connection: &mut TcpStream) -> String {
    let (mut received, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&received).into_owned();
        let length = text.to_ascii_lowercase().split_once("content-length: ").and_then(|(_, rest)| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<usize>().ok()
        });
        let body = received.windows(4).position(|end| end == b"\r\n\r\n").map(|end| received.len() - end - 4);
        if body.zip(length).is_some_and(|(read, length)| read >= length) {
            return text;
        }
        let count = connection.read(&mut chunk).unwrap();
        assert!(count > 0, "the request ended early");
        received.extend_from_slice(&chunk[..count]);
    }
}

/// The protocol's rule, for a witness that last cosigned `latest`.
fn witness(latest: Option<Seen>) -> Respond {
    Box::new(move |body| {
        let log = WitnessedLog { keys: vec![log_signer().verifier().clone()], latest };
        match Witness::new(cosigner()).add_checkpoint(body, |_| Some(log), 1_800_000_000) {
            Ok(accepted) => (200, accepted.body),
            Err(refusal) => (refusal.status(), refusal.body()),
        }
    })
}

fn says(status: u16, text: &str) -> Respond {
    let text = text.to_owned();
    Box::new(move |_| (status, text))
}

fn witnesses(url: &str) -> Witnesses {
    let text = format!("[log]\n[[log.witnesses]]\nname = 'w'\nvkey = '{}'\nurl = '{url}'", cosigner().verifier());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    Witnesses::new(&toml::from_str::<Config>(&text).unwrap(), &clock).unwrap()
}

fn cosigned_by(signed: &SignedCheckpoint) -> usize {
    let kind = SignatureKind::Cosignature;
    let keys = [cosigner().verifier().clone()];
    signed.note().verify(&keys).map_or(0, |found| found.iter().filter(|one| one.key.kind() == kind).count())
}

#[tokio::test]
async fn a_conflict_names_the_size_to_prove_from_and_the_next_request_starts_there() {
    let tree = Tree::new(9);
    // The witness knows 3 leaves, then 7: the second checkpoint needs no conflict.
    let (three, seven) = (Some(tree.head(3)), Some(tree.head(7)));
    let mut witnesses = witnesses(&serve(vec![witness(three), witness(three), witness(seven)]));
    for size in [7, 9] {
        let mut signed = tree.signed(size);
        assert_eq!(witnesses.cosign(&mut signed, &tree).await, 1, "{size}");
        assert_eq!(cosigned_by(&signed), 1, "{size}");
        assert_eq!(witnesses.known[0].size, size as u64);
    }
}

#[tokio::test]
async fn what_is_no_cosignature_adds_nothing_and_pauses_the_witness() {
    let tree = Tree::new(5);
    let other = cosigner().cosign("another text\n", 1_800_000_000).to_string();
    // responses
    let table = [
        vec![says(409, "6\n")],
        vec![says(409, "2\n"), says(409, "3\n")],
        vec![says(409, "two")],
        vec![says(403, "not signed by the log")],
        vec![says(200, "")],
        vec![says(200, &format!("{other}\n"))],
    ];
    for (index, responses) in table.into_iter().enumerate() {
        let mut witnesses = witnesses(&serve(responses));
        let mut signed = tree.signed(5);
        assert_eq!(witnesses.cosign(&mut signed, &tree).await, 0, "{index}");
        assert_eq!(cosigned_by(&signed), 0, "{index}");
        assert!(witnesses.known[0].paused_until.is_some(), "{index}");
        // The listener is gone: a request would be refused, and extend the pause.
        let pause = witnesses.known[0].paused_until;
        assert_eq!(witnesses.cosign(&mut signed, &tree).await, 0, "{index}");
        assert_eq!(witnesses.known[0].paused_until, pause, "{index}");
    }
}
