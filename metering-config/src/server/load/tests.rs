//! Every source of configuration, and every kind of error.

use super::*;
use crate::server::LogFormat;

fn from(toml: &str, variables: &[(&str, &str)], flags: &[&str]) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("metering.toml");
    std::fs::write(&file, toml).unwrap();
    let mut arguments = vec!["metering-server", "--config", file.to_str().unwrap()];
    arguments.extend(flags);
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    load(&Arguments::try_parse_from(arguments).unwrap(), variables.collect::<Vec<_>>()).map(|loaded| loaded.config)
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let toml = "listen = '127.0.0.1:1'\ndata = '/tmp/a'\n[http]\nheader_timeout = '1s'\n[meter]\nbatch = 7\n";
    let variables = [
        ("METERING_LISTEN", "127.0.0.1:2"),
        ("METERING_HTTP__HEADER_TIMEOUT", "2m"),
        ("METERING_HTTP__MAX_BODY_BYTES", "1000"),
        ("METERING_LOG__FORMAT", "json"),
        ("METERING_CLIENT_KEY", "not ours"),
        ("UNRELATED", "x"),
    ];
    let config = from(toml, &variables, &["--listen", "127.0.0.1:3"]).unwrap();
    assert_eq!(config.listen, "127.0.0.1:3");
    assert_eq!(config.http.header_timeout.duration().as_secs(), 120);
    assert_eq!(config.http.max_body_bytes, 1000);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.meter.batch.get(), 7);
    assert_eq!(config.database_url(), "sqlite:/tmp/a/metering.db");
}

#[test]
fn chains_come_from_sections_and_single_keys_from_variables() {
    let toml = "primary_chain = 'base'\n[chains.base]\nchain_id = 8453\nrecipient = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'\n";
    let config = from(toml, &[("METERING_CHAINS__BASE__CONFIRMATIONS", "3")], &[]).unwrap();
    assert_eq!(config.chains["base"].chain("base").confirmations, 3);
    assert_eq!(config.chains["base"].chain("base").name, "base");
}

#[test]
fn lists_are_read_from_arrays_and_variables() {
    let inside = |config: &Config, text: &str| config.http.trusted_proxies.contains(text.parse().unwrap());
    let toml = "[http]\ntrusted_proxies = ['127.0.0.1', '10.0.0.0/8']\n";
    let config = from(toml, &[], &[]).unwrap();
    assert!(inside(&config, "127.0.0.1") && inside(&config, "10.9.9.9") && !inside(&config, "192.168.0.1"));
    let config = from(toml, &[("METERING_HTTP__TRUSTED_PROXIES", "192.168.0.0/16, ::1")], &[]).unwrap();
    assert!(inside(&config, "192.168.0.1") && inside(&config, "::1") && !inside(&config, "127.0.0.1"));
    let config = from(toml, &[("METERING_HTTP__TRUSTED_PROXIES", "")], &[]).unwrap();
    assert!(!inside(&config, "127.0.0.1"), "an empty list overrides the file's");
}

#[test]
fn surfaces_come_from_arrays_variables_and_flags() {
    use Surface::{Gateway, Mcp, Metering};
    let surfaces = |toml, variables, flags| from(toml, variables, flags).unwrap().surfaces.to_vec();
    let toml = "surfaces = ['metering', 'gateway']\n";
    let variable = [("METERING_SURFACES", "gateway, metering, mcp")];
    assert_eq!(surfaces("", &[], &[]), [Metering, Gateway, Mcp]);
    assert_eq!(surfaces(toml, &[], &[]), [Metering, Gateway]);
    assert_eq!(surfaces(toml, &variable, &[]), [Gateway, Metering, Mcp]);
    assert_eq!(surfaces(toml, &variable, &["--surfaces", "gateway"]), [Gateway]);
}

#[test]
fn tools_alone_need_no_database_and_a_gateway() {
    let alone = |surfaces: &[Surface]| {
        Config { surfaces: surfaces.iter().copied().collect(), ..Config::default() }.is_mcp_alone()
    };
    assert!(alone(&[Surface::Mcp]));
    assert!(!alone(&Surface::ALL) && !alone(&[Surface::Gateway]));
    let message = from("", &[], &["--surfaces", "mcp"]).unwrap_err().to_string();
    assert!(message.starts_with("configuration key mcp.gateway: is required"), "{message}");
    assert!(from("[mcp]\ngateway = 'https://api.example'\n", &[], &["--surfaces", "mcp"]).is_ok());
}

