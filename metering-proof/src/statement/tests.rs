//! Statements with injected faults: verification finds and names each.

use std::cell::Cell;

use metering_core::access::KeyNumber;
use metering_core::charging::UsageKind;
use metering_core::money::LedgerKind;
use metering_core::store::LogSecret;
use metering_core::wire::PreviousLogDocument;
use metering_core::{ClientSource, UsageLine};
use metering_log::keys::PrivateKey;
use metering_log::tree::{Leaves, inclusion_proof, read_root};

use super::*;
use crate::leaf::Posting;
use crate::salt::AccountSalts;

const NOON: i64 = 1_795_262_400_000;

fn accounts() -> [AccountId; 2] {
    ["org_AAAAAAAAAAAAAAAAAAAA", "org_BBBBBBBBBBBBBBBBBBBB"].map(|id| id.parse().unwrap())
}

fn key() -> PrivateKey {
    PrivateKey::from_seed(&[7; 32])
}

fn keys() -> JwkSet {
    JwkSet::new([key().public()])
}

fn usage(calls: u64) -> Posting {
    let line =
        UsageLine { route_template: "/quotes/{number}".into(), http_method: "GET".into(), source: ClientSource::Cli };
    let day = Timestamp::from_unix_millis(NOON).day();
    Posting::Usage { line, kind: UsageKind::Charged, day, key: KeyNumber::FIRST, calls }
}

/// A log of two accounts, whose leaves alternate: a purchase, and usage of one and two requests.
struct Log {
    leaves: Vec<ProvenLeaf>,
    checkpoint: Checkpoint,
}

impl Log {
    /// `secret` makes logs with other commitments.
    fn new(secret: u8) -> Self {
        Self::beginning_with(secret, Posting::Ledger { id: 1, kind: LedgerKind::PurchaseTopup, tx: None })
    }

    /// The same with something else instead of the purchase.
    fn beginning_with(secret: u8, first: Posting) -> Self {
        let postings = [(first, 1_000), (usage(1), -100), (usage(2), -200), (usage(2), -200)];
        let mut leaves = Vec::new();
        let mut heads = [ChainHead::default(); 2];
        for (posting, atoms) in postings {
            for (account, head) in accounts().into_iter().zip(&mut heads) {
                let (number, amount) = (head.leaves, Credits::from_atoms(atoms));
                *head = head.after(amount).unwrap();
                let salt = AccountSalts::new(&LogSecret::new([secret; 32]), &account).salt(number);
                let at = Timestamp::from_unix_millis(NOON + i64::try_from(number).unwrap());
                let opening = Opening { account, number, at, amount, funds: head.funds, posting: posting.clone() };
                let position = u64::try_from(leaves.len()).unwrap();
                leaves.push(ProvenLeaf { position, opening, salt, path: Vec::new() });
            }
        }
        let hashes: Vec<TreeHash> =
            leaves.iter().map(|leaf| TreeHash::leaf(&entry(&leaf.salt, &leaf.opening.to_bytes()))).collect();
        let size = u64::try_from(leaves.len()).unwrap();
        for leaf in &mut leaves {
            leaf.path = inclusion_proof(&Leaves(&hashes), leaf.position, size).unwrap();
        }
        let root = read_root(&Leaves(&hashes), size).unwrap();
        Self { leaves, checkpoint: Checkpoint::new("example.com/log/1", size, root).unwrap() }
    }

    /// Its head, under another origin.
    fn at_origin(&self, origin: &str) -> Checkpoint {
        Checkpoint::new(origin, self.checkpoint.size(), self.checkpoint.root()).unwrap()
    }

    /// The statement of the first account without its purchase: lines 1 to 3.
    fn page(&self) -> AccountStatementDocument {
        let mine = self.leaves.iter().filter(|leaf| leaf.opening.account == accounts()[0]);
        let mine: Vec<_> = mine.skip(1).map(ProvenLeaf::to_document).collect();
        let state = |leaves, atoms| ChainHead { leaves, funds: Credits::from_atoms(atoms) }.into();
        AccountStatementDocument {
            org_id: accounts()[0].to_string(),
            period: "2026-11-21".to_owned(),
            from: Timestamp::from_unix_millis(NOON),
            gap: None,
            until: Timestamp::from_unix_millis(NOON + 12 * 60 * 60 * 1_000),
            complete: true,
            after: None,
            opening: Some(state(1, 1_000)),
            lines: mine,
            closing: Some(state(4, 500)),
            held: "0".to_owned(),
            checkpoint: String::new(),
            signature: String::new(),
            next: None,
        }
    }

