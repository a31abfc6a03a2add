use metering_core::AccountId;
use metering_core::access::KeyNumber;
use metering_core::usage::{ClientSource, UsageLine};
use proptest::prelude::*;

use super::*;

fn catalogue(routes: &[(&str, &str)]) -> Catalogue {
    let params = r#""params": [{"name": "s", "in": "query", "type": "integer", "required": true}]"#;
    let route = |(path, fields): &(&str, &str)| {
        let metered = if fields.contains("metered") { "" } else { r#""metered": true, "# };
        format!(r#"{{"path": "{path}", "method": "GET", {metered}{params}, {fields}}}"#)
    };
    let routes: Vec<_> = routes.iter().map(route).collect();
    Catalogue::from_json(&format!(r#"{{"market": "M", "version": 1, "endpoints": [{}]}}"#, routes.join(","))).unwrap()
}

/// A total with the new prices, if it is the first of its month.
fn of(repricing: &Repricing<'_>, total: &DailyTotal) -> Option<Repriced> {
    repricing.of(total, &mut MonthCounts::default())
}

fn total(route: &str, calls: u64, atoms: i64) -> DailyTotal {
    DailyTotal {
        account: "org_00000000000000000000".parse::<AccountId>().unwrap(),
        day: Day::from_unix_days(20_000),
        line: UsageLine { route_template: route.into(), http_method: "GET".into(), source: ClientSource::Cli },
        key: KeyNumber::FIRST,
        calls,
        credits_used: Credits::from_atoms(atoms),
    }
}

fn lookback(weight: u32, multipliers: [u32; 2]) -> String {
    let [first, overflow] = multipliers;
    format!(
        r#""credit_weight": {weight}, "billing_modifier": {{"type": "lookback_multiplier", "param": "s",
           "tiers": [{{"max_seconds": 600, "multiplier": {first}}}], "overflow_multiplier": {overflow}}}"#
    )
}

#[test]
fn each_kind_of_price_is_repriced_as_far_as_it_can_be_known() {
    use Repriced::{Estimate, Exact, Removed, Unknown};
    const BASE: i64 = 1_000_000;
    let credits = |base_calls: i64| Credits::from_atoms(base_calls * BASE);
    let (two, three) = (lookback(2, [1, 8]), lookback(3, [1, 8]));
    let usage = |max: &str, unit: &str| {
        format!(r#""price": {{"max": "{max}", "units": {{"t": "{unit}"}}, "report": {{"json": {{"t": "/t"}}}}}}"#)
    };
    let (cheap, dear, other) = (usage("1", "0.1"), usage("2", "0.2"), usage("1", "0.2"));
    let old = catalogue(&[
        ("/fixed", r#""credit_weight": 2"#),
        ("/free", r#""price": "0""#),
        ("/open", r#""metered": false"#),
        ("/back", &two),
        ("/chat", &cheap),
        ("/talk", &cheap),
        ("/same", &cheap),
        ("/gone", r#""credit_weight": 2"#),
        ("/stream", r#""billing_modifier": {"type": "stream_session", "credits_per_connection": 1}"#),
    ]);
    let new = catalogue(&[
        ("/fixed", r#""credit_weight": 5"#),
        ("/free", r#""credit_weight": 1"#),
        ("/open", r#""credit_weight": 1"#),
        ("/back", &three),
        ("/chat", &dear),
        ("/talk", &other),
        ("/same", &cheap),
        ("/closed", r#""metered": false"#),
        ("/stream", r#""billing_modifier": {"type": "stream_session", "credits_per_connection": 2}"#),
    ]);
    let with_old = Repricing::new(Some(&old), &new);
    let without = Repricing::new(None, &new);
    // route, calls, atoms used, with the old catalogue, without it
    let table = [
        ("/fixed", 3, 6 * BASE, Exact(credits(15)), Estimate(credits(15))),
        // One of the three was refunded.
        ("/fixed", 3, 4 * BASE, Exact(credits(10)), Estimate(credits(15))),
        ("/fixed", 3, 0, Exact(credits(0)), Estimate(credits(15))),
        // Charged at a price before the old one.
        ("/fixed", 3, 9 * BASE, Estimate(credits(15)), Estimate(credits(15))),
        ("/fixed", 3, 8 * BASE, Estimate(credits(15)), Estimate(credits(15))),
        ("/free", 7, 0, Estimate(credits(7)), Estimate(credits(7))),
        ("/open", 7, 0, Estimate(credits(7)), Estimate(credits(7))),
        ("/closed", 7, 7, Exact(credits(0)), Exact(credits(0))),
        ("/back", 2, 18 * BASE, Exact(credits(27)), Unknown),
        ("/back", 2, 7, Unknown, Unknown),
        ("/chat", 2, 7, Estimate(Credits::from_atoms(14)), Unknown),
        ("/talk", 2, 7, Unknown, Unknown),
        ("/same", 2, 7, Exact(Credits::from_atoms(7)), Unknown),
        ("/gone", 2, 4 * BASE, Removed, Removed),
        ("/stream", 2, 2 * 7_200 * BASE, Exact(credits(4 * 7_200)), Estimate(credits(4 * 7_200))),
        ("(other)", 2, 7, Unknown, Removed),
        ("/fixed", 1, -1, Unknown, Unknown),
    ];
    for (route, calls, atoms, known, unknown) in table {
        let total = total(route, calls, atoms);
        assert_eq!(
            (of(&with_old, &total), of(&without, &total)),
            (Some(known), Some(unknown)),
            "{route} {calls} {atoms}"
        );
    }
    assert_eq!(of(&with_old, &total("/free", u64::MAX, 0)), None, "out of range");
}

#[test]
fn account_runs_out_on_the_first_day_with_usage_that_ends_without_credits() {
    let credits = |whole: i64| Credits::from_whole(whole).unwrap();
    let day = |number: i64, added: i64, calls: u64, before: i64, after: i64| {
        let flow = AccountDay { added: credits(added), calls, before: credits(before), after: credits(after) };
        (Day::from_unix_days(number), flow)
    };
    let days = [day(1, 0, 2, 2, 4), day(3, 5, 0, 0, 0), day(4, 0, 1, 1, 6), day(6, 9, 1, 1, 1)];
    // opening balance, its day in fact, its day with the new prices, the balances at the end
    let table = [
        (10, None, None, (20, 13)),
        (5, None, Some(4), (15, 8)),
        (4, None, Some(1), (14, 7)),
        (2, Some(1), Some(1), (12, 5)),
    ];
    for (opening, before, after, (end_before, end_after)) in table {
        let replayed = |cost: fn(&AccountDay) -> Credits| replay(credits(opening), days, cost).unwrap();
        let ended =
            |ran_out: Option<i64>, end| Replayed { ran_out: ran_out.map(Day::from_unix_days), balance: credits(end) };
        assert_eq!(replayed(|day| day.before), ended(before, end_before), "{opening}");
        assert_eq!(replayed(|day| day.after), ended(after, end_after), "{opening}");
    }
    // An account without credits and requests is not refused.
    let idle = [day(1, 0, 0, 0, 0)];
    assert_eq!(replay(Credits::ZERO, idle, |day| day.after).unwrap().ran_out, None);
    assert_eq!(replay(Credits::MAX, [day(1, 1, 0, 0, 0)], |day| day.after), None, "out of range");
}

proptest! {
    #[test]
    fn catalogue_that_charged_makes_no_difference_and_doubled_prices_double(
        weight in 1_u32..500,
        delivered in 0_u64..10_000,
        refunded in 0_u64..10_000,
        multipliers in (1_u32..1_000, 1_u32..1_000),
        requests in (0_i64..10_000, 0_i64..10_000),
    ) {
        let (first, overflow) = multipliers;
        let fixed = |weight: u32| format!(r#""credit_weight": {weight}"#);
        let [once, twice] = [weight, weight * 2].map(|weight| {
            catalogue(&[("/fixed", &fixed(weight)), ("/back", &lookback(weight, [first, overflow]))])
        });
        let base = i64::from(weight) * Credits::BASE_CALL.atoms();
        let used = [
            ("/fixed", delivered + refunded, base * i64::try_from(delivered).unwrap()),
            ("/back", 1, base * (requests.0 * i64::from(first) + requests.1 * i64::from(overflow))),
        ];
        for (route, calls, atoms) in used {
            let total = total(route, calls, atoms);
            let same = of(&Repricing::new(Some(&once), &once), &total);
            prop_assert_eq!(same, Some(Repriced::Exact(total.credits_used)));
            let doubled = of(&Repricing::new(Some(&once), &twice), &total);
            prop_assert_eq!(doubled, Some(Repriced::Exact(Credits::from_atoms(2 * atoms))));
            let back = of(&Repricing::new(Some(&twice), &once), &super::tests::total(route, calls, 2 * atoms));
            prop_assert_eq!(back, Some(Repriced::Exact(total.credits_used)));
        }
    }
}

#[test]
fn volume_tiers_continue_through_the_month_and_begin_again() {
    let tiers = r#""price": [{"up_to": 10, "credits": "0"}, {"credits": "0.00000002"}]"#;
    let before = catalogue(&[("/a", r#""price": "0.00000001""#), ("/b", r#""price": "0.00000001""#)]);
    let after = catalogue(&[("/a", tiers), ("/b", tiers)]);
    let repricing = Repricing::new(Some(&before), &after);
    assert!(repricing.depends_on_month());
    assert!(!Repricing::new(Some(&after), &before).depends_on_month());
    // day, route, calls, how many were not refunded, atoms with tiers
    let table = [
        ("2026-10-29", "/a", 7, 6, 0),
        ("2026-10-30", "/a", 8, 8, 4 * 144),
        ("2026-10-30", "/b", 5, 5, 0),
        ("2026-10-31", "/a", 1, 0, 0),
        ("2026-10-31", "/a", 1, 1, 144),
        ("2026-11-01", "/a", 12, 12, 2 * 144),
    ];
    let on =
        |day: &str, route, calls, paid: i64| DailyTotal { day: day.parse().unwrap(), ..total(route, calls, paid * 72) };
    let totals = table.map(|(day, route, calls, paid, _)| on(day, route, calls, paid));
    let mut month = MonthCounts::default();
    for (total, (day, route, .., atoms)) in totals.iter().zip(table) {
        let expected = Repriced::Estimate(Credits::from_atoms(atoms));
        assert_eq!(repricing.of(total, &mut month), Some(expected), "{route} on {day}");
    }
    // With unchanged tiers, the amount stays.
    let same = Repricing::new(Some(&after), &after);
    assert_eq!(of(&same, &on("2026-11-01", "/a", 12, 3)), Some(Repriced::Exact(Credits::from_atoms(216))));
    assert_eq!(of(&Repricing::new(None, &after), &total("/a", u64::MAX, 0)), None, "out of range");
}

#[test]
fn usage_of_a_model_is_repriced_by_that_models_price() {
    let catalogue = |max: &str, price: &str| {
        let catalogue = Catalogue::from_json(&format!(
            r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/chat", "method": "POST", "metered": true,
                "price": {{"max": "1", "model": {{"json": "/model"}}, "report": {{"json": {{"t": "/t"}}}}, "models": {{
                    "small": {{"max": "{max}", "units": {{"t": "{price}"}}}}, "large*": {{"units": {{"t": "0.3"}}}}}}}}}}]}}"#
        ));
        catalogue.unwrap_or_else(|error| panic!("{error}"))
    };
    let (old, new) = (catalogue("1", "0.1"), catalogue("2", "0.2"));
    let repricing = Repricing::new(Some(&old), &new);
    let of_model = |model: Option<&str>| {
        let total = total("/chat", 3, 1_000);
        let line = UsageLine { http_method: "POST".into(), ..total.line.clone() };
        let line = model.map_or(line.clone(), |model| line.of_model(model));
        of(&repricing, &DailyTotal { line, ..total })
    };
    assert_eq!(of_model(Some("small")), Some(Repriced::Estimate(Credits::from_atoms(2_000))));
    assert_eq!(of_model(Some("large*")), Some(Repriced::Exact(Credits::from_atoms(1_000))));
    assert_eq!(of_model(None), Some(Repriced::Unknown), "no model was recorded");
}