#[test]
fn proxies_are_answered_only_if_they_are_named() {
    let asked = ["--surfaces", "metering,authorize"];
    let settings = |toml: &str| from(toml, &[], &asked).map(drop).map_err(|error| error.to_string());
    let proxies = "[http]\ntrusted_proxies = '127.0.0.1'\n";
    assert_eq!(settings(proxies), Ok(()));
    // the settings, and the key that is wrong
    let settle = format!("{proxies}[authorize]\nsettle = true\n");
    let table = [
        (String::new(), "http.trusted_proxies"),
        (settle.clone(), "billing.internal_secret"),
        (format!("{settle}settle_within = '9s'\n"), "authorize.settle_within"),
        (format!("{settle}settle_within = '25h'\n"), "authorize.settle_within"),
        (format!("{proxies}[authorize]\nrequest_id_header = 'a b'\n"), "authorize.request_id_header"),
    ];
    for (toml, key) in table {
        let message = settings(&toml).unwrap_err();
        assert!(message.starts_with(&format!("configuration key {key}: ")), "{toml}: {message}");
    }
    assert_eq!(settings(&format!("{settle}[billing]\ninternal_secret = 'correct horse battery'\n")), Ok(()));
}

#[test]
fn limits_have_defaults_and_can_be_switched_off() {
    let toml = "[limits]\nper_wallet = '5/1h'\n";
    let limits = from(toml, &[("METERING_LIMITS__RECOVERY_PER_IP", "off")], &[]).unwrap().limits;
    let texts = [limits.signup_per_ip, limits.recovery_per_ip, limits.per_wallet].map(|quota| quota.to_string());
    assert_eq!(texts, ["30/1m", "off", "5/1h"]);
    let limits = Config::default().limits;
    let texts = [limits.signup_per_ip, limits.recovery_per_ip, limits.per_wallet].map(|quota| quota.to_string());
    assert_eq!(texts, ["30/1m", "20/1m", "600/10m"]);
    let pairs = [limits.signup_per_email_and_network, limits.quotes_per_wallet_and_network];
    assert_eq!(pairs.map(|quota| quota.to_string()), ["10/10m", "20/1h"]);
    let top_ups = [limits.topup_quotes_per_account, limits.topup_polls_per_account];
    assert_eq!(top_ups.map(|quota| quota.to_string()), ["60/10m", "120/1m"]);
}

#[test]
fn workers_are_as_many_as_the_cores_unless_set() {
    let workers = |toml: &str, variables: &[(&str, &str)]| from(toml, variables, &[]).unwrap().worker_count();
    assert_eq!(workers("", &[]), std::thread::available_parallelism().unwrap());
    assert_eq!(workers("workers = 3", &[]).get(), 3);
    assert_eq!(workers("workers = 3", &[("METERING_WORKERS", "1024")]).get(), 1024);
}