    fn signed(&self, mut page: AccountStatementDocument) -> AccountStatement {
        let signed = SignedStatement::of(&page, "https://api.example.com".to_owned(), 0, &self.checkpoint).unwrap();
        page.signature = signed.sign(&key()).unwrap();
        AccountStatement::new(page)
    }

    /// The error when the service itself signs a page with this change.
    fn fault(&self, change: impl FnOnce(&mut AccountStatementDocument)) -> StatementFault {
        let mut page = self.page();
        change(&mut page);
        self.signed(page).verify(&keys(), &self.checkpoint).unwrap_err()
    }
}

/// Does not sign again, like an attacker between the service and the reader.
fn changed(change: impl FnOnce(&mut AccountStatementDocument)) -> StatementFault {
    let log = Log::new(1);
    let mut statement = log.signed(log.page());
    change(&mut statement.0);
    statement.verify(&keys(), &log.checkpoint).unwrap_err()
}

/// The line with an amount and funds that a cheating operator might prefer.
fn reprice(line: &mut StatementLineDocument, atoms: i64, funds: i64) {
    let mut leaf = ProvenLeaf::read(line).unwrap();
    (leaf.opening.amount, leaf.opening.funds) = (Credits::from_atoms(atoms), Credits::from_atoms(funds));
    *line = leaf.to_document();
}

#[test]
fn a_valid_statement_says_what_happened() {
    let log = Log::new(1);
    let json = serde_json::to_string(&log.signed(log.page())).unwrap();
    let read: AccountStatement = serde_json::from_str(&json).unwrap();
    let summary = read.verify(&keys(), &log.checkpoint).unwrap();
    assert_eq!((summary.issuer.as_str(), &summary.account), ("https://api.example.com", &accounts()[0]));
    assert_eq!(summary.closing.unwrap(), ChainHead { leaves: 4, funds: Credits::from_atoms(500) });
    assert_eq!(summary.lines.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 2, 3]);
    let other = JwkSet::new([PrivateKey::from_seed(&[8; 32]).public()]);
    assert!(matches!(read.verify(&other, &log.checkpoint), Err(StatementFault::Signature(_))));
}

#[test]
fn faults_of_the_service_are_found_and_named() {
    let log = Log::new(1);
    let missing = log.fault(|page| drop(page.lines.remove(1)));
    assert_eq!(missing, StatementFault::Missing { expected: 2, found: 3 });
    let last = log.fault(|page| drop(page.lines.pop()));
    assert_eq!(last, StatementFault::WrongBalance("closing"));
    assert_eq!(log.fault(|page| page.opening = None), StatementFault::WrongBalance("opening"));
    let opening = log.fault(|page| page.opening.as_mut().unwrap().funds = "2000".to_owned());
    assert_eq!(opening, StatementFault::WrongFunds(1));
    let closing = log.fault(|page| page.closing.as_mut().unwrap().funds = "400".to_owned());
    assert_eq!(closing, StatementFault::WrongBalance("closing"));
    let dearer = log.fault(|page| reprice(&mut page.lines[0], -101, 899));
    assert!(matches!(dearer, StatementFault::NotInLog { number: 1, error: ProofError::RootMismatch }), "{dearer}");
    let path = log.fault(|page| page.lines[0].path = page.lines[1].path.clone());
    assert!(matches!(path, StatementFault::NotInLog { number: 1, .. }), "{path}");
    let position = log.fault(|page| page.lines[0].position = 3);
    assert!(matches!(position, StatementFault::NotInLog { number: 1, .. }), "{position}");
    // The same leaf twice.
    let twice = log.fault(|page| page.lines.insert(1, page.lines[0].clone()));
    assert_eq!(twice, StatementFault::Order(1));
}

#[test]
fn a_statement_keeps_to_its_period() {
    let log = Log::new(1);
    let at = |hours: i64| Timestamp::from_unix_millis(NOON + hours * 60 * 60 * 1_000);
    let is_of_period = |change: &dyn Fn(&mut AccountStatementDocument)| {
        let mut page = log.page();
        change(&mut page);
        match log.signed(page).verify(&keys(), &log.checkpoint) {
            Ok(_) => true,
            Err(StatementFault::Period(_)) => false,
            Err(other) => panic!("{other}"),
        }
    };
    assert!(is_of_period(&|page| page.from = at(-12)));
    assert!(is_of_period(&|page| (page.until, page.complete) = (at(1), false)));
    assert!(!is_of_period(&|page| page.until = at(1)), "complete, and too short");
    assert!(!is_of_period(&|page| page.from = at(-13)));
    assert!(!is_of_period(&|page| page.until = at(13)));
    assert!(!is_of_period(&|page| page.period = "2026".to_owned()));
    let yesterday = |page: &mut AccountStatementDocument| {
        page.period = "2026-11-20".to_owned();
        (page.from, page.until) = (at(-36), at(-12));
    };
    assert!(!is_of_period(&yesterday), "its lines are of today");
}

