//! Quotas, on a fake clock.

use std::net::IpAddr;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use http::HeaderMap;
use metering_pay::offers::{PaymentAttempt, PaymentSource};

use super::*;
use crate::config::{Quota, TrustedProxies};

struct Scene {
    limits: Limits<FakeRelativeClock>,
    clock: FakeRelativeClock,
}

fn scene(config: &LimitsConfig) -> Scene {
    let clock = FakeRelativeClock::default();
    Scene { limits: Limits::with_clock(config, Span::seconds(2), clock.clone()), clock }
}

fn small() -> LimitsConfig {
    let quota = |text: &str| text.parse::<Quota>().unwrap();
    LimitsConfig {
        signup_per_ip: quota("3/1m"),
        recovery_per_ip: quota("2/1m"),
        per_wallet: quota("4/10m"),
        ..LimitsConfig::default()
    }
}

fn email(text: &str) -> Email {
    text.parse().unwrap()
}

fn client(address: &str) -> ClientAddress {
    let address: IpAddr = address.parse().unwrap();
    ClientAddress::find(address, &HeaderMap::new(), &TrustedProxies::default())
}

fn wallet(byte: u8) -> Address {
    Address::from_bytes([byte; 20])
}

/// How many of `tries` are allowed, and the wait of the last refusal.
fn attempt(attempts: usize, send: impl Fn() -> Result<(), Problem>) -> (usize, Option<u64>) {
    let problems: Vec<_> = (0..attempts).filter_map(|_| send().err()).collect();
    (attempts - problems.len(), problems.last().map(wait))
}

fn wait(problem: &Problem) -> u64 {
    let reply = problem.clone().into_reply();
    let body: serde_json::Value = serde_json::from_slice(reply.body()).unwrap();
    assert_eq!((reply.status().as_u16(), body["error"].as_str()), (429, Some("rate_limited")));
    let seconds = body["retry_after_sec"].as_u64().unwrap();
    assert_eq!(reply.headers()["retry-after"], seconds.to_string());
    assert!(body["message"].as_str().unwrap().ends_with(&format!("; try again in {seconds} s.")), "{body}");
    seconds
}

#[test]
fn requests_over_quota_are_rejected_until_retry_after() {
    let Scene { limits, clock } = scene(&small());
    let (one, its_wallet) = (client("1.2.3.4"), wallet(1));
    assert_eq!(attempt(5, || limits.signup(&one)), (3, Some(20)));
    assert_eq!(attempt(5, || limits.recovery(&one)), (2, Some(30)));
    assert_eq!(attempt(5, || limits.wallet(&its_wallet)), (4, Some(150)));

    clock.advance(Duration::from_millis(19_999));
    assert_eq!(attempt(1, || limits.signup(&one)), (0, Some(1)), "the rest of the wait is rounded up");
    assert_eq!(attempt(1, || limits.recovery(&one)), (0, Some(11)));
    clock.advance(Duration::from_millis(1));
    assert_eq!(attempt(2, || limits.signup(&one)), (1, Some(20)), "refusals do not count");
    clock.advance(Duration::from_secs(60));
    assert_eq!(attempt(5, || limits.signup(&one)), (3, Some(20)), "the whole quota is back");
}

#[test]
fn clients_and_wallets_have_separate_quotas() {
    let limits = scene(&small()).limits;
    let full = (3, Some(20));
    assert_eq!(attempt(9, || limits.signup(&client("1.2.3.4"))), full);
    assert_eq!(attempt(9, || limits.signup(&client("1.2.3.5"))), full);
    assert_eq!(attempt(9, || limits.signup(&client("2001:db8:1:2::1"))), full);
    assert_eq!(attempt(9, || limits.signup(&client("2001:db8:1:3::1"))), full);
    assert_eq!(attempt(9, || limits.wallet(&wallet(1))), (4, Some(150)));
    assert_eq!(attempt(9, || limits.wallet(&wallet(2))), (4, Some(150)));
}