#[test]
fn invalid_settings_are_named() {
    // file, variables, fragment of the message
    type Variables = &'static [(&'static str, &'static str)];
    let table: [(&str, Variables, &str); 46] = [
        ("listne = 'x'", &[], "listne"),
        ("[http]\nheadr_timeout = '1s'", &[], "headr_timeout"),
        ("[http]\nheader_timeout = 'soon'", &[], "http.header_timeout"),
        ("[http]\nheader_timeout = '0s'", &[], "http.header_timeout"),
        ("[http]\nmax_body_bytes = -1", &[], "http.max_body_bytes"),
        ("[http]\nmax_header_bytes = 10", &[], "http.max_header_bytes"),
        ("[gateway]\nhold_lease = '9s'", &[], "gateway.hold_lease"),
        ("[gateway]\nhold_lease = '61m'", &[], "gateway.hold_lease"),
        ("[meter]\nqueue = 0", &[], "meter.queue"),
        ("workers = 0", &[], "workers"),
        ("", &[("METERING_WORKERS", "1025")], "METERING_WORKERS: must be 1 to 1024"),
        ("upstream = 'ftp://x'", &[], "upstream"),
        ("upstream = 'not a url'", &[], "upstream"),
        ("upstream = 'http://user:pass@host'", &[], "user or password"),
        ("[billing]\ninternal_secret = 'short'", &[], "billing.internal_secret"),
        ("[billing]\npayments_secret = 'short'", &[], "billing.payments_secret"),
        ("primary_chain = 'base'", &[], "primary_chain"),
        ("[terms]\nversion = '1/2'", &[], "terms.version"),
        ("[brand]\naccent = 'green'", &[], "brand.accent"),
        ("[brand]\nmark = '/nowhere/mark.svg'", &[], "brand.mark"),
        ("[chains.a]\nchain_id = 1\nrecipient = '0x12'", &[], "chains.a.recipient"),
        ("[http]\ntrusted_proxies = ['::1', '10.0.0.0/33']", &[], "http.trusted_proxies[1]"),
        ("[http]\ntrusted_proxies = 'localhost'", &[], "http.trusted_proxies"),
        ("", &[("METERING_HTTP__TRUSTED_PROXIES", "::1, 10.0.0.0/33")], "10.0.0.0/33"),
        ("[limits]\nper_wallet = '30 per minute'", &[], "limits.per_wallet"),
        ("[limits]\nsignup_per_ip = '0/1m'", &[], "limits.signup_per_ip"),
        ("[limits]\nquotes_per_wallet_and_network = '20'", &[], "limits.quotes_per_wallet_and_network"),
        ("[limits]\ntopup_quotes_per_account = '0/1m'", &[], "limits.topup_quotes_per_account"),
        ("", &[("METERING_LIMITS__TOPUP_POLLS_PER_ACCOUNT", "many")], "limits.topup_polls_per_account"),
        ("", &[("METERING_LIMITS__VERIFICATION_PER_NETWORK", "many")], "limits.verification_per_network"),
        ("", &[("METERING_LIMITS__RECOVERY_PER_IP", "20")], "limits.recovery_per_ip"),
        ("", &[("METERING_UNKNOWN", "1")], "environment variable METERING_UNKNOWN: unknown field"),
        ("", &[("METERING_METER__QUEUE", "many")], "environment variable METERING_METER__QUEUE: "),
        ("listen = ", &[], "configuration"),
        ("surfaces = []", &[], "surfaces"),
        ("surfaces = ['gateway', 'pages']", &[], "surfaces[1]"),
        ("", &[("METERING_SURFACES", "mcp")], "mcp.gateway"),
        ("surfaces = ['gateway', 'mcp']", &[], "mcp.gateway"),
        ("[mcp]\ngateway = 'api.example'", &[], "mcp.gateway"),
        ("[mcp]\ngateway = 'https://me:pw@api.example'", &[], "mcp.gateway"),
        ("[mcp]\nmetering = 'https://api.example'", &[], "mcp.metering"),
        ("[mcp]\nallowed_hosts = ['a.example', '*']", &[], "mcp.allowed_hosts[1]"),
        ("", &[("METERING_MCP__ALLOWED_ORIGINS", "app.example")], "app.example"),
        ("[mcp]\nmax_sessions = 0", &[], "mcp.max_sessions"),
        ("[mcp]\nkey_check = '0s'", &[], "mcp.key_check"),
        ("[signup]\naltcha_max_factor = 33", &[], "signup.altcha_max_factor"),
    ];
    for (toml, variables, named) in table {
        let message = from(toml, variables, &[]).expect_err(toml).to_string();
        assert!(message.contains(named), "{toml:?} {variables:?}: {message}");
    }
}

#[test]
fn invalid_settings_are_named_by_their_variable_or_flag() {
    // Values that are only validated after everything has been read.
    let variables = [("METERING_UPSTREAM", "ftp://x")];
    let message = from("upstream = 'http://127.0.0.1:1'", &variables, &[]).unwrap_err().to_string();
    assert!(message.starts_with("environment variable METERING_UPSTREAM: "), "{message}");
    let message = from("", &variables, &["--upstream", "gopher://x"]).unwrap_err().to_string();
    assert!(message.starts_with("--upstream: "), "{message}");
    let variables = [("METERING_BILLING__INTERNAL_SECRET", "hunter2")];
    let message = from("", &variables, &[]).unwrap_err().to_string();
    assert!(message.contains("METERING_BILLING__INTERNAL_SECRET") && !message.contains("hunter2"), "{message}");
}