#[test]
fn what_the_log_before_has_of_the_period_is_said() {
    let at = |hours: i64| Timestamp::from_unix_millis(NOON + hours * 60 * 60 * 1_000);
    let previous =
        PreviousLogDocument { origin: "example.com/log/1".to_owned(), size: 9, root: TreeHash::EMPTY_TREE.to_string() };
    let gap =
        StatementGapDocument { from: at(-12), until: at(0), reason: "restored".to_owned(), previous: Some(previous) };
    let first = Log::new(1);
    let second = Log { checkpoint: first.at_origin("example.com/log/2"), ..Log::new(1) };
    let verify = |log: &Log, change: &dyn Fn(&mut AccountStatementDocument)| {
        let mut page = log.page();
        page.gap = Some(gap.clone());
        change(&mut page);
        log.signed(page).verify(&keys(), &log.checkpoint)
    };
    assert_eq!(verify(&second, &|_| ()).unwrap().gap, Some(gap.clone()));
    // An epoch of the whole period lacks nothing of it.
    assert_eq!(verify(&second, &|page| (page.from, page.gap) = (at(-12), None)).unwrap().gap, None);
    // Nothing was before the first log of a service.
    assert!(verify(&first, &|page| page.gap = None).is_ok());
    let is_refused = |change: &dyn Fn(&mut AccountStatementDocument)| {
        matches!(verify(&second, change), Err(StatementFault::Period(_)))
    };
    assert!(is_refused(&|page| page.gap = None), "it hides that there was a log before");
    assert!(is_refused(&|page| page.from = at(-12)), "it lacks nothing, and says so");
    assert!(is_refused(&|page| page.gap.as_mut().unwrap().until = at(1)));
    assert!(is_refused(&|page| page.gap.as_mut().unwrap().from = at(-11)));
    // The line with the funds that the log began with tells when that was.
    let log = Log::beginning_with(1, Posting::Opening);
    let begun = Log { checkpoint: log.at_origin("example.com/log/2"), ..log };
    let with_opening = |page: &mut AccountStatementDocument| {
        page.lines.insert(0, begun.leaves[0].to_document());
        page.opening = Some(ChainHead::default().into());
    };
    assert!(verify(&begun, &with_opening).is_ok());
    let earlier = verify(&begun, &|page| {
        with_opening(page);
        (page.from, page.gap) = (at(-12), None);
    });
    assert_eq!(earlier, Err(StatementFault::Period("it claims to begin before its log did")));
    // And nobody else can change it.
    let mut statement = second.signed(AccountStatementDocument { gap: Some(gap), ..second.page() });
    statement.0.gap.as_mut().unwrap().reason = "moved".to_owned();
    assert_eq!(statement.verify(&keys(), &second.checkpoint), Err(StatementFault::Changed));
}

#[test]
fn lines_and_salts_of_other_accounts_and_logs_prove_nothing() {
    let log = Log::new(1);
    let of_other = |number: usize| log.leaves[2 * number + 1].to_document();
    assert_eq!(log.fault(|page| page.lines[0] = of_other(1)), StatementFault::OtherAccount(1));
    let salt = log.fault(|page| page.lines[0].salt = of_other(1).salt);
    assert!(matches!(salt, StatementFault::NotInLog { number: 1, .. }), "{salt}");
    // A fork: the same postings in a separate tree, signed by the same service.
    let fork = Log::new(2);
    let statement = fork.signed(fork.page());
    assert!(statement.verify(&keys(), &fork.checkpoint).is_ok());
    assert_eq!(statement.verify(&keys(), &log.checkpoint), Err(StatementFault::OtherCheckpoint));
    let forked = log.fault(|page| page.lines = fork.page().lines);
    assert!(matches!(forked, StatementFault::NotInLog { number: 1, .. }), "{forked}");
}

