//! Copying and comparing, with list-based stores.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use metering_core::access::{Account, AccountId, HashKind, KeyHash, KeyNumber, SecretRecord, Totals};
use metering_core::charging::Window;
use metering_core::clock::{Day, Timestamp};
use metering_core::money::Credits;
use metering_core::store::{Cursor, Page, SourceId, StoreError};
use metering_core::usage::{ClientSource, DailyTotal, UsageLine};

use super::*;

const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

/// Lists of records, with a fixed page size.
#[derive(Debug, Default)]
struct Lists {
    records: Mutex<BTreeMap<Section, Vec<Record>>>,
    page: usize,
    /// The sections written, in order.
    written: Mutex<Vec<Section>>,
    /// How many batches it accepts.
    room: Option<usize>,
    settled: Mutex<bool>,
}

impl Lists {
    fn of(page: usize, records: impl IntoIterator<Item = Record>) -> Self {
        let lists = Self { page, ..Self::default() };
        for record in records {
            lists.records.lock().unwrap().entry(record.section()).or_default().push(record);
        }
        lists
    }

    fn change(&self, section: Section, change: impl FnOnce(&mut Vec<Record>)) {
        change(self.records.lock().unwrap().get_mut(&section).unwrap());
    }
}

#[async_trait]
impl Export for Lists {
    async fn export(&self, section: Section, after: Option<&Cursor>, _: u32) -> Result<Page<Record>, StoreError> {
        let records = self.records.lock().unwrap().get(&section).cloned().unwrap_or_default();
        let start = after.map_or(0, |cursor| cursor.as_str().parse().unwrap());
        let end = records.len().min(start + self.page);
        let next = (end < records.len()).then(|| Cursor::new(end.to_string()));
        Ok(Page { items: records[start..end].to_vec(), next })
    }
}

#[async_trait]
impl Import for Lists {
    async fn target_state(&self, _: &SourceId) -> Result<TargetState, StoreError> {
        Ok(TargetState::Empty)
    }

    async fn begin(&self, _: &SourceId) -> Result<TargetState, StoreError> {
        Ok(TargetState::Empty)
    }

    async fn import(&self, records: Vec<Record>) -> Result<(), StoreError> {
        let mut written = self.written.lock().unwrap();
        if self.room.is_some_and(|room| written.len() >= room) {
            return Err(StoreError::Unavailable("no room".into()));
        }
        written.push(records[0].section());
        self.records.lock().unwrap().entry(records[0].section()).or_default().extend(records);
        Ok(())
    }

    async fn settle(&self) -> Result<(), StoreError> {
        *self.settled.lock().unwrap() = true;
        Ok(())
    }

