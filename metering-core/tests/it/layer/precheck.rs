//! Requests that are refused before a body is read, and that nothing is charged or counted for them.

use http::request::Parts;
use http::{Request, StatusCode};
use metering_core::{ApiKey, RateLimits, SystemRandomness};

use super::scene::{PRICE, START, Scene, json};

fn head(key: Option<&ApiKey>, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::get(uri);
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {}", key.expose()));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

#[tokio::test]
async fn what_the_layer_would_refuse_is_refused_by_the_head() {
    let limits = RateLimits::per_minute(1);
    let (scene, empty) = (Scene::with(START, limits).await, Scene::with(0, limits).await);
    let _ = scene.ask(scene.get("/price/42"), StatusCode::OK).await;
    // The owner hears of the first refusal, from the charge.
    assert_eq!(empty.ask(empty.get("/price/42"), StatusCode::OK).await.status(), StatusCode::PAYMENT_REQUIRED);
    let unknown = ApiKey::generate(&SystemRandomness);
    // scene, key, uri, headers, status
    type Row<'r> = (&'r Scene, Option<&'r ApiKey>, &'r str, &'r [(&'r str, &'r str)], Option<u16>);
    let table: [Row<'_>; 12] = [
        (&scene, None, "/price/42", &[], Some(401)),
        (&scene, Some(&unknown), "/price/42", &[], Some(401)),
        (&scene, None, "/price/status", &[], None),
        (&scene, None, "/nothing", &[], Some(401)),
        (&scene, Some(&scene.key), "/nothing", &[], Some(404)),
        (&scene, Some(&scene.key), "/price/a", &[], Some(400)),
        (&scene, Some(&scene.key), "/price/42", &[], Some(429)),
        (&scene, Some(&scene.key), "/price/42", &[("idempotency-key", "0123456789abcdef0123456789abcdef")], None),
        (&scene, Some(&scene.key), "/price/42", &[("x-stainless-retry-count", "1")], None),
        (&scene, Some(&scene.key), "/price/42", &[("max-cost", "0.1")], None),
        (&empty, Some(&empty.key), "/price/42", &[], Some(402)),
        (&empty, Some(&unknown), "/price/42", &[("max-cost", "0.1")], Some(401)),
    ];
    for (scene, key, uri, headers, status) in table {
        let checked = scene.layer().precheck::<String>(&mut head(key, uri, headers)).await;
        let refused = checked.as_ref().err().map(|response| response.status().as_u16());
        assert_eq!(refused, status, "{uri} {headers:?}");
        if let Err(response) = checked {
            assert!(json(&response)["error"].is_string() && response.headers().contains_key("x-request-id"));
        }
    }
    assert_eq!((scene.balance().await, empty.balance().await), (START - PRICE, 0));
    assert_eq!(scene.seen.lock().unwrap().len(), 1);
}
