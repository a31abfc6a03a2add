//! The errors that clients of a route see, and the ids that they can look up.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use metering_core::{Clock, Error, SystemRandomness, charging::HoldId};

use super::scene::{PRICE, Scene, header, json};

#[tokio::test]
async fn errors_have_the_shape_of_their_route() {
    let scene = Scene::new().await;
    // path, whether it has a key, the inner service's response, status, where the code is
    let table = [
        ("/chat", false, None, 401, Some("/error/code")),
        ("/chat?x=1", true, None, 400, Some("/error/code")),
        ("/chat/completion", true, None, 404, Some("/error/code")),
        ("/chat", true, Some(Error::Overloaded), 503, Some("/error/code")),
        ("/messages", false, None, 401, Some("/error/code")),
        ("/price/42", false, None, 401, Some("/error")),
        ("/nothing", true, None, 404, Some("/error")),
        // The inner service's own response is passed on unchanged.
        ("/chat", true, None, 200, None),
    ];
    for (path, with_key, inner, status, code_at) in table {
        let request = if with_key { scene.get(path) } else { Request::get(path).body(String::new()).unwrap() };
        let respond = move || match &inner {
            Some(error) => Ok(error.to_response()),
            None => Ok(Response::builder().header("content-type", "application/json").body("{}".to_owned()).unwrap()),
        };
        let response = scene.send(scene.layer(), request, respond).await.unwrap();
        assert_eq!(response.status(), StatusCode::from_u16(status).unwrap(), "{path}");
        let document = json(&response);
        let code = code_at.map(|place| document.pointer(place).unwrap().as_str().unwrap().to_owned());
        assert_eq!(code.is_some(), status != 200, "{path} {document}");
        let named = if path.starts_with("/messages") { "request-id" } else { "x-request-id" };
        assert!(header(&response, named).unwrap().starts_with("req_"), "{path}");
    }
}

#[tokio::test]
async fn the_id_of_a_request_is_ours_and_known_inside() {
    let scene = Scene::new().await;
    for (path, name) in [("/price/42", "x-request-id"), ("/chat", "x-request-id"), ("/messages", "request-id")] {
        let mut request = scene.get(path);
        request.headers_mut().insert("x-request-id", "forged".parse().unwrap());
        let respond = || {
            let response = Response::builder().header("x-request-id", "theirs").header("request-id", "theirs");
            Ok(response.body("inner".to_owned()).unwrap())
        };
        let response = scene.send(scene.layer(), request, respond).await.unwrap();
        let ids: Vec<_> = response.headers().iter().filter(|(name, _)| name.as_str().ends_with("request-id")).collect();
        assert_eq!(ids.len(), 1, "{path}: {ids:?}");
        let inside = scene.seen.lock().unwrap().last().unwrap().extensions().get::<HoldId>().copied().unwrap();
        assert_eq!(header(&response, name), Some(&*inside.to_string()), "{path}");
    }
    // A proxy in front may have given it one.
    let given = HoldId::generate(&SystemRandomness);
    let mut request = scene.get("/chat");
    request.extensions_mut().insert(given);
    let response = scene.ask(request, StatusCode::OK).await;
    assert_eq!(header(&response, "x-request-id"), Some(&*given.to_string()));
}

#[tokio::test]
async fn the_id_of_a_charged_request_says_why_it_was_charged() {
    let scene = Scene::new().await;
    let id = |response: &Response<String>| header(response, "x-request-id").unwrap().to_owned();
    let about = async |id: &str| scene.service.holds().get(&scene.key, id).await;
    scene.ask(scene.get("/chat"), StatusCode::OK).await;
    let response = scene.ask(scene.get("/price/42"), StatusCode::OK).await;
    let request = about(&id(&response)).await.unwrap();
    assert_eq!((request.charged.atoms(), &*request.request_path), (PRICE, "/price/42"));
    let words = request.explanation.unwrap();
    assert!(words.starts_with("GET /price/42 was charged 0.0013888889 credits to the key "), "{words}");
    assert!(words.ends_with(" The price: 0.001389 credits."), "{words}");

    // The undone charge.
    scene.clock.advance(Duration::from_secs(1));
    let response = scene.ask(scene.get("/lookup"), StatusCode::NOT_FOUND).await;
    let words = about(&id(&response)).await.unwrap().explanation.unwrap();
    assert!(words.contains("went back to the balance"), "{words}");

    // Requests that were not charged, and requests of other callers.
    let (_, other) = scene.service.open_account("other", "2".parse().unwrap()).await.unwrap();
    assert!(matches!(scene.service.holds().get(&other, &request.id).await, Err(Error::NoSuchRequest)));
    for uri in ["/price/status", "/price/x", "/nothing"] {
        let response = scene.ask(scene.get(uri), StatusCode::OK).await;
        let id: HoldId = id(&response).parse().unwrap();
        assert_eq!((id.made_at(), id.names_charge()), (scene.clock.now(), false), "{uri}");
        assert!(matches!(about(&id.to_string()).await, Err(Error::NoSuchRequest)), "{uri}");
    }
}
