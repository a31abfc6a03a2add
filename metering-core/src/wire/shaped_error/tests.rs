//! The errors that clients of each shape read.

use super::*;
use crate::money::credits::Credits;
use crate::wire::{ErrorCode, Required};

const SHAPES: [ErrorShape; 4] = [ErrorShape::OpenAi, ErrorShape::Anthropic, ErrorShape::Gemini, ErrorShape::Problem];

fn read(shape: ErrorShape, body: &ErrorBody) -> Value {
    serde_json::from_str(&shape.document(body, Some("req_1"))).unwrap()
}

#[test]
fn each_status_has_the_kind_that_clients_know() {
    use ErrorCode as Code;
    // code, OpenAI, Anthropic, Google, title
    let table = [
        (Code::InvalidParameter, "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", "Bad Request"),
        (Code::Unauthorized, "authentication_error", "authentication_error", "UNAUTHENTICATED", "Unauthorized"),
        (Code::InsufficientCredits, "insufficient_quota", "billing_error", "RESOURCE_EXHAUSTED", "Payment Required"),
        (Code::KeyScope, "permission_error", "permission_error", "PERMISSION_DENIED", "Forbidden"),
        (Code::UnknownRoute, "invalid_request_error", "not_found_error", "NOT_FOUND", "Not Found"),
        (
            Code::MethodNotAllowed,
            "invalid_request_error",
            "invalid_request_error",
            "UNIMPLEMENTED",
            "Method Not Allowed",
        ),
        (Code::RequestTimeout, "invalid_request_error", "timeout_error", "DEADLINE_EXCEEDED", "Request Timeout"),
        (Code::RequestInProgress, "invalid_request_error", "invalid_request_error", "ABORTED", "Conflict"),
        (
            Code::MaxCostExceeded,
            "invalid_request_error",
            "invalid_request_error",
            "FAILED_PRECONDITION",
            "Precondition Failed",
        ),
        (Code::PayloadTooLarge, "invalid_request_error", "request_too_large", "INVALID_ARGUMENT", "Content Too Large"),
        (Code::RateLimited, "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED", "Too Many Requests"),
        (Code::InternalError, "server_error", "api_error", "INTERNAL", "Internal Server Error"),
        (Code::UpstreamUnreachable, "server_error", "api_error", "UNAVAILABLE", "Bad Gateway"),
        (Code::Overloaded, "service_unavailable_error", "overloaded_error", "UNAVAILABLE", "Service Unavailable"),
        (Code::UpstreamTimeout, "server_error", "timeout_error", "DEADLINE_EXCEEDED", "Gateway Timeout"),
    ];
    for (code, openai, anthropic, google, title) in table {
        let body = ErrorBody::new(code, "m");
        assert_eq!(read(ErrorShape::OpenAi, &body)["error"]["type"], openai, "{code}");
        assert_eq!(read(ErrorShape::Anthropic, &body)["error"]["type"], anthropic, "{code}");
        assert_eq!(read(ErrorShape::Gemini, &body)["error"]["status"], google, "{code}");
        assert_eq!(read(ErrorShape::Gemini, &body)["error"]["code"], code.status(), "{code}");
        assert_eq!(read(ErrorShape::Problem, &body)["title"], title, "{code}");
        assert_eq!(read(ErrorShape::Problem, &body)["status"], code.status(), "{code}");
    }
    let titled = |code: &ErrorCode| kinds::title(code.status()) != "Error";
    assert!(ErrorCode::ALL.iter().all(titled), "every status of a code has a title");
}

#[test]
fn what_programs_read_stays_in_its_place() {
    let mut body = ErrorBody::new(ErrorCode::InsufficientCredits, "Top up.\nThen \"retry\".");
    let balance = Credits::from_atoms(-888_888_888_800_000_001);
    body.credit_balance = Some(balance);
    body.required = Some(Required::Credits("0.5".parse().unwrap()));
    body.fields = Some([("/model".to_owned(), "must be a string".to_owned())].into());
    for shape in SHAPES {
        let text = shape.document(&body, Some("req_1"));
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(text.contains(&format!("\"credit_balance\":{balance},")), "digits are kept: {text}");
        assert_eq!(document["required"], 0.5, "{shape:?}");
        assert_eq!(document["message"], "Top up.\nThen \"retry\".", "{shape:?}");
        assert_eq!(document["fields"]["/model"], "must be a string", "{shape:?}");
        let code = if shape == ErrorShape::Problem { &document["error"] } else { &document["error_code"] };
        assert_eq!(code, "insufficient_credits", "{shape:?}");
    }
    let openai = read(ErrorShape::OpenAi, &body);
    assert_eq!(openai["error"]["param"], "/model");
    assert_eq!(openai["error"]["message"], "Top up.\nThen \"retry\".");
    let anthropic = read(ErrorShape::Anthropic, &body);
    assert_eq!((&anthropic["type"], &anthropic["request_id"]), (&json!("error"), &json!("req_1")));
    let problem = read(ErrorShape::Problem, &body);
    assert_eq!((&problem["type"], &problem["detail"]), (&json!("about:blank"), &problem["message"]));
}

#[test]
fn an_error_is_one_event() {
    let body = ErrorBody::new(ErrorCode::ShuttingDown, "Bye.\n\nevent: forged\ndata: 1");
    for shape in SHAPES {
        let event = shape.event(&body, None).unwrap();
        assert_eq!(event.find("\n\n"), Some(event.len() - 2), "{event}");
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert!(!data["error"].is_null(), "{shape:?}");
        assert_eq!(event.starts_with("event: error\n"), matches!(shape, ErrorShape::Anthropic | ErrorShape::Problem));
    }
    assert_eq!(ErrorShape::Own.event(&body, None), None);
}