    async fn finish(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn id(number: u8) -> AccountId {
    format!("org_{number:020}").parse().unwrap()
}

fn account(number: u8) -> Record {
    let most = Credits::MAX;
    let mut account = Account::new(id(number), "agent".parse().unwrap(), NOON);
    account.email = Some(format!("User{number}@Example.com").parse().unwrap());
    account.totals =
        Totals { balance: most, purchased: most, granted: Credits::ZERO, used: Credits::ZERO, held: Credits::ZERO };
    let window = Window { index: 7, count: 3 };
    Record::Account(Box::new(AccountRecord { account, minute: window, day: window, entries: 0, refilled_on: None }))
}

fn usage(number: u8) -> Record {
    let line = UsageLine { route_template: "/x".into(), http_method: "GET".into(), source: ClientSource::Direct };
    let (day, credits_used) = (Day::from_unix_days(number.into()), Credits::BASE_CALL);
    Record::Usage(DailyTotal { account: id(1), day, line, key: KeyNumber::FIRST, calls: 1, credits_used })
}

fn secret(number: u8) -> Record {
    let hash = KeyHash::from_bytes([number; 32]);
    Record::Secret(SecretRecord {
        hash,
        hash_kind: HashKind::Sha3,
        account: id(number),
        key: KeyNumber::FIRST,
        created_at: NOON,
        expires_at: None,
        revoked_at: None,
    })
}

fn records() -> Vec<Record> {
    let accounts = (0..5).map(account);
    accounts.chain((0..7).map(usage)).chain((0..5).map(secret)).collect()
}

fn unwatched(_: Section, _: u64) {}

#[tokio::test]
async fn copy_is_equal_for_every_page_size() {
    for (from_page, to_page) in [(1, 3), (2, 2), (5, 1), (100, 4)] {
        let (from, to) = (Lists::of(from_page, records()), Lists { page: to_page, ..Lists::default() });
        let mut seen = Vec::new();
        copy(&from, &to, &mut |section, done| seen.push((section, done))).await.unwrap();
        assert!(*to.settled.lock().unwrap());
        let comparison = compare(&from, &to, &mut unwatched).await.unwrap();
        assert!(comparison.is_equal(), "{comparison:?}");
        let counts: Vec<u64> = comparison.sections.iter().map(|section| section.to.records).collect();
        let expected = Section::ALL.map(|section| match section {
            Section::Accounts | Section::Secrets => 5,
            Section::Usage => 7,
            _ => 0,
        });
        assert_eq!(counts, expected);
        assert!(seen.contains(&(Section::Usage, 7)), "{seen:?}");
        let written = to.written.lock().unwrap();
        assert!(written.is_sorted(), "{written:?}");
        assert_eq!(
            written.last(),
            Some(&Section::Secrets),
            "secrets must be written last, so that nothing is charged earlier"
        );
    }
}

#[tokio::test]
async fn every_difference_is_found_and_named() {
    type Change = fn(&mut Vec<Record>);
    let amount: Change = |records| {
        let Record::Account(record) = &mut records[2] else { panic!() };
        record.account.totals.balance = Credits::from_whole(1).unwrap();
    };
    let letter: Change = |records| {
        let Record::Account(record) = &mut records[4] else { panic!() };
        record.account.email = Some("user4@example.com".parse().unwrap());
    };
    let window: Change = |records| {
        let Record::Account(record) = &mut records[0] else { panic!() };
        record.minute.count += 1;
    };
    // section, change, number of differences, message for the first
    let table: [(Section, Change, u64, &str); 7] = [
        (
            Section::Accounts,
            amount,
            1,
            "account org_00000000000000000002 differs; its balance was 1281023894.007607751 and is now 1",
        ),
        (Section::Accounts, letter, 1, "account org_00000000000000000004 differs"),
        (Section::Accounts, window, 1, "account org_00000000000000000000 differs"),
        (
            Section::Secrets,
            |records| drop(records.pop()),
            1,
            "secret KeyHash(04040404…) of org_00000000000000000004 was not moved",
        ),
        (
            Section::Secrets,
            |records| records.push(secret(9)),
            1,
            "secret KeyHash(09090909…) of org_00000000000000000009 is new",
        ),
        (Section::Usage, |records| records.swap(0, 1), 2, "expected usage of org_00000000000000000001 on 1970-01-01"),
        (
            Section::Usage,
            |records| drop(records.remove(0)),
            7,
            "expected usage of org_00000000000000000001 on 1970-01-01",
        ),
    ];
    for (section, change, differing, expected) in table {
        let (from, to) = (Lists::of(3, records()), Lists::of(2, records()));
        to.change(section, change);
        let comparison = compare(&from, &to, &mut unwatched).await.unwrap();
        assert!(!comparison.is_equal(), "{expected}");
        assert_eq!(comparison.differing(), differing, "{expected}");
        let first = comparison.differences().next().unwrap().to_string();
        assert!(first.starts_with(expected), "{first}");
        assert!(!first.contains("example.com"), "{first}");
    }
}

#[tokio::test]
async fn many_differences_are_counted_and_few_are_shown() {
    let (from, to) = (Lists::of(50, (0..100).map(secret)), Lists::of(50, []));
    let comparison = compare(&from, &to, &mut unwatched).await.unwrap();
    assert_eq!((comparison.differing(), comparison.differences().count()), (100, 10));
}

#[tokio::test]
async fn sums_hold_more_than_an_account_can() {
    let found = survey(&Lists::of(2, (0..5).map(account)), &mut unwatched).await.unwrap();
    let (section, sums) = &found[0];
    assert_eq!((*section, sums.records), (Section::Accounts, 5));
    assert_eq!(sums.amounts["balance"].atoms(), 5 * i128::from(i64::MAX));
    assert_eq!(sums.amounts["balance"].to_string(), "6405119470.0380387549");
    let json = serde_json::to_string(sums).unwrap();
    assert!(json.contains("\"balance\":6405119470.0380387549"), "{json}");
}

#[tokio::test]
async fn a_target_that_fails_ends_the_copy() {
    let (from, to) = (Lists::of(2, records()), Lists { page: 2, room: Some(4), ..Lists::default() });
    let error = copy(&from, &to, &mut unwatched).await.unwrap_err();
    assert!(error.to_string().contains("no room"), "{error}");
    assert!(!*to.settled.lock().unwrap());
}

#[test]
fn positions_round_trip_as_cursors_and_others_are_refused() {
    let position = Position(vec![Part::Number(-7), Part::Text("a/\"b".to_owned()), Part::Bytes(vec![0, 255])]);
    assert_eq!(Position::of(&position.cursor(), 3).unwrap(), position);
    assert!(Position::of(&position.cursor(), 2).is_err());
    assert!(Position::of(&Cursor::new("17"), 1).is_err());
}

#[test]
fn webhooks_events_and_deliveries_are_named_without_what_they_contain() {
    use metering_core::events::{
        Event, EventKind, NewWebhook, Progress, WebhookId, WebhookSecret, WebhookTerms, WebhookUrl,
    };
    let secret = WebhookSecret::generate(&metering_core::SystemRandomness);
    let url = WebhookUrl::parse_trusted("https://example.com/?token=hidden").unwrap();
    let (webhook, terms) = (WebhookId::from_bytes([7; 16]), WebhookTerms { url, kinds: Default::default() });
    let new =
        NewWebhook { id: webhook, account: id(1), terms, secret: secret.clone(), max_webhooks: 1, created_at: NOON };
    let data = r#"{"org_id":"hidden"}"#.to_owned();
    let event = Event { number: 5, account: Some(id(1)), kind: EventKind::KeyLeaked, data, created_at: NOON };
    let (event_id, number) = (event.id(), metering_core::events::DeliveryId::new(9));
    let delivery = DeliveryRecord { id: number, webhook, event: 5, progress: Progress::new(NOON) };
    let of = "07".repeat(16);
    let table = [
        (Record::Webhook(Box::new(new.into_webhook())), Section::Webhooks, format!("webhook we_{of}")),
        (Record::Event(Box::new(event)), Section::Events, format!("event {event_id}")),
        (Record::Delivery(delivery), Section::Deliveries, format!("delivery 9 to we_{of}")),
    ];
    for (record, section, subject) in table {
        assert_eq!((record.section(), record.subject()), (section, subject));
        assert!(!record.subject().contains("hidden"));
        let shown = format!("{record:?}");
        assert!(!shown.contains(secret.expose().trim_start_matches("whsec_")), "{shown}");
    }
    let place = |section| Section::ALL.iter().position(|other| *other == section).unwrap();
    assert!(place(Section::Accounts) < place(Section::Webhooks));
    assert!(place(Section::Webhooks).max(place(Section::Events)) < place(Section::Deliveries));
}

#[tokio::test]
async fn authorizations_and_gas_places_are_copied_named_and_compared() {
    use metering_core::chains::{Address, TokenUnits, WalletSignature};
    use metering_core::offers::{
        Authorization, AuthorizationNonce, AuthorizationRecord, AuthorizationState, GasPlace, IdentifierHash,
        SignedAuthorization,
    };
    let [payer, token] = [Address::from_bytes([1; 20]), Address::from_bytes([2; 20])];
    let nonce = AuthorizationNonce::from_bytes([3; 32]);
    let (value, valid_before) = (TokenUnits::new(5), u64::MAX);
    let authorization = Authorization { from: payer, to: token, value, valid_after: 0, valid_before, nonce };
    let signature = WalletSignature::parse(&format!("0x{}", "ab".repeat(65))).unwrap();
    let record = AuthorizationRecord {
        signed: SignedAuthorization { chain_id: 7, token, authorization, signature },
        account: id(1),
        credits: Credits::BASE_CALL,
        request: Some(metering_core::charging::Fingerprint::from_bytes([6; 16])),
        identifier: Some(IdentifierHash::from_bytes([7; 32])),
        received_at: NOON,
        state: AuthorizationState::Pending,
        tx: None,
        gas: Some(GasPlace { wallet: token, nonce: 4 }),
        submissions: Vec::new(),
        usage: None,
    };
    let places = GasPlacesRecord { chain_id: 7, wallet: token, next: 5, given_back: vec![1, 3] };
    let records = || [Record::Authorization(Box::new(record.clone())), Record::GasPlaces(places.clone())];
    assert_eq!(records().map(|record| record.section()), [Section::Authorizations, Section::GasPlaces]);
    let [named, places_named] = records().map(|record| record.subject());
    assert_eq!(named, format!("authorization {nonce} of {payer} on chain 7"));
    assert_eq!(places_named, format!("gas places of {token} on chain 7"));
    let shown = format!("{:?}", records());
    assert!(!shown.contains("abab") && !shown.contains("171"), "{shown}");
    let (from, to) = (Lists::of(1, records()), Lists::of(1, []));
    copy(&from, &to, &mut unwatched).await.unwrap();
    let comparison = compare(&from, &to, &mut unwatched).await.unwrap();
    assert!(comparison.is_equal(), "{comparison:?}");
    let copied = comparison.sections.iter().find(|section| section.section == Section::Authorizations).unwrap();
    assert_eq!((copied.to.records, copied.to.amounts["credits"].atoms()), (1, Credits::BASE_CALL.atoms().into()));
    to.change(Section::Authorizations, |records| {
        let Record::Authorization(record) = &mut records[0] else { panic!() };
        record.gas = None;
    });
    to.change(Section::GasPlaces, |records| {
        let Record::GasPlaces(places) = &mut records[0] else { panic!() };
        places.given_back.pop();
    });
    let comparison = compare(&from, &to, &mut unwatched).await.unwrap();
    let differences: Vec<_> = comparison.differences().map(ToString::to_string).collect();
    assert_eq!(differences, [format!("{named} differs"), format!("{places_named} differs")]);
    let place = |section| Section::ALL.iter().position(|other| *other == section).unwrap();
    assert!(place(Section::Accounts) < place(Section::Authorizations));
    assert!(place(Section::Payments) < place(Section::Authorizations));
}

#[test]
fn every_section_is_written_once_and_has_a_name_of_its_own() {
    let mut sections = Section::ALL.to_vec();
    sections.sort_unstable();
    sections.dedup();
    assert_eq!(sections.len(), Section::ALL.len());
    let names: std::collections::BTreeSet<_> = sections.iter().map(|section| section.as_str()).collect();
    assert_eq!(names.len(), sections.len());
}

#[test]
fn solutions_are_not_shown_in_full() {
    let record = Record::Solution(SolutionRecord { solution: [0xab; 32], expires_at: NOON });
    let shown = format!("{record:?} {}", record.subject());
    assert!(shown.contains("abababab…") && !shown.contains("ababababab"), "{shown}");
}
