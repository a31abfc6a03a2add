use super::*;
use WebhookUrlError::{
    Character, Fragment, LocalName, Malformed, NotHttp, NotHttps, Port, PrivateAddress, TooLong, UserInfo,
};
use proptest::prelude::*;

fn customers(text: &str) -> Result<String, WebhookUrlError> {
    text.parse::<WebhookUrl>().map(|url| url.to_string())
}

#[test]
fn public_https_urls_are_accepted_in_normal_form() {
    let table = [
        ("https://hooks.example.com", "https://hooks.example.com/"),
        ("HTTPS://Hooks.Example.COM:443/a/../b?c=%20d", "https://hooks.example.com/b?c=%20d"),
        ("https://hooks.example.com:8443/x", "https://hooks.example.com:8443/x"),
        ("https://hooks.example.com:65535/", "https://hooks.example.com:65535/"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("https://93.184.216.34/", "https://93.184.216.34/"),
        ("https://[2606:4700::6810:84E5]:1/", "https://[2606:4700::6810:84e5]:1/"),
        ("https://a.example/to@b", "https://a.example/to@b"),
        ("https://a.example?to=x@b", "https://a.example/?to=x@b"),
        ("https://local.example/", "https://local.example/"),
        ("https://not.localhost.example/", "https://not.localhost.example/"),
        ("https://hooks.example./", "https://hooks.example./"),
    ];
    for (text, normal) in table {
        assert_eq!(customers(text).as_deref(), Ok(normal), "{text}");
    }
}

#[test]
fn other_urls_are_refused_with_the_reason() {
    let table = [
        ("", NotHttps),
        ("hooks.example.com", NotHttps),
        ("http://hooks.example.com/", NotHttps),
        ("ftp://hooks.example.com/", NotHttps),
        ("file:///etc/passwd", NotHttps),
        ("https:hooks.example.com", NotHttps),
        ("https:/hooks.example.com", NotHttps),
        ("javascript:x://hooks.example.com", NotHttps),
        ("https://", Malformed),
        ("https:///hooks.example.com", Malformed),
        ("https://?a", Malformed),
        ("https://:443/", Malformed),
        ("https://a..%/", Malformed),
        ("https://[::1/", Malformed),
        ("https://[fe80::1%25eth0]/", Malformed),
        ("https://1.2.3.4.5/", Malformed),
        ("https://300.1.1.1/", Malformed),
        ("https://a<b/", Malformed),
        ("https://me@hooks.example.com/", UserInfo),
        ("https://me:pw@hooks.example.com/", UserInfo),
        ("https://@hooks.example.com/", UserInfo),
        ("https://hooks.example.com:443@127.0.0.1/", UserInfo),
        ("https://hooks.example.com/#", Fragment),
        ("https://hooks.example.com/#a", Fragment),
        ("https://hooks.example.com#@127.0.0.1/", Fragment),
        ("https://hooks.example.com:0/", Port),
        ("https://hooks.example.com:00/", Port),
        ("https://hooks.example.com:65536/", Port),
        ("https://hooks.example.com:x/", Port),
        (" https://hooks.example.com/", Character),
        ("https://hooks.example.com/\n", Character),
        ("https://hooks.exa\tmple.com/", Character),
        ("https://hooks.example.com/a b", Character),
        ("https://hooks.example.com\\@127.0.0.1/", Character),
        ("https://hooks.exam\u{AD}ple.com/", Character),
        ("https://hooks.example.com/\u{202E}", Character),
        ("https://hooks.example.com/\0", Character),
        ("https://hooks.example.com/\u{A0}", Character),
    ];
    for (text, error) in table {
        assert_eq!(customers(text), Err(error), "{text:?}");
    }
}

#[test]
fn private_addresses_are_refused_in_every_spelling() {
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0X7F.0.0.0x1",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "2130706433",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "0",
        "0.0.0.0",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "100.64.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::169.254.169.254]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
    ] {
        for url in [format!("https://{host}/"), format!("https://{host}:8443/x?y")] {
            assert_eq!(customers(&url), Err(PrivateAddress), "{url}");
            assert!(WebhookUrl::parse_trusted(&url).is_ok_and(|url| url.address().is_some()), "{url}");
        }
    }
}

#[test]
fn local_names_are_refused() {
    for host in [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "printer.local",
        "metadata.google.internal",
        "metadata.google.internal.",
        "internal",
        "db",
        "db.",
        "notlocalhost",
        "xn--bcher-kva",
        "%6cocalhost",
        "ｌocalhost",
        "ⓛocalhost",
    ] {
        assert_eq!(customers(&format!("https://{host}/")), Err(LocalName), "{host}");
    }
}

