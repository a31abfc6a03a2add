//! Which requests the layer admits, at what price, and how the inner service sees them.

use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, Request, Response, StatusCode};
use metering_core::catalogue::Route;
use metering_core::usage::DayRange;
use metering_core::{ApiKey, Charged, ClientSource, Credits, Error, RateLimits, Store};

use super::scene::{PRICE, START, Scene, header, json};

#[tokio::test]
async fn accepted_request_is_charged_and_reported_in_headers() {
    let scene = Scene::with(START, RateLimits::per_minute(5)).await;
    let mut request = scene.get("/price/42");
    request.headers_mut().insert("x-bds-client-source", "cli".parse().unwrap());
    let response = scene.ask(request, StatusCode::OK).await;
    assert_eq!((response.status(), response.body().as_str()), (StatusCode::OK, "inner"));
    assert_eq!(header(&response, "x-inner"), Some("1"));
    assert_eq!(header(&response, "x-bds-credit-charged"), Some("0.0013888889"));
    assert_eq!(header(&response, "x-bds-credit-balance"), Some("0.9986111111"));
    assert_eq!(header(&response, "ratelimit-policy"), Some("\"minute\";q=5;w=60"));
    assert_eq!(header(&response, "ratelimit"), Some("\"minute\";r=4;t=60"));
    assert_eq!(scene.balance().await, START - PRICE);
    let charged = scene.seen_once().extensions().get::<Charged>().cloned().unwrap();
    assert_eq!(charged.account, scene.account);
    assert_eq!((charged.amount.atoms(), charged.balance.unwrap().atoms()), (PRICE, START - PRICE));
    assert_eq!(&*charged.route_template, "/price/{block}");
    let totals = scene.store.daily_totals(None, 10).await.unwrap().items;
    assert_eq!(totals.len(), 1);
    assert_eq!(totals[0].line.source, ClientSource::Cli);
}

#[tokio::test]
async fn the_inner_service_sees_the_normal_form_that_was_priced() {
    // the requested target, the target that the inner service sees
    let table = [
        ("/price/42", "/price/42"),
        ("/price/%34%32", "/price/42"),
        ("/price/42?", "/price/42"),
        ("/price/42?unit=a%2db", "/price/42?unit=a-b"),
        ("https://api.example:8443/%70rice/42?unit=x", "https://api.example:8443/price/42?unit=x"),
    ];
    for (asked, seen) in table {
        let scene = Scene::new().await;
        assert_eq!(scene.ask(scene.get(asked), StatusCode::OK).await.status(), StatusCode::OK, "{asked}");
        assert_eq!(scene.seen_once().uri().to_string(), seen);
    }
}

#[tokio::test]
async fn headers_that_change_which_request_runs_never_reach_the_inner_service() {
    let overrides =
        ["x-http-method-override", "x_http_method_override", "x-original-url", "x-rewrite-url", "script_name"];
    let scene = Scene::new().await;
    let mut priced = scene.get("/price/42");
    let mut other = Request::get("/health").body("a body".to_owned()).unwrap();
    for request in [&mut priced, &mut other] {
        request.headers_mut().insert("x-forwarded-for", "10.0.0.7".parse().unwrap());
        for name in overrides {
            request.headers_mut().insert(name, "/price/43".parse().unwrap());
        }
    }
    for request in [priced, other] {
        let layer = scene.layer().pass_others();
        let response = scene.send(layer, request, || Ok(Response::new("inner".to_owned()))).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let seen = scene.seen_once();
        assert!(seen.headers().contains_key("x-forwarded-for"), "the service's own proxy sets it");
        for name in overrides {
            assert!(!seen.headers().contains_key(name), "{name}");
        }
        scene.seen.lock().unwrap().clear();
    }
}

#[tokio::test]
async fn refused_request_is_not_charged_or_forwarded() {
    let scene = Scene::new().await;
    let keyed = |uri: &str| scene.get(uri);
    let bare = |uri: &str| Request::get(uri).body("a body".to_owned()).unwrap();
    let with = |name: &'static str, value: &str| {
        let mut request = bare("/price/42");
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    };
    let mut two_keys = keyed("/price/42");
    let again = two_keys.headers()["authorization"].clone();
    two_keys.headers_mut().append("authorization", again);
    let mut post = keyed("/price/42");
    *post.method_mut() = http::Method::POST;
    let table = [
        (bare("/price/42"), 401, "unauthorized"),
        (with("authorization", "Bearer nonsense"), 401, "unauthorized"),
        (with("x-api-key", "sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV28hqg7"), 401, "unauthorized"),
        (two_keys, 401, "unauthorized"),
        (bare("/unheard-of"), 401, "unauthorized"),
        (keyed("/unheard-of"), 404, "unknown_route"),
        (keyed("/price"), 404, "unknown_route"),
        (post, 405, "method_not_allowed"),
        (keyed("/price/forty"), 400, "invalid_parameter"),
        (keyed("/price/42?from_epoch=1"), 400, "invalid_parameter"),
        (keyed("/price/42/../43"), 400, "invalid_path"),
        (keyed("/price%2f42"), 400, "invalid_path"),
    ];
    for (request, status, code) in table {
        let asked = format!("{} {}", request.method(), request.uri());
        let response = scene.ask(request, StatusCode::OK).await;
        assert_eq!((response.status().as_u16(), json(&response)["error"].as_str()), (status, Some(code)), "{asked}");
        assert_eq!(header(&response, "www-authenticate"), (status == 401).then_some("Bearer"), "{asked}");
        assert_eq!(header(&response, "allow"), (status == 405).then_some("GET"), "{asked}");
        assert_eq!(header(&response, "x-bds-credit-charged"), None, "{asked}");
    }
    assert!(scene.seen.lock().unwrap().is_empty());
    assert_eq!(scene.balance().await, START);
}