#[test]
fn one_network_cannot_lock_others_out_of_an_email_address_or_a_wallet() {
    let Scene { limits, clock } = scene(&LimitsConfig::default());
    let (named, its_wallet) = (email("name@example.com"), wallet(1));
    // Everything that neighbours may send in a day: 30 requests a minute from each address, for a /48 and a /24.
    let neighbours = |minute: usize| [format!("6.6.6.{}", minute % 256), format!("2001:db8:1:{minute:x}::1")];
    for minute in 0..24 * 60 {
        for from in neighbours(minute).map(|address| client(&address)) {
            let _ = attempt(30, || limits.email(&from, &named));
            let _ = attempt(30, || limits.quote(&from, &its_wallet));
        }
        clock.advance(Duration::from_secs(60));
    }
    let owner = client("1.2.3.4");
    assert_eq!(attempt(11, || limits.email(&owner, &named)), (10, Some(60)));
    assert_eq!(attempt(21, || limits.quote(&owner, &its_wallet)), (20, Some(180)));
    assert!(limits.wallet(&its_wallet).is_ok(), "the owner can still rotate the key");
}

#[test]
fn one_network_cannot_reserve_all_tags_of_a_wallet() {
    let Scene { limits, clock } = scene(&LimitsConfig::default());
    let mut quotes = 0;
    // For as long as the first quote's tag is kept: seven days and the half hour that the quote is valid.
    for minute in 0..(7 * 24 * 60 + 30) {
        let from = client(&format!("6.6.6.{}", minute % 256));
        quotes += attempt(2, || limits.quote(&from, &wallet(1))).0;
        clock.advance(Duration::from_secs(60));
    }
    assert!((3_000..4_000).contains(&quotes), "{quotes} of 9,999 tags");
}

#[test]
fn code_checks_are_counted_per_network() {
    let quota = |text: &str| text.parse::<Quota>().unwrap();
    let config = LimitsConfig { verification_per_network: quota("3/1m"), ..LimitsConfig::default() };
    let limits = scene(&config).limits;
    let look = |address: &str| limits.verification(&client(address)).is_ok();
    assert_eq!(["6.6.6.1", "6.6.6.2", "6.6.6.3", "6.6.6.4", "7.7.7.7"].map(look), [true, true, true, false, true]);
}

#[test]
fn polling_at_the_announced_interval_is_never_rejected() {
    // poll interval, announced interval in seconds
    let table = [("2s", 2), ("1s", 1), ("2500ms", 2), ("1m", 60)];
    for (interval, retry_after) in table {
        let clock = FakeRelativeClock::default();
        let limits = Limits::with_clock(&LimitsConfig::default(), interval.parse().unwrap(), clock.clone());
        let token = SessionToken::generate(&metering_core::SystemRandomness);
        let send = || limits.poll(&client("1.2.3.4"), token.expose());
        assert!(send().is_ok());
        // Every other poll arrives a quarter of a second late.
        for late in [0, 250, -250, 250, -250] {
            clock.advance(Duration::from_millis((retry_after * 1_000_u64).saturating_add_signed(late)));
            assert!(send().is_ok(), "{interval}, {late}");
        }
        clock.advance(Duration::from_millis(retry_after * 1_000 - 600));
        assert!(send().is_err(), "{interval}: too soon");
    }
}

#[test]
fn all_addresses_of_a_client_share_its_quota() {
    let limits = scene(&small()).limits;
    let send = |address: &str| limits.signup(&client(address)).is_ok();
    let accepted = ["2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2:ffff::", "2001:db8:1:2::3"].map(send);
    assert_eq!(accepted, [true, true, true, false]);
    let accepted = ["1.2.3.4", "::ffff:1.2.3.4", "1.2.3.4", "::ffff:1.2.3.4"].map(send);
    assert_eq!(accepted, [true, true, true, false]);
}

#[test]
fn disabled_limit_rejects_and_remembers_no_client() {
    let off = LimitsConfig {
        signup_per_ip: Quota::OFF,
        signup_per_network: Quota::OFF,
        recovery_per_ip: Quota::OFF,
        per_wallet: Quota::OFF,
        quotes_per_wallet_and_network: Quota::OFF,
        ..LimitsConfig::default()
    };
    let limits = scene(&off).limits;
    let one = client("1.2.3.4");
    let send =
        || limits.signup(&one).and_then(|()| limits.recovery(&one)).and_then(|()| limits.quote(&one, &wallet(1)));
    assert_eq!(attempt(10_000, send), (10_000, None));
    limits.forget_idle();
    assert_eq!((limits.signup.len(), limits.recovery.len()), (0, 0));
    assert_eq!((limits.wallet.len(), limits.quotes.len()), (0, 0));
}

