//! A witness and a log: which checkpoints are cosigned, and the status of each refusal.

use metering_log::checkpoint::{Checkpoint, Policy, SignedCheckpoint};
use metering_log::keys::PrivateKey;
use metering_log::note::{Cosigner, KeyName, NoteSigner};
use metering_log::tree::{Leaves, TreeHash, consistency_proof, read_root};
use metering_log::witness::{Accepted, AddCheckpoint, Refusal, Seen, Witness, WitnessedLog, checkpoint_path};

const ORIGIN: &str = "example.com/log";
const NOW: u64 = 1_796_000_000;

fn log() -> NoteSigner {
    NoteSigner::new(KeyName::new(ORIGIN).unwrap(), PrivateKey::from_seed(&[1; 32]))
}

fn witness() -> Witness {
    Witness::new(Cosigner::new(KeyName::new("example.com/witness").unwrap(), PrivateKey::from_seed(&[2; 32])))
}

/// The leaves of a history. Two histories that differ from the sixth leaf on are forks.
fn leaves(history: &str) -> Vec<TreeHash> {
    (0..20).map(|index| TreeHash::leaf(format!("{}{index}", if index < 5 { "" } else { history }).as_bytes())).collect()
}

fn root(history: &str, size: u64) -> TreeHash {
    read_root(&Leaves(&leaves(history)), size).unwrap()
}

fn checkpoint(history: &str, size: u64) -> SignedCheckpoint {
    SignedCheckpoint::sign(Checkpoint::new(ORIGIN, size, root(history, size)).unwrap(), &log()).unwrap()
}

fn request(history: &str, old_size: u64, size: u64) -> AddCheckpoint {
    let proof = consistency_proof(&Leaves(&leaves(history)), old_size, size).unwrap_or_default();
    AddCheckpoint { old_size, proof, checkpoint: checkpoint(history, size) }
}

/// The witness's response when it last cosigned `latest` leaves of the history `a`.
fn decide(request: &AddCheckpoint, latest: Option<u64>) -> Result<Accepted, Refusal> {
    decide_body(&request.to_string(), latest)
}

fn decide_body(body: &str, latest: Option<u64>) -> Result<Accepted, Refusal> {
    let latest = latest.map(|size| Seen { size, root: root("a", size) });
    let follows =
        |origin: &str| (origin == ORIGIN).then(|| WitnessedLog { keys: vec![log().verifier().clone()], latest });
    witness().add_checkpoint(body, follows, NOW)
}

#[test]
fn growth_is_cosigned() {
    for (latest, size) in [(None, 0), (None, 3), (Some(0), 3), (Some(3), 3), (Some(3), 12), (Some(8), 9)] {
        let accepted = decide(&request("a", latest.unwrap_or(0), size), latest).unwrap();
        assert_eq!(accepted.seen, Seen { size, root: root("a", size) });
        // As a client does: the response belongs to the signature lines of the checkpoint.
        let cosigned = format!("{}{}", checkpoint("a", size), accepted.body);
        assert_eq!(cosigned, accepted.checkpoint.to_string());
        let policy = Policy::new(ORIGIN, vec![log().verifier().clone()]);
        let policy = policy.with_witnesses(vec![witness().verifier().clone()], 1);
        assert_eq!(policy.open(&cosigned).unwrap().cosigned, [(witness().verifier().clone(), NOW)]);
    }
}

#[test]
fn forks_and_rewritten_logs_are_not_cosigned() {
    // The fork is consistent in itself, and continues the first five leaves.
    assert!(decide(&request("b", 5, 12), Some(5)).is_ok());
    for size in [6, 8, 12] {
        assert_eq!(decide(&request("b", size, 20), Some(size)), Err(Refusal::Inconsistent));
        assert_eq!(decide(&request("b", size, size), Some(size)), Err(Refusal::Inconsistent));
    }
    let mut damaged = request("a", 3, 12);
    damaged.proof.pop();
    assert_eq!(decide(&damaged, Some(3)), Err(Refusal::Inconsistent));
    let mut not_empty = request("a", 0, 12);
    not_empty.proof.push(TreeHash::EMPTY_TREE);
    assert_eq!(decide(&not_empty, None), Err(Refusal::Inconsistent));
}

#[test]
fn an_empty_tree_has_the_root_of_the_empty_tree() {
    let empty = Checkpoint::new(ORIGIN, 0, TreeHash::leaf(b"not empty")).unwrap();
    let checkpoint = SignedCheckpoint::sign(empty, &log()).unwrap();
    let request = AddCheckpoint { old_size: 0, proof: vec![], checkpoint };
    assert_eq!(decide(&request, None), Err(Refusal::Inconsistent));
}

#[test]
fn old_sizes_must_be_the_last_one() {
    for (old, latest) in [(0, 8), (3, 8), (9, 8)] {
        let refusal = decide(&request("a", old, 12), Some(latest)).unwrap_err();
        assert_eq!(refusal, Refusal::Conflict { size: 8 });
        assert_eq!((refusal.status(), refusal.content_type()), (409, "text/x.tlog.size"));
        assert_eq!(refusal.body(), "8\n");
    }
    assert_eq!(decide(&request("a", 3, 12), None), Err(Refusal::Conflict { size: 0 }));
    // A tree smaller than the last one is always refused: a rollback.
    assert_eq!(decide(&request("a", 8, 5), Some(8)).unwrap_err().status(), 400);
    assert_eq!(decide(&request("a", 3, 5), Some(8)), Err(Refusal::Conflict { size: 8 }));
}

#[test]
fn other_requests_are_refused_with_the_status_of_the_text() {
    let valid = request("a", 0, 3).to_string();
    let unsigned = valid.replace("example.com/log ", "example.com/unknown ");
    let changed = valid.replace("\n3\n", "\n4\n");
    let other_log = valid.replace("example.com/log\n", "example.com/other\n");
    for (body, status) in
        [("old 0\n", 400), (unsigned.as_str(), 403), (changed.as_str(), 403), (other_log.as_str(), 404)]
    {
        let refusal = decide_body(body, None).unwrap_err();
        assert_eq!(refusal.status(), status, "{body}");
        assert!(refusal.content_type().starts_with("text/plain") && refusal.body().ends_with('\n'));
    }
    let inconsistent = decide(&request("b", 8, 12), Some(8)).unwrap_err();
    assert_eq!(inconsistent.status(), 422);
}

#[test]
fn only_the_signatures_of_the_log_are_kept() {
    let mut request = request("a", 0, 3);
    let stranger = NoteSigner::new(KeyName::new("stranger").unwrap(), PrivateKey::from_seed(&[3; 32]));
    let signature = stranger.sign(request.checkpoint.note().text());
    request.checkpoint.note_mut().add(signature);
    let kept = decide(&request, None).unwrap().checkpoint;
    let names: Vec<_> = kept.note().signatures().iter().map(|signature| signature.name().as_str()).collect();
    assert_eq!(names, [ORIGIN, "example.com/witness"]);
}

#[test]
fn checkpoints_are_served_by_the_hash_of_their_origin() {
    let path = checkpoint_path("example.com/log");
    assert_eq!(path, "4d3203c8f35cdf600e475f55fede6081a703d3d322f208865fca2ec4f0e030f8/checkpoint");
}