#[tokio::test]
async fn an_api_key_header_pays_as_well_as_a_bearer() {
    let scene = Scene::new().await;
    let request = Request::get("/price/42").header("X-API-Key", scene.key.expose()).body("a body".to_owned()).unwrap();
    assert_eq!(scene.ask(request, StatusCode::OK).await.status(), StatusCode::OK);
    assert_eq!(scene.balance().await, START - PRICE);
}

#[tokio::test]
async fn an_empty_balance_is_told_where_to_buy() {
    let scene = Scene::with(1, RateLimits::NONE).await;
    assert_eq!(scene.ask(scene.get("/price/1"), StatusCode::OK).await.status(), StatusCode::OK);
    let response = scene.ask(scene.get("/price/2"), StatusCode::OK).await;
    assert_eq!(response.status(), StatusCode::PAYMENT_REQUIRED);
    let body = json(&response);
    assert_eq!(body["error"], "insufficient_credits");
    assert_eq!(body["plans_url"], "https://api.example/plans");
    assert_eq!(body.get("topup_url"), None, "there is no such link");
    assert_eq!(body["required"].to_string(), "0.0013888889");
    assert_eq!(scene.seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn cap_refuses_until_the_minute_ends() {
    let scene = Scene::with(START, RateLimits::per_minute(1)).await;
    scene.clock.advance(Duration::from_secs(20));
    assert_eq!(scene.ask(scene.get("/price/1"), StatusCode::OK).await.status(), StatusCode::OK);
    let response = scene.ask(scene.get("/price/2"), StatusCode::OK).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(header(&response, "retry-after"), Some("40"));
    assert_eq!(header(&response, "ratelimit"), Some("\"minute\";r=0;t=40"));
    assert_eq!(json(&response)["limit_window"], "minute");
    scene.clock.advance(Duration::from_secs(40));
    assert_eq!(scene.ask(scene.get("/price/3"), StatusCode::OK).await.status(), StatusCode::OK);
    assert_eq!(scene.balance().await, START - 2 * PRICE);
}

#[tokio::test]
async fn a_route_that_is_not_metered_is_free_for_anyone() {
    let scene = Scene::new().await;
    for request in [Request::get("/price/status").body("a body".to_owned()).unwrap(), scene.get("/price/status")] {
        let response = scene.ask(request, StatusCode::OK).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(header(&response, "x-bds-credit-balance"), None);
        assert!(scene.seen_once().extensions().get::<Charged>().is_none());
    }
    let report = scene.store.usage_report(&scene.account, DayRange::last_days(now(&scene), 1)).await.unwrap().unwrap();
    assert_eq!((report.by_day, report.account.totals.used), (vec![], Credits::ZERO));
}

#[tokio::test]
async fn hook_sees_matched_requests_before_the_charge() {
    let scene = Scene::new().await;
    let slots = Arc::new(());
    let hook = {
        let slots = Arc::clone(&slots);
        move |key: Option<&ApiKey>, route: &Route, extensions: &mut Extensions| {
            if key.is_some() && Arc::strong_count(&slots) > 3 {
                return Err(Error::TooManyStreams { open: 1 });
            }
            extensions.insert(Arc::clone(&slots));
            extensions.insert(route.metered);
            Ok(())
        }
    };
    let layer = scene.layer().pass_others().on_match(hook);
    let send = |request| scene.send(layer.clone(), request, || Ok(Response::new("inner".to_owned())));
    let bare = |uri: &str| Request::get(uri).body("a body".to_owned()).unwrap();
    // request, status, the data that the hook passed to the inner service
    let table = [
        (scene.get("/price/42"), 200, Some(Some(true))),
        (bare("/price/status"), 200, Some(Some(false))),
        (bare("/health"), 200, Some(None)),
        (bare("/price/42"), 401, None),
        (scene.get("/price/forty"), 400, None),
        (scene.get("/price/42/43"), 404, None),
    ];
    for (request, status, passed) in table {
        let uri = request.uri().to_string();
        let response = send(request).await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{uri}");
        let seen = scene.seen.lock().unwrap().pop();
        assert_eq!(seen.map(|seen| seen.extensions().get::<bool>().copied()), passed, "{uri}");
        assert_eq!(Arc::strong_count(&slots), 2, "{uri}: the hook's reservation is released");
    }
    let held = [Arc::clone(&slots), Arc::clone(&slots)];
    for uri in ["/price/42", "/price/forty"] {
        let response = send(scene.get(uri)).await.unwrap();
        assert_eq!((response.status().as_u16(), json(&response)["error"].as_str()), (429, Some("too_many_streams")));
        assert_eq!(header(&response, "retry-after"), Some("5"));
    }
    drop(held);
    assert!(scene.seen.lock().unwrap().is_empty());
    assert_eq!(scene.balance().await, START - PRICE);
}

fn now(scene: &Scene) -> metering_core::Timestamp {
    metering_core::Clock::now(&*scene.clock)
}