#[test]
fn variables_that_kubernetes_injects_for_a_service_do_not_matter() {
    let injected = [
        ("METERING_SERVICE_HOST", "10.96.12.3"),
        ("METERING_SERVICE_PORT", "80"),
        ("METERING_SERVICE_PORT_HTTP", "80"),
        ("METERING_PORT", "tcp://10.96.12.3:80"),
        ("METERING_PORT_80_TCP", "tcp://10.96.12.3:80"),
        ("METERING_PORT_80_TCP_PROTO", "tcp"),
        ("METERING_PORT_80_TCP_PORT", "80"),
        ("METERING_PORT_80_TCP_ADDR", "10.96.12.3"),
    ];
    assert_eq!(from("", &injected, &[]).unwrap().listen, Config::default().listen);
    let message = from("", &[("METERING_PORT", "8080")], &[]).unwrap_err().to_string();
    assert!(message.starts_with("environment variable METERING_PORT: unknown field"), "{message}");
}

#[test]
fn secrets_are_masked_wherever_they_are_printed() {
    let config = from("[billing]\ninternal_secret = 'correct horse battery'", &[], &[]).unwrap();
    assert_eq!(config.billing.internal_secret.as_ref().unwrap().expose(), "correct horse battery");
    let printed = toml::to_string(&config).unwrap() + &format!("{config:?}");
    assert!(!printed.contains("horse"), "{printed}");
    assert!(printed.contains("********"));
}

#[test]
fn the_printed_defaults_are_a_configuration() {
    let printed = toml::to_string(&Config::default()).unwrap();
    let read_back = from(&printed, &[], &[]).unwrap();
    assert_eq!(toml::to_string(&read_back).unwrap(), printed);
}

#[test]
fn invalid_toml_is_not_printed() {
    let toml = "[chains.base]\nrpc_urls = [\"https://rpc.example/SECRET\" \"https://other.example/SECRET\"]\n";
    let message = from(toml, &[], &[]).unwrap_err().to_string();
    assert!(message.contains("line 2") && !message.contains("SECRET"), "{message}");
}

#[test]
fn invalid_listen_address_error_suggests_a_valid_one() {
    // address, fragment of the error
    let table = [
        ("23005", "\"23005\" is a port without a host; use 127.0.0.1:23005"),
        (":23005", "use 127.0.0.1:23005"),
        ("localhost", "such as 127.0.0.1:8787"),
        ("127.0.0.1:99999", "such as 127.0.0.1:8787"),
        ("", "such as 127.0.0.1:8787"),
    ];
    for (address, expected) in table {
        let error = from("", &[], &["--listen", address]).unwrap_err().to_string();
        assert!(error.starts_with("--listen: ") && error.contains(expected), "{error}");
        let error = from("", &[("METERING_ADMIN_LISTEN", address)], &[]).unwrap_err().to_string();
        assert!(
            error.starts_with("environment variable METERING_ADMIN_LISTEN: ") && error.contains(expected),
            "{error}"
        );
    }
    for address in ["127.0.0.1:0", "localhost:8787", "[::1]:8787", "0.0.0.0:80"] {
        assert_eq!(from("", &[], &["--listen", address]).unwrap().listen, address);
    }
}

#[test]
fn mail_needs_a_server_and_a_url_for_its_links() {
    let smtp = "[smtp]\nhost = 'mail.example'\nfrom = 'hello@acme.example'\n";
    // configuration, what the error begins with
    let table = [
        (
            "[signup]\nverify_email = true\n".to_owned(),
            "configuration key signup.verify_email: requires the section [smtp]",
        ),
        (smtp.to_owned(), "configuration key public_url: is required with [smtp]"),
        (
            "public_url = 'https://acme.example'\n[smtp]\nhost = 'mail.example'\n".to_owned(),
            "configuration key smtp.from",
        ),
    ];
    for (toml, problem) in table {
        let error = from(&toml, &[], &[]).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{toml}: {error}");
    }
    let valid = |more: &str| from(&format!("public_url = 'https://acme.example'\n{smtp}{more}"), &[], &[]).unwrap();
    assert!(valid("").verifies_email());
    assert!(!valid("[signup]\nverify_email = false\n").verifies_email());
    assert!(!from("", &[], &[]).unwrap().verifies_email());
}