#[test]
fn what_is_changed_on_the_way_is_found() {
    assert_eq!(changed(|page| page.complete = false), StatementFault::Changed);
    assert_eq!(changed(|page| page.until = Timestamp::from_unix_millis(NOON)), StatementFault::Changed);
    assert_eq!(changed(|page| page.next = Some(3)), StatementFault::Changed);
    assert_eq!(changed(|page| page.after = Some(3)), StatementFault::Changed);
    assert_eq!(changed(|page| page.held = "1".to_owned()), StatementFault::Changed);
    assert_eq!(changed(|page| page.period = "2026-11".to_owned()), StatementFault::Changed);
    let shorter = changed(|page| {
        page.lines.pop();
        page.closing = Some(ChainHead { leaves: 3, funds: Credits::from_atoms(700) }.into());
    });
    assert_eq!(shorter, StatementFault::Changed);
    let damaged = changed(|page| page.lines[2].calls = Some(3));
    assert_eq!(damaged, StatementFault::Damaged { number: 3, part: "text beside its opening" });
    assert!(matches!(changed(|page| page.signature.clear()), StatementFault::Signature(_)));
}

#[test]
fn pages_continue_each_other() {
    let log = Log::new(1);
    let verify = |log: &Log, change: &dyn Fn(&mut AccountStatementDocument)| {
        let mut page = log.page();
        change(&mut page);
        log.signed(page).verify(&keys(), &log.checkpoint).unwrap()
    };
    let middle =
        || -> Option<AccountStateDocument> { Some(ChainHead { leaves: 3, funds: Credits::from_atoms(700) }.into()) };
    let first = verify(&log, &|page| {
        page.lines.pop();
        (page.closing, page.next) = (middle(), Some(4));
    });
    let second_page = |page: &mut AccountStatementDocument| {
        page.lines.drain(..2);
        (page.opening, page.after) = (middle(), Some(4));
    };
    let second = verify(&log, &second_page);
    assert_eq!(second.follows(&first), Ok(()));
    assert!(matches!(first.follows(&second), Err(StatementFault::OtherPage(_))));
    assert!(matches!(verify(&log, &|_| ()).follows(&first), Err(StatementFault::OtherPage(_))));
    let elsewhere = verify(&log, &|page| {
        second_page(page);
        page.after = Some(2);
    });
    assert!(matches!(elsewhere.follows(&first), Err(StatementFault::OtherPage(_))));
    let longer = verify(&log, &|page| {
        second_page(page);
        page.from = Timestamp::from_unix_millis(NOON - 1);
    });
    assert!(matches!(longer.follows(&first), Err(StatementFault::OtherPage(_))));
    let forked = verify(&Log::new(2), &second_page).follows(&first).unwrap_err();
    assert!(forked.to_string().contains("two histories"), "{forked}");
}

#[test]
fn each_receipt_needs_a_request_of_a_line() {
    let log = Log::new(1);
    let summary = log.signed(log.page()).verify(&keys(), &log.checkpoint).unwrap();
    let made = Cell::new(0_u32);
    let receipt = |number: i64, atoms: i64| {
        made.set(made.get() + 1);
        let mut receipt = ReceiptPayload::parse(include_bytes!("../../tests/vectors/payload.json")).unwrap();
        (receipt.account, receipt.kind) = (accounts()[0].clone(), metering_core::receipts::ReceiptKind::Charge);
        (receipt.key_number, receipt.source) = (KeyNumber::FIRST.get(), "cli".to_owned());
        (receipt.route, receipt.amount) = ("GET /quotes/{number}".to_owned(), Credits::from_atoms(atoms));
        receipt.at = Timestamp::from_unix_millis(NOON + number);
        receipt.request = format!("req_{:032x}", made.get()).parse().unwrap();
        receipt
    };
    let all = [receipt(1, 100), receipt(2, 150), receipt(2, 50), receipt(3, 200)];
    assert!(summary.unmatched(&all).is_empty());
    // One request too many, too many credits, at a different time, or of a different key.
    let mut other_key = receipt(1, 100);
    other_key.key_number += 1;
    let more = [receipt(1, 50), receipt(1, 50), receipt(2, 201), receipt(4, 100), other_key];
    let unmatched: Vec<i64> = summary.unmatched(&more).iter().map(|receipt| receipt.amount.atoms()).collect();
    assert_eq!(unmatched, [50, 201, 100, 100]);
    // Lines of one millisecond: it is unknown which of them a receipt belongs to.
    let mut at_once = summary.clone();
    at_once.lines.iter_mut().for_each(|line| line.at = Timestamp::from_unix_millis(NOON + 1));
    let all = [receipt(1, 150), receipt(1, 150), receipt(1, 200), receipt(1, 1)];
    assert_eq!(at_once.unmatched(&all), [&all[3]]);
    // Two receipts of one charge: the second was made when the request was looked up.
    let first = receipt(1, 100);
    let second = ReceiptPayload { salt: "ZGlmZmVyZW50IHNhbHQhIQ".to_owned(), ..first.clone() };
    assert!(summary.unmatched(&[first, second]).is_empty());
}
