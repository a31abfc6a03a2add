//! The email address of a bought account, when addresses are verified.

use std::sync::{Arc, Mutex};

use metering_core::Credits;
use metering_core::access::Email;
use metering_core::service::SignupSettings;
use metering_core::signups::{MailMessage, MailRequest, Mailer};
use metering_core::wire::{LinkRequest, QuoteRequest, RecoverByEmailRequest};

use super::scene::{MAIN, Scene, code, key_of, quote_request};
use super::wallet::Wallet;

/// Keeps queued mail, up to a number of requests.
#[derive(Debug)]
struct Outbox {
    room: usize,
    queued: Mutex<Vec<MailRequest>>,
}

impl Mailer for Outbox {
    fn can_address(&self, _: &Email) -> bool {
        true
    }

    fn queue(&self, request: MailRequest) -> bool {
        let mut queued = self.queued.lock().unwrap();
        let has_room = queued.len() < self.room;
        if has_room {
            queued.push(request);
        }
        has_room
    }
}

async fn scene(room: usize) -> (Scene, Arc<Outbox>) {
    let mut scene = Scene::new().await;
    let outbox = Arc::new(Outbox { room, queued: Mutex::default() });
    let settings =
        SignupSettings { mailer: Some(Arc::clone(&outbox) as _), verify_email: true, ..SignupSettings::default() };
    let service = Arc::into_inner(scene.service).unwrap().with_signup(Arc::clone(&scene.store) as _, settings);
    scene.service = Arc::new(service);
    (scene, outbox)
}

#[tokio::test]
async fn bought_account_has_its_free_credits_and_verifies_without() {
    let (scene, outbox) = scene(10).await;
    let wallet = Wallet::of(1);
    let request = QuoteRequest { email: Some("Jo@Example.com".to_owned()), ..quote_request(&wallet, "starter", MAIN) };
    let quote = scene.service.payments().quote(&request).await.unwrap();
    let claimed = scene.claim(&quote.signup_nonce, scene.pay(&wallet, &quote)).await.unwrap();
    assert_eq!(claimed.credit_balance.to_string(), "12.5", "the payment has earned them");
    let [request] = outbox.queued.lock().unwrap().clone().try_into().unwrap();
    assert!(!format!("{request:?}").contains("xample"));
    let mail = scene.service.emails().prepare(&request).await.unwrap().unwrap();
    assert_eq!(mail.to.as_str(), "Jo@Example.com");
    let MailMessage::Verify { token, free_credits, .. } = mail.message else { panic!("{mail:?}") };
    assert_eq!(free_credits, Credits::ZERO);
    let link = LinkRequest { token: Some(token.expose().to_owned().into()), ..LinkRequest::default() };
    assert!(!format!("{link:?}").contains(token.expose()));
    let verified = scene.service.emails().verify(&link).await.unwrap();
    assert_eq!(verified.credits_granted, Credits::ZERO);
    assert_eq!(scene.balance(&key_of(&claimed.api_key)).await, "12.5");
    assert_eq!(code(scene.service.emails().verify(&link).await), "link_expired");
    assert_eq!(
        scene.service.emails().prepare(&request).await.unwrap().map(|mail| mail.to),
        None,
        "nothing is left to verify"
    );
}

#[tokio::test]
async fn recovery_is_prepared_only_for_a_verified_address() {
    let (scene, _) = scene(10).await;
    let unknown = MailRequest::Recovery("nobody@example.com".parse().unwrap());
    assert!(scene.service.emails().prepare(&unknown).await.unwrap().is_none());
    assert_eq!(format!("{unknown:?}"), "recovery of …");
    let wallet = Wallet::of(1);
    let request = QuoteRequest { email: Some("jo@example.com".to_owned()), ..quote_request(&wallet, "starter", MAIN) };
    let quote = scene.service.payments().quote(&request).await.unwrap();
    let _ = scene.claim(&quote.signup_nonce, scene.pay(&wallet, &quote)).await.unwrap();
    let pending = MailRequest::Recovery("jo@example.com".parse().unwrap());
    assert!(scene.service.emails().prepare(&pending).await.unwrap().is_none());
}

#[tokio::test]
async fn full_queue_refuses_recovery_for_every_address() {
    let (scene, _) = scene(0).await;
    let request = RecoverByEmailRequest { email: Some("nobody@example.com".to_owned()) };
    let refused = scene.service.emails().request_recovery(&request);
    assert_eq!(refused.as_ref().unwrap_err().retry_after_seconds(), Some(5));
    assert_eq!(code(refused), "overloaded");
    let (scene, _) = self::scene(1).await;
    assert_eq!(scene.service.emails().request_recovery(&request).unwrap().expires_in, 600);
}
