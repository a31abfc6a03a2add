//! Several processes on one database: servers and the command-line program.

use std::time::Duration;

use metering_tests::load::{Stop, request, start};
use metering_tests::site::Site;

use crate::support::calendar::{away_from_midnight, in_one_minute, minute_with};
use crate::support::wire::{BASE, amount, balance, plan_with_long_timeout, usage_events};

#[test]
fn two_servers_share_balance_and_caps_exactly() {
    in_one_minute(|| {
        let site = Site::new();
        let (poor, per_minute, per_day) =
            (site.account("0.05"), site.account_with_caps("10", 90, 0), site.account_with_caps("10", 0, 120));
        let servers = [site.server().start(), site.server().start()];
        minute_with(Duration::from_secs(20));
        // account, accepted requests, status of the others
        for (account, accepted, refusal) in [(&poor, 360, 402), (&per_minute, 90, 429), (&per_day, 120, 429)] {
            let call = vec![request("GET", BASE, Some(&account.api_key), &[])];
            let loads = servers.each_ref().map(|server| {
                start(plan_with_long_timeout(server.address(), 32, Stop::AfterRequests(300), call.clone()), |_| ())
            });
            let results = loads.map(metering_tests::load::RunningLoad::join);
            let with = |status| results.iter().map(|result| result.with_status(status)).sum::<u64>();
            assert_eq!((with(200), with(refusal)), (accepted, 600 - accepted), "{results:?}");
            for server in &servers {
                assert_eq!(usage_events(&server.client_with(&account.api_key)), accepted);
            }
        }
        assert_eq!(balance(&servers[0].client_with(&poor.api_key)), "0");
        site.verify();
    });
}

#[test]
fn admin_commands_take_effect_immediately_in_a_busy_server() {
    let site = Site::verified();
    let (busy, account, leaving) = (site.account("1000"), site.account("0"), site.account("1"));
    let server = site.server().start();
    let call = vec![request("GET", BASE, Some(&busy.api_key), &[])];
    let load = start(plan_with_long_timeout(server.address(), 16, Stop::After(Duration::from_secs(4)), call), |_| ());
    let client = server.client_with(&account.api_key);
    for round in 1..=3 {
        let _ = client.get(BASE).expect(402);
        // Slightly less than one base call (0.0001388889 credits): one request is accepted, and the next is refused.
        let _ = site.admin_json(&["account", "grant", &account.org_id, "--credits", "0.00013888"]);
        let _ = client.get(BASE).expect(200);
        assert_eq!(usage_events(&client), round);
        site.verify();
    }
    let client = server.client_with(&leaving.api_key);
    let _ = client.get(BASE).expect(200);
    let _ = site.admin_json(&["account", "adjust", &leaving.org_id, "--credits=-5", "--note", "test"]);
    let _ = client.get(BASE).expect(402);
    let _ = site.admin_json(&["account", "revoke", &leaving.org_id, "--yes"]);
    let _ = client.get(BASE).expect(401);
    let made_meanwhile = site.account("1");
    let _ = server.client_with(&made_meanwhile.api_key).get(BASE).expect(200);
    let copy = site.path("copy.db");
    let _ = site.admin_json(&["backup", copy.to_str().unwrap()]);
    let result = load.join();
    assert_eq!((result.responses(), result.errors), (result.with_status(200), 0), "{result:?}");
    let used = i64::try_from(result.with_status(200)).unwrap() * 1_000_000;
    assert_eq!(balance(&server.client_with(&busy.api_key)), amount(7_200_000_000_000 - used));
}

#[test]
fn command_line_and_server_show_the_same() {
    away_from_midnight();
    let (site, account, server) = Site::serving("1");
    let client = server.client_with(&account.api_key);
    for _ in 0..5 {
        let _ = client.get("/mpp/ethPrice").expect(200);
    }
    let (shown, served) =
        (site.admin_json(&["account", "show", &account.org_id]), client.get("/credits/balance").expect(200).json());
    for (name, value) in served.as_object().unwrap() {
        assert_eq!(&shown[name], value, "{name}");
    }
}