#[test]
fn secrets_come_from_files_without_white_space_and_stay_masked() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let secret = file("secret", "  a long enough secret\n");
    let url = file("url", "postgres://user:hidden@host/name\n");
    let toml = format!(
        "database_file = '{url}'\n[billing]\ninternal_secret_file = '{secret}'\n[signup]\nchallenge_secret_file = '{secret}'\n\
         [signup.turnstile]\nsecret_file = '{secret}'\n[pay]\nfacilitator_token_file = '{secret}'\n"
    );
    let config = from(&toml, &[], &[]).unwrap();
    let Config { billing, signup, pay, .. } = &config;
    for found in [&billing.internal_secret, &signup.challenge_secret, &signup.turnstile.secret, &pay.facilitator_token]
    {
        assert_eq!(found.as_ref().unwrap().expose(), "a long enough secret");
    }
    assert_eq!(config.database_url(), "postgres://user:hidden@host/name");
    let shown = toml::to_string(&config).unwrap();
    assert!(!shown.contains("long enough") && !shown.contains("hidden"), "{shown}");
    // Another URL, of a variable or a flag, wins.
    assert_eq!(from(&toml, &[("METERING_DATABASE", "sqlite:/a.db")], &[]).unwrap().database_url(), "sqlite:/a.db");
    assert_eq!(from(&toml, &[], &["--database", "sqlite:/b.db"]).unwrap().database_url(), "sqlite:/b.db");

    let (empty, short) = (file("empty", " \n"), file("short", "short"));
    let table = [
        ("[billing]\ninternal_secret_file = '/nowhere/at/all'".to_owned(), "billing.internal_secret_file"),
        (format!("[billing]\ninternal_secret_file = '{empty}'"), "is empty"),
        (format!("[billing]\ninternal_secret_file = '{short}'"), "at least 16 characters"),
        (
            format!("[billing]\ninternal_secret = 'a long enough secret'\ninternal_secret_file = '{secret}'"),
            "cannot be used together with billing.internal_secret",
        ),
        (format!("[signup.turnstile]\nsecret = 'x'\nsecret_file = '{secret}'"), "signup.turnstile.secret_file"),
        ("database_file = '/nowhere/at/all'".to_owned(), "database_file"),
    ];
    for (toml, expected) in table {
        let error = from(&toml, &[], &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{toml}: {error}");
    }
}

#[test]
fn a_new_secret_in_the_same_file_is_a_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    let holding = |secret: &str| {
        std::fs::write(&path, secret).unwrap();
        let variable = ("METERING_BILLING__INTERNAL_SECRET_FILE".into(), path.clone().into());
        load(&Arguments::default(), [variable]).unwrap()
    };
    let before = holding("a long enough secret");
    let differ = |after: &Loaded| before.keys_that_differ(after).unwrap().into_iter().collect::<Vec<_>>();
    assert_eq!(differ(&holding("a long enough secret")), Vec::<String>::new());
    assert_eq!(differ(&holding("another long secret")), ["billing.internal_secret_file"]);
}

#[test]
fn secrets_of_named_upstreams_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (folder.path().join("metering.toml"), folder.path().join("key"));
    let load = |header: &str, secret: &str| {
        std::fs::write(&key, secret).unwrap();
        let table = "[[gateway.upstreams]]\nname = 'a'\nurl = 'http://127.0.0.1:1'";
        std::fs::write(&file, format!("{table}\nheaders.authorization{header}\n")).unwrap();
        load(&Arguments { config: Some(file.clone()), ..Arguments::default() }, []).unwrap()
    };
    let from_file = format!(".file = '{}'", key.display());
    let before = load(&from_file, "one");
    let differ = |after: &Loaded| before.keys_that_differ(after).unwrap().into_iter().collect::<Vec<_>>();
    assert_eq!(differ(&load(&from_file, "one")), Vec::<String>::new());
    assert_eq!(differ(&load(&from_file, "two")), ["gateway.upstreams"]);
    assert_eq!(before.secret_keys(), Vec::<String>::new());
    let written = load(" = 'Bearer one'", "");
    assert_eq!(written.secret_keys(), ["gateway.upstreams"]);
    let other = load(" = 'Bearer two'", "");
    assert_eq!(written.keys_that_differ(&other).unwrap().into_iter().collect::<Vec<_>>(), ["gateway.upstreams"]);
}