#[test]
fn flood_is_forgotten_but_limited_clients_are_not() {
    let Scene { limits, clock } = scene(&small());
    let busy = client("1.2.3.4");
    for network in 0..5_000_u16 {
        assert!(limits.signup(&client(&format!("2001:db8:{network:x}:2::1"))).is_ok());
    }
    assert_eq!(attempt(3, || limits.signup(&busy)), (3, None));
    limits.forget_idle();
    assert_eq!(limits.signup.len(), 5_001, "no client has its whole quota back");

    // After two intervals of 20 s, the flood has its quota back; the busy client lacks one request.
    clock.advance(Duration::from_secs(40));
    assert_eq!(attempt(3, || limits.signup(&busy)), (2, Some(20)));
    limits.forget_idle();
    assert_eq!(limits.signup.len(), 1);
    assert_eq!(attempt(1, || limits.signup(&busy)), (0, Some(20)), "forgetting the others gives it no quota");
    assert!(format!("{limits:?}").contains("remembered: 1") && !format!("{limits:?}").contains("1.2.3.4"));
}

#[test]
fn process_clock_advances() {
    let config = LimitsConfig { signup_per_ip: Quota::new(10, crate::config::Span::seconds(1)).unwrap(), ..small() };
    let (limits, one) = (Limits::new(&config, Span::seconds(2)), client("1.2.3.4"));
    while limits.signup(&one).is_ok() {}
    std::thread::sleep(Duration::from_millis(110));
    assert!(limits.signup(&one).is_ok(), "a tenth of the quota is back after a tenth of a second");
}

#[test]
fn mail_to_an_address_is_limited_by_network_account_and_address() {
    let limits = scene(&LimitsConfig::default()).limits;
    let network = |number: usize| client(&format!("6.6.{number}.1"));
    let new_account = || AccountId::generate(&metering_core::SystemRandomness);
    let (victim, one) = (email("victim@example.com"), new_account());
    let send =
        |from: &ClientAddress, account: &AccountId, to: &str| limits.verification_mail(from, account, &email(to));
    assert_eq!(attempt(9, || send(&network(1), &one, "one@example.com")).0, 3, "per account");
    assert_eq!(attempt(9, || send(&network(1), &new_account(), "Victim@example.com")).0, 6, "per network");
    assert_eq!(attempt(9, || limits.mail(&network(1), &victim)).0, 0, "recovery counts with it");
    let all = (2..20).map(|number| attempt(9, || send(&network(number), &new_account(), "victim@example.com")).0);
    assert_eq!(all.sum::<usize>(), 6, "12 from everywhere");
    assert!(limits.mail(&client("7.7.7.7"), &victim).is_ok(), "the owner can still ask for recovery");
}

#[test]
fn recovery_mail_is_refilled_as_often_as_a_link_expires() {
    let Scene { limits, clock } = scene(&LimitsConfig::default());
    let owner = email("jo@example.com");
    let lifetime = metering_core::signups::LinkPurpose::RecoverKey.lifetime();
    assert_eq!((0..9).filter(|_| limits.recovery_mail(&owner)).count(), 3);
    clock.advance(lifetime);
    assert!(limits.recovery_mail(&email("JO@example.com")));
    assert!(!limits.recovery_mail(&owner));
}

/// Anyone may name addresses, known or not.
#[test]
fn addresses_that_asked_for_links_are_forgotten() {
    let Scene { limits, clock } = scene(&LimitsConfig::default());
    let owner = email("jo@example.com");
    assert!(limits.recovery_mail(&owner) && limits.sign_in_mail(&owner));
    clock.advance(Duration::from_secs(3_600));
    limits.forget_idle();
    assert_eq!((limits.recovery_mail.len(), limits.sign_in_mail.len()), (0, 0));
}

/// An account may have a thousand addresses, but it is one account.
#[test]
fn top_up_quotes_and_their_polls_are_limited_per_account() {
    let Scene { limits, clock } = scene(&LimitsConfig {
        topup_quotes_per_account: "3/1m".parse().unwrap(),
        topup_polls_per_account: "5/1m".parse().unwrap(),
        ..LimitsConfig::default()
    });
    let [one, other] =
        ["org_aaaaaaaaaaaaaaaaaaaa", "org_bbbbbbbbbbbbbbbbbbbb"].map(|id| id.parse::<AccountId>().unwrap());
    assert_eq!(attempt(5, || limits.top_up_quote(&one)), (3, Some(20)));
    assert_eq!(attempt(8, || limits.top_up_poll(&one)), (5, Some(12)), "polls count by themselves");
    assert_eq!(attempt(3, || limits.top_up_quote(&other)), (3, None));
    assert_eq!(attempt(5, || limits.top_up_poll(&other)), (5, None));
    clock.advance(Duration::from_secs(12));
    assert_eq!(attempt(2, || limits.top_up_poll(&one)), (1, Some(12)));
    clock.advance(Duration::from_secs(120));
    limits.forget_idle();
    assert_eq!((limits.top_up_quotes.len(), limits.top_up_polls.len()), (0, 0));
}

