use super::*;

fn catalogue() -> Catalogue {
    let param = |name: &str, place: &str, kind: &str, required: bool| {
        format!(r#"{{"name":"{name}","in":"{place}","type":"{kind}","required":{required}}}"#)
    };
    let endpoint = |method: &str, path: &str, params: &[String]| {
        format!(
            r#"{{"path":"{path}","method":"{method}","metered":true,"sse":false,"description":"","params":[{}],"credit_weight":1}}"#,
            params.join(",")
        )
    };
    let endpoints = [
        endpoint("GET", "/mpp/ethPrice", &[]),
        endpoint("GET", "/mpp/ethPrice/{block}", &[param("block", "path", "integer", true)]),
        endpoint("GET", "/mpp/token/{name}", &[param("name", "path", "string", true)]),
        endpoint("GET", "/mpp/token/top", &[]),
        endpoint(
            "GET",
            "/mpp/search",
            &[param("q", "query", "string", true), param("limit", "query", "integer", false)],
        ),
        endpoint("POST", "/mpp/search", &[]),
        endpoint(
            "GET",
            "/m/{model}:run",
            &[
                param("model", "path", "string", true),
                r#"{"name":"include[]","in":"query","type":"string","array":true}"#.to_owned(),
            ],
        ),
    ];
    Catalogue::from_json(&format!(r#"{{"market":"M","version":1,"endpoints":[{}]}}"#, endpoints.join(","))).unwrap()
}

fn filled(method: Option<Method>, template: &str, params: &[&str]) -> Result<(Method, String), Failure> {
    let params: Vec<Param> = params.iter().map(|text| text.parse().unwrap()).collect();
    fill_in(&catalogue(), method.as_ref(), template, &params).map(|request| (request.method, request.target))
}

#[test]
fn templates_are_filled_in_with_every_value_encoded() {
    // template, parameters, target
    let table: [(&str, &[&str], &str); 7] = [
        ("/mpp/ethPrice/{block}", &["block=19000000"], "/mpp/ethPrice/19000000"),
        ("/mpp/token/{name}", &["name=a b?c#d&é"], "/mpp/token/a%20b%3Fc%23d%26%C3%A9"),
        ("/mpp/token/{name}", &["name=a=b"], "/mpp/token/a%3Db"),
        ("/mpp/search", &["q=x&limit=1"], "/mpp/search?q=x%26limit%3D1"),
        ("/mpp/search", &["limit=5", "q=+"], "/mpp/search?q=%2B&limit=5"),
        ("/mpp/ethPrice", &[], "/mpp/ethPrice"),
        (
            "/m/{model}:run",
            &["model=x:free", "include[]=b", "include[]=a"],
            "/m/x%3Afree:run?include%5B%5D=b&include%5B%5D=a",
        ),
    ];
    for (template, params, target) in table {
        assert_eq!(filled(None, template, params).unwrap(), (Method::GET, target.to_owned()), "{template}");
    }
    assert_eq!(filled(Some(Method::POST), "/mpp/search", &[]).unwrap().0, Method::POST);
}

#[test]
fn invalid_parameters_are_rejected_before_sending() {
    // template, parameters, exit code, expected
    let table: [(&str, &[&str], u8, &str); 10] = [
        ("/mpp/none/{x}", &["x=1"], 4, "metering routes"),
        ("/mpp/ethPrice/{block}", &[], 2, "block is missing"),
        ("/mpp/ethPrice/{block}", &["block=new"], 2, "must be an integer"),
        ("/mpp/ethPrice/{block}", &["block=1", "from=2"], 2, "no parameter from; it has block"),
        ("/mpp/ethPrice/{block}", &["block=1", "block=2"], 2, "twice"),
        ("/mpp/ethPrice", &["a=1"], 2, "it has none"),
        ("/mpp/token/{name}", &["name=.."], 2, ". or .."),
        ("/mpp/token/{name}", &["name=a/b"], 2, "encoded slashes"),
        ("/mpp/token/{name}", &["name=top"], 2, "another route"),
        ("/mpp/search", &["limit=5"], 2, "q is missing"),
    ];
    for (template, params, code, expected) in table {
        let failure = filled(None, template, params).unwrap_err();
        assert_eq!(failure.exit_code(), code, "{failure}");
        assert!(failure.to_string().contains(expected), "{failure}");
    }
    assert_eq!(filled(Some(Method::DELETE), "/mpp/search", &[]).unwrap_err().exit_code(), 4);
}

#[test]
fn only_paths_with_optional_query_are_targets() {
    for good in ["/mpp/ethPrice", "/mpp/x?a=1&b=%20", "/", "/mpp/x?"] {
        assert!(check_target(good).is_ok(), "{good}");
    }
    for bad in ["", "mpp", "https://other.example/mpp", "/mpp/../internal", "/a b", "/a#b", "/a?b c", "/a?b#c", "/a?é"]
    {
        assert!(matches!(check_target(bad), Err(Failure::Usage(_))), "{bad}");
    }
}

#[test]
fn parameters_are_a_name_and_a_value() {
    assert_eq!("a=".parse(), Ok(Param { name: "a".to_owned(), value: String::new() }));
    assert!("a".parse::<Param>().is_err());
    assert!("=a".parse::<Param>().is_err());
}
