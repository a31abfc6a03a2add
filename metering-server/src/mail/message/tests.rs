use metering_core::access::{Email, MemberRole};
use metering_core::money::Runway;
use metering_core::payments::TopUpStop;

use super::*;

fn letterhead(brand: &str) -> Letterhead {
    let smtp = SmtpConfig { from: Some("hello@acme.example".parse().unwrap()), ..SmtpConfig::default() };
    let brand: BrandConfig = toml::from_str(&format!("name = \"{brand}\"")).unwrap();
    Letterhead::new(&smtp, &brand, "https://acme.example").unwrap()
}

fn mail(to: &str, message: MailMessage) -> Mail {
    Mail { to: to.parse::<Email>().unwrap(), agent_name: "my-agent".parse().unwrap(), message }
}

fn text(message: &Message) -> String {
    // Undo the soft line breaks and `=3D` of quoted-printable.
    String::from_utf8(message.formatted()).unwrap().replace("=\r\n", "").replace("=3D", "=")
}

fn verify(free_credits: &str) -> (LinkToken, MailMessage) {
    let token = LinkToken::generate(&SystemRandomness);
    let (lifetime, free_credits) = (Duration::from_secs(24 * 3_600), free_credits.parse().unwrap());
    (token.clone(), MailMessage::Verify { token, lifetime, free_credits })
}

#[test]
fn a_message_has_both_forms_and_its_headers() {
    let (token, message) = verify("2");
    let message = letterhead("Acme").message(&mail("Jo@Example.com", message)).unwrap();
    let text = text(&message);
    let link = format!("https://acme.example/metering/verify-email#{}", token.expose());
    assert_eq!(text.matches(&link).count(), 2, "{text}");
    for expected in [
        "From: Acme <hello@acme.example>",
        "To: Jo@Example.com",
        "Subject: Verify your email address for Acme",
        "Auto-Submitted: auto-generated",
        "multipart/alternative",
        "text/plain",
        "text/html",
        "\"my-agent\"",
        "2 free credits",
        "for 24 hours",
        "\r\nDate: ",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("<img") && !text.contains("src="), "nothing is loaded from elsewhere");
    let id = message.headers().get_raw("Message-ID").unwrap();
    assert!(id.starts_with('<') && id.ends_with("@acme.example>"), "{id}");
}

#[test]
fn free_credits_are_mentioned_only_if_there_are_any() {
    let text = text(&letterhead("Acme").message(&mail("jo@example.com", verify("0").1)).unwrap());
    assert!(!text.contains("free credits"), "{text}");
}

#[test]
fn recovery_and_notice_say_what_happened() {
    let token = LinkToken::generate(&SystemRandomness);
    let recover = MailMessage::Recover { token: token.clone(), lifetime: Duration::from_secs(600) };
    let recover = text(&letterhead("Acme").message(&mail("jo@example.com", recover)).unwrap());
    assert!(recover.contains("Subject: Replace your Acme API key"), "{recover}");
    assert!(recover.contains(&format!("https://acme.example/metering/recover#{}", token.expose())), "{recover}");
    assert!(recover.contains("for 10 minutes"), "{recover}");
    let sign_in = MailMessage::SignIn { token: token.clone(), lifetime: Duration::from_secs(900) };
    let sign_in = text(&letterhead("Acme").message(&mail("jo@example.com", sign_in)).unwrap());
    assert!(sign_in.contains("Subject: Sign in to Acme") && sign_in.contains("for 15 minutes"), "{sign_in}");
    let link = format!("https://acme.example/metering/recover#sign-in={}", token.expose());
    assert_eq!(sign_in.matches(&link).count(), 2, "{sign_in}");
    let (lifetime, role) = (Duration::from_secs(7 * 24 * 60 * 60), MemberRole::Billing);
    let invited = MailMessage::Invitation { token: token.clone(), lifetime, role };
    let invited = text(&letterhead("Acme").message(&mail("jo@example.com", invited)).unwrap());
    assert!(invited.contains("as billing") && invited.contains("for 7 days"), "{invited}");
    assert_eq!(invited.matches(&link).count(), 2, "{invited}");
    let notice = text(&letterhead("Acme").message(&mail("jo@example.com", MailMessage::KeyReplaced)).unwrap());
    assert!(notice.contains("Subject: Your Acme API key was replaced"), "{notice}");
    assert!(!notice.contains("eml_"), "{notice}");
}

#[test]
fn an_alert_says_what_is_left_and_has_the_id_of_its_event() {
    let alert = MailedAlert::BalanceLow { balance: "4.5".parse().unwrap(), threshold: "5".parse().unwrap() };
    let alert = MailMessage::Alert { alert, runway: Some(Runway::Days(12)) };
    let message = letterhead("Acme").message_of(&mail("jo@example.com", alert), "evt_1").unwrap();
    let text = text(&message);
    for expected in [
        "Subject: Your Acme balance is low",
        "fell below 5 credits",
        "4.5 are left",
        "About 12 days at this pace.",
        "https://acme.example/metering/account#top-up",
        "https://acme.example/metering/account#webhooks",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(message.headers().get_raw("Message-ID"), Some("<evt_1@acme.example>"));
}

#[test]
fn every_alert_is_written() {
    let (key_name, amount) = ("<batch>".to_owned(), || "1".parse().unwrap());
    let low = MailedAlert::BudgetLow { key_name: key_name.clone(), remaining: amount(), limit: amount() };
    let table = [
        (MailedAlert::BalanceExhausted { balance: amount() }, "Your Acme credits are used up"),
        (low, "A key's budget at Acme is low"),
        (MailedAlert::BudgetExhausted { key_name, limit: amount() }, "A key's budget at Acme is used up"),
        (MailedAlert::TopUpStopped { reason: TopUpStop::Declined }, "Automatic top-ups at Acme have stopped"),
        (MailedAlert::Test, "Test: alerts from Acme"),
    ];
    for (alert, subject) in table {
        let message = MailMessage::Alert { alert, runway: None };
        let text = text(&letterhead("Acme").message(&mail("jo@example.com", message)).unwrap());
        assert!(text.contains(&format!("Subject: {subject}\r\n")), "{text}");
        assert!(!text.contains("none"), "{text}");
    }
}

#[test]
fn names_are_escaped_in_html_and_encoded_in_headers() {
    let text = text(&letterhead("Jörg & <Söhne>").message(&mail("jo@example.com", verify("0").1)).unwrap());
    assert!(text.contains("J=C3=B6rg &amp; &lt;S=C3=B6hne&gt;"), "{text}");
    let subject = text.lines().find(|line| line.starts_with("Subject:")).unwrap();
    assert!(subject.is_ascii() && subject.contains("=?utf-8?"), "{subject}");
}

#[test]
fn addresses_that_mail_cannot_reach_are_refused() {
    for email in ["a..b@example.com", "a@-.example", "(a)@example.com"] {
        let mail = mail(email, MailMessage::KeyReplaced);
        assert!(matches!(letterhead("Acme").message(&mail), Err(WriteError::Address)), "{email}");
    }
}
