//! Requests for paths outside the catalogue: refused by default, passed through on request, and never a way around the
//! charge.

use http::{Request, Response, StatusCode};

use super::scene::{START, Scene, header};

#[tokio::test]
async fn only_uncovered_routes_are_passed_through() {
    let scene = Scene::new().await;
    // the path, whether it passes without a key
    let table = [
        ("/health", true),
        ("/", true),
        ("/pric", true),
        ("/h%65alth?x=%61", true),
        ("/pricelist", true),
        ("/price", false),
        ("/price/", false),
        ("/price/42", false),
        ("/price/42/43", false),
        ("/%70rice/42", false),
        ("//price/42", false),
        ("/health/../price/42", false),
        ("/health/%2e%2e/price/42", false),
        ("/health%2f..%2fprice/42", false),
        ("/health/\\price", false),
    ];
    for (path, passes) in table {
        let Ok(request) = Request::get(path).body("a body".to_owned()) else {
            assert!(!passes, "{path}: not valid HTTP");
            continue;
        };
        let layer = scene.layer().pass_others();
        let response = scene.send(layer, request, || Ok(Response::new("inner".to_owned()))).await.unwrap();
        let expected = if passes { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        assert_eq!(response.status(), expected, "{path}");
        assert_eq!(header(&response, "x-bds-credit-balance"), None, "{path}");
        if passes {
            assert_eq!(scene.seen_once().uri().to_string(), path, "it is passed on unchanged");
        }
    }
    assert!(scene.seen.lock().unwrap().is_empty());
    assert_eq!(scene.balance().await, START);
}

#[tokio::test]
async fn routes_outside_the_catalogue_are_refused_by_default() {
    let scene = Scene::new().await;
    let response = scene.ask(scene.get("/health"), StatusCode::OK).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert!(scene.seen.lock().unwrap().is_empty());
}