#[test]
fn urls_are_bounded_before_and_after_encoding() {
    let with_path = |path: &str, count: usize| customers(&format!("https://a.example/{}", path.repeat(count)));
    assert!(with_path("x", 2_030).is_ok_and(|url| url.len() == 2_048));
    assert_eq!(with_path("x", 2_031), Err(TooLong));
    assert_eq!(with_path("ä", 338), Ok(format!("https://a.example/{}", "%C3%A4".repeat(338))));
    assert_eq!(with_path("ä", 339), Err(TooLong));
}

#[test]
fn an_operators_networks_allow_their_addresses_and_local_names() {
    let policy = AddressPolicy::with_networks(vec!["10.0.0.0/8".parse().unwrap()]);
    let parse = |text| WebhookUrl::parse(text, &policy).map(|url| url.to_string());
    for text in ["https://10.1.2.3/", "https://hooks.corp.internal/", "https://hooks.example.com/"] {
        assert_eq!(parse(text).as_deref(), Ok(text));
    }
    assert_eq!(parse("https://0xa.1.2.3/").as_deref(), Ok("https://10.1.2.3/"));
    assert_eq!(parse("https://192.168.0.1/"), Err(PrivateAddress));
    assert_eq!(parse("http://10.1.2.3/"), Err(NotHttps));
}

#[test]
fn an_operators_own_url_may_be_anywhere_but_must_be_clean() {
    let parse = |text| WebhookUrl::parse_trusted(text).map(|url| url.to_string());
    for text in ["http://localhost:8080/", "http://10.0.0.1/x", "https://hooks.example.com/", "http://[::1]:1/"] {
        assert_eq!(parse(text).as_deref(), Ok(text));
    }
    let table = [
        ("ftp://localhost/", NotHttp),
        ("localhost:8080", NotHttp),
        ("http://me:pw@localhost/", UserInfo),
        ("http://localhost/#a", Fragment),
        ("http://localhost:0/", Port),
        ("http://local host/", Character),
    ];
    for (text, error) in table {
        assert_eq!(parse(text), Err(error), "{text}");
    }
}

#[test]
fn secrets_in_a_url_are_not_printed_by_debug() {
    let url: WebhookUrl = "https://hooks.example.com:8443/T0/s3cret?token=s3cret".parse().unwrap();
    assert_eq!(format!("{url:?}"), "WebhookUrl(https://hooks.example.com:8443/…)");
    assert_eq!(url.host(), "hooks.example.com");
    assert_eq!(url.address(), None);
}

#[test]
fn mail_is_a_url_only_where_it_is_stored() {
    let mail = |address: &str| WebhookUrl::mail_to(&address.parse().unwrap());
    let url = mail("Jo.Doe+alerts_1@Example.com").unwrap();
    assert_eq!(url.as_str(), "mailto:Jo.Doe+alerts_1@Example.com");
    assert_eq!(WebhookUrl::parse_stored(url.as_str()), Ok(url.clone()));
    assert_eq!((url.email().unwrap().to_string().as_str(), url.address()), ("Jo.Doe+alerts_1@Example.com", None));
    for address in ["a?b@example.com", "a%40b@example.com", "jörg@example.com", "a/b@example.com"] {
        assert_eq!(mail(address), None, "{address}");
    }
    for text in ["mailto:", "mailto:jo", "mailto:jo@example.com?cc=x@example.com", "ftp://example.com/"] {
        assert!(WebhookUrl::parse_stored(text).is_err(), "{text}");
    }
    let https = "https://example.com/".parse::<WebhookUrl>().unwrap();
    assert_eq!((WebhookUrl::parse_stored(https.as_str()), https.email()), (Ok(https.clone()), None));
    assert!(WebhookUrl::parse_trusted(url.as_str()).is_err(), "nobody configures it");
}

proptest! {
    /// Any accepted URL stays the same when it is parsed again.
    #[test]
    fn what_is_accepted_is_public_and_in_normal_form(text in "https://[0-9a-fx.:\\[\\]@/?#%\u{ff11}-\u{ff13}]{0,24}") {
        if let Ok(url) = text.parse::<WebhookUrl>() {
            prop_assert!(url.address().is_none_or(crate::events::is_public));
            prop_assert_eq!(url.as_str().parse::<WebhookUrl>(), Ok(url.clone()));
        }
    }

    #[test]
    fn garbage_is_handled_without_panic(text in "\\PC{0,60}") {
        let _ = text.parse::<WebhookUrl>();
        let _ = WebhookUrl::parse_trusted(&format!("https://{text}"));
    }
}
