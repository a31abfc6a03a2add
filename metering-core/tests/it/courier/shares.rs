//! Slow receivers of one account, or on one host, leave slots for the others.

use super::*;

/// Never responds for hosts that begin with `slow`.
#[derive(Debug, Default)]
struct Slow(Mutex<Vec<String>>);

#[async_trait]
impl WebhookSender for Slow {
    async fn send(&self, message: WebhookMessage<'_>) -> AttemptOutcome {
        let url = message.webhook.terms.url.as_str().to_owned();
        let is_slow = url.starts_with("https://slow");
        self.0.lock().unwrap().push(url);
        if is_slow {
            std::future::pending::<()>().await;
        }
        AttemptOutcome::Delivered { status: 204 }
    }
}

#[tokio::test]
async fn a_slow_account_or_host_delays_only_itself() {
    let (store, sender, webhooks) = (store(), Arc::<Slow>::default(), WebhookSettings::default());
    let settings = CourierSettings {
        wake: webhooks.wake.clone(),
        max_in_flight: 6,
        max_in_flight_per_account: 2,
        max_in_flight_per_host: 3,
        ..CourierSettings::default()
    };
    let service = Service::with_defaults(store.clone()).with_webhooks(store.clone(), webhooks);
    let tested = async |urls: &[&str]| {
        let (_, key) = service.open_account("an-agent", "2".parse().unwrap()).await.unwrap();
        for url in urls {
            let request = CreateWebhookRequest { url: Some((*url).to_owned()), events: None };
            let id = service.webhooks().create(Some(&key), &request).await.unwrap().data.id;
            service.webhooks().test(Some(&key), &id).await.unwrap();
        }
    };
    // One account with a webhook on each of six slow hosts, then six accounts with a webhook on the same slow host.
    let many: Vec<String> = (0..6).map(|n| format!("https://slow{n}.example/")).collect();
    tested(&many.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for _ in 0..6 {
        tested(&["https://slow.example/"]).await;
    }
    tested(&["https://fast.example/"]).await;
    let courier = Courier::new(store, sender.clone(), Arc::new(SystemClock), settings);
    let (stats, running) = (courier.stats(), tokio::spawn(courier.run(std::future::pending())));
    let delivered = async {
        while stats.delivered() == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), delivered).await.expect("the last one is sent at once");
    running.abort();
    let sent = sender.0.lock().unwrap();
    let count = |host: &str| sent.iter().filter(|url| url.starts_with(host)).count();
    assert_eq!([count("https://slow."), count("https://slow"), count("https://fast")], [3, 5, 1], "{sent:?}");
}
