//! Prices by model: the hold, the capture and the refusal depend on the model that a request names.

use http::{Request, Response, StatusCode};
use metering_core::RequestBody;

use super::scene::{START, Scene, header, json};

const PATH: &str = "/models/small:run";

async fn run(scene: &Scene, request: Request<String>) -> Response<String> {
    let respond = || Ok(Response::builder().header("x-tokens", "7").body("inner".to_owned()).unwrap());
    scene.send(scene.layer(), request, respond).await.unwrap()
}

#[tokio::test]
async fn each_model_has_its_own_price() {
    let scene = Scene::new().await;
    let small = run(&scene, scene.get(PATH)).await;
    assert_eq!(header(&small, "x-bds-credit-charged"), Some("0.007"));
    let large = run(&scene, scene.get("/models/large-2:run")).await;
    assert_eq!(header(&large, "x-bds-credit-charged"), Some("0.07"));
    assert_eq!(scene.balance().await, START - 77 * 7_200_000);
}

#[tokio::test]
async fn model_without_a_price_is_refused_before_anything_is_held() {
    let scene = Scene::new().await;
    let refused = run(&scene, scene.get("/models/other:run")).await;
    assert_eq!(refused.status(), StatusCode::NOT_FOUND);
    let error = json(&refused);
    assert_eq!((&error["error"]["code"], &error["error"]["param"]), (&"model_not_found".into(), &"model".into()));
    assert!(error["error"]["message"].as_str().unwrap().contains("`other`"), "{error}");
    // The catalogue is hidden from clients without a key.
    let stranger = Request::get("/models/other:run").body("a body".to_owned()).unwrap();
    assert_eq!(run(&scene, stranger).await.status(), StatusCode::UNAUTHORIZED);
    assert!(scene.seen.lock().unwrap().is_empty());
    assert_eq!(scene.balance().await, START);
}

#[tokio::test]
async fn body_that_names_the_model_is_forwarded_as_json() {
    // Servers that believe these would read a form, or other characters, and so another model.
    for kind in ["application/x-www-form-urlencoded", "application/json; charset=utf-7", ""] {
        let scene = Scene::new().await;
        let mut request = scene.get("/complete");
        *request.method_mut() = http::Method::POST;
        if !kind.is_empty() {
            request.headers_mut().insert("content-type", kind.parse().unwrap());
            request.headers_mut().insert("content_type", kind.parse().unwrap());
        }
        request.extensions_mut().insert(RequestBody::new(r#"{"model": "small", "a": "&model=large&"}"#));
        assert_eq!(header(&run(&scene, request).await, "x-bds-credit-charged"), Some("0.007"), "{kind}");
        let seen = scene.seen_once();
        let kinds: Vec<_> = seen.headers().iter().filter(|(name, _)| name.as_str().starts_with("content")).collect();
        assert_eq!(kinds.len(), 1, "{kinds:?}");
        assert_eq!(seen.headers()["content-type"], "application/json");
    }
}