/// More keys do not mean more changes, and no child of the first key can keep the owner from deleting it.
#[test]
fn key_changes_are_limited_per_key_and_per_account() {
    let Scene { limits, .. } = scene(&LimitsConfig {
        key_changes_per_key: "4/1m".parse().unwrap(),
        key_changes_per_account: "6/1m".parse().unwrap(),
        ..LimitsConfig::default()
    });
    let key = |account: &str, number: u8| {
        let secret = metering_core::access::KeyHash::from_bytes([number; 32]);
        let mut key = Key::first(account.parse().unwrap(), &secret, metering_core::Timestamp::from_unix_millis(0));
        key.number = metering_core::access::KeyNumber::new(number.into());
        key
    };
    let (one, other) = ("org_aaaaaaaaaaaaaaaaaaaa", "org_bbbbbbbbbbbbbbbbbbbb");
    let allowed = |key: Key| attempt(9, || limits.key_changes(&key)).0;
    assert_eq!([1, 2, 3].map(|number| allowed(key(one, number))), [4, 2, 0]);
    assert_eq!(allowed(key(one, 0)), 4, "the account's first key");
    assert_eq!(allowed(key(other, 9)), 4);
    assert_eq!(attempt(9, || limits.refresh(&key(one, 7).id)).0, 4, "a program that does nothing else");
}

/// The page polls every two seconds at most, in several windows.
#[test]
fn four_pages_may_poll_a_top_up_quote_for_an_hour() {
    let Scene { limits, clock } = scene(&LimitsConfig::default());
    let account = "org_aaaaaaaaaaaaaaaaaaaa".parse::<AccountId>().unwrap();
    for _ in 0..1_800 {
        assert_eq!(attempt(4, || limits.top_up_poll(&account)), (4, None));
        clock.advance(Duration::from_secs(2));
    }
}

#[test]
fn new_payments_are_limited_by_client_and_by_payer() {
    let quota = |text: &str| text.parse::<Quota>().unwrap();
    let config =
        LimitsConfig { payments_per_ip: quota("5/1m"), payments_per_wallet: quota("3/1m"), ..LimitsConfig::default() };
    let Scene { limits, clock } = scene(&config);
    let attempt = |client: &str, payer: u8, is_signed| {
        let attempt = PaymentAttempt { client: client.parse().ok(), payer: wallet(payer), is_signed };
        limits.payment(&attempt).map_err(|refused| (refused.source_of, refused.retry_after_seconds))
    };
    use PaymentSource::{Client, Payer};
    for _ in 0..3 {
        assert_eq!(attempt("203.0.113.7", 1, true), Ok(()));
    }
    assert_eq!(attempt("203.0.113.7", 1, true), Err((Payer, 20)), "from the same address");
    assert_eq!(attempt("198.51.100.1", 1, true), Err((Payer, 20)), "and from another one");
    assert_eq!(attempt("203.0.113.7", 2, true), Ok(()));
    assert_eq!(attempt("203.0.113.7", 3, true), Err((Client, 12)), "an address has a limit over all wallets");
    // Payments that are made up in the name of a wallet do not count against its owner.
    for _ in 0..3 {
        assert_eq!(attempt("192.0.2.1", 4, false), Ok(()));
    }
    assert_eq!(attempt("192.0.2.2", 4, false), Err((Payer, 20)), "the same network");
    assert_eq!(attempt("198.51.100.9", 4, false), Ok(()));
    assert_eq!(attempt("198.51.100.9", 4, true), Ok(()));
    assert_eq!(attempt("", 4, true), Ok(()), "a client whose address is not known");
    clock.advance(Duration::from_secs(60));
    assert_eq!(attempt("203.0.113.7", 1, true), Ok(()));
}
