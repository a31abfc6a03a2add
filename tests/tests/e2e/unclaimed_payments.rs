//! `metering admin payments` against a real node, next to a running server. Unclaimed payments are listed with
//! everything known about them, assigned to an account once, and cannot be used again.

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::site::{IssuedAccount, Ran};
use serde_json::{Value, json};

use crate::market::{Kind, Market, STARTER, key_of};
use crate::market_settings::until;

impl Market {
    /// Runs `metering admin payments COMMAND --config ... ARGS`.
    pub(crate) fn payments(&self, command: &str, args: &[&str]) -> Ran {
        let file = self.site.path("metering.toml");
        let first = ["payments", command, "--config", file.to_str().unwrap()];
        self.site.admin(&[&first, args].concat())
    }

    /// The payments that `payments list` prints.
    #[track_caller]
    pub(crate) fn listed(&self, args: &[&str]) -> Vec<Value> {
        let ran = self.payments("list", &[args, &["--json"]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        document["payments"].as_array().unwrap().clone()
    }

    fn assign(&self, tx: &str, account: &str, args: &[&str]) -> Ran {
        let first = ["--chain", "devnet", "--tx", tx, "--account", account, "--json"];
        self.payments("assign", &[&first, args].concat())
    }

    /// Assigns a payment, and returns the printed document.
    #[track_caller]
    pub(crate) fn assigned(&self, tx: &str, account: &str, args: &[&str]) -> Value {
        let ran = self.assign(tx, account, args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

/// An account that this wallet is linked to.
fn linked(market: &Market, sponsor: &Account) -> IssuedAccount {
    let account = market.site.account("1");
    let hash = market.pay(Kind::Token, sponsor, STARTER);
    let refused = market.top_up(&account.api_key, Kind::Token, &hash, None).expect(403).json();
    let signature = market.chain.wallet().sign_message(sponsor, refused["message"].as_str().unwrap());
    let _ = market.top_up(&account.api_key, Kind::Token, &hash, Some(&signature)).expect(200);
    account
}

#[test]
fn what_arrived_is_listed_with_what_is_known_of_it() {
    let Some(market) = Market::open() else { return };
    let wallet = market.chain.wallet();
    let (customer, sponsor, newcomer, stranger) =
        (market.customer(), market.customer(), market.customer(), market.customer());
    let own = market.server.client_with(&market.signed_up(Kind::Token, &customer)).get("/credits/balance").expect(200);
    let own = own.json()["org_id"].clone();
    let linked = linked(&market, &sponsor);
    let quote = market.quote(Kind::Native, &newcomer.address());
    let batcher = wallet.deploy_batcher();
    wallet.approve(&stranger, &market.token, &batcher, 2 * STARTER);
    let (to, contract) = (market.recipient.address(), wallet.deploy_contract_wallet(&stranger));
    wallet.mint(&market.token, &contract, STARTER);
    let twice = wallet.transfer_twice(&stranger, &batcher, &market.token, &to, STARTER, STARTER);
    let quoted = market.pay(Kind::Native, &newcomer, quote.units);
    let of_contract = wallet.transfer_by_contract(&stranger, &contract, &market.token, &to, STARTER);
    let pay = |kind, from, units| market.pay(kind, from, units);
    let unknown = "unknown_payer";
    // transaction, status, payer, amount, accounts
    let table = [
        (quoted, "quoted", newcomer.address(), quote.units, vec![]),
        (pay(Kind::Token, &customer, STARTER), "known_payer", customer.address(), STARTER, vec![own]),
        (pay(Kind::Native, &sponsor, 5), "linked_wallet", sponsor.address(), 5, vec![json!(linked.org_id)]),
        (pay(Kind::Token, &stranger, 1), unknown, stranger.address(), 1, vec![]),
        (pay(Kind::Token, &stranger, 70 * STARTER), unknown, stranger.address(), 70 * STARTER, vec![]),
        (of_contract, unknown, contract, STARTER, vec![]),
    ];
    // None of these counts as received: another recipient, another token, no amount, reverted, a forged event.
    let other_token = wallet.deploy_token("DAI", 6);
    wallet.mint(&other_token, &stranger.address(), STARTER);
    let forger = wallet.deploy_forger();
    let nothing = [
        market.pay_to(Kind::Token, &stranger, &customer.address(), STARTER),
        wallet.transfer(&stranger, &other_token, &to, STARTER),
        market.pay(Kind::Token, &stranger, 0),
        wallet.transfer_untried(&wallet.new_account(), &market.token, &to, STARTER),
        wallet.forge(&stranger, &forger, &stranger.address(), &to, STARTER),
    ];
    let _ = market.chain.mined(&nothing[4]);

    let listed = market.listed(&[]);
    let find = |hash: &str| listed.iter().find(|payment| payment["tx_hash"] == hash);
    for (hash, status, payer, amount, accounts) in &table {
        let found = find(hash).unwrap_or_else(|| panic!("no payment from {payer} ({status}) in {listed:?}"));
        assert_eq!((&found["status"], &found["payer_address"]), (&json!(status), &json!(payer)), "{found}");
        assert_eq!((&found["amount_atomic"], &found["org_ids"]), (&json!(amount.to_string()), &json!(accounts)));
        assert_eq!((&found["chain"], &found["recipient"]), (&json!("devnet"), &json!(to)));
    }
    assert_eq!(find(&table[0].0).unwrap()["quote"], json!({"agent_name": "agent", "plan_id": "coin"}));
    let unclear = find(&twice).unwrap();
    assert_eq!((&unclear["status"], &unclear["amount_atomic"]), (&json!("unclear"), &Value::Null));
    assert_eq!(listed.len(), table.len() + 1, "{listed:?}");
    assert!(nothing.iter().all(|hash| find(hash).is_none()), "{listed:?}");
    // With `--all`, credited payments are listed too: the signup's and the sponsor's.
    let all = market.listed(&["--all", "--chain", "devnet", "--from-block", "0"]);
    let used = all.iter().filter(|payment| payment["status"] == "used").count();
    assert_eq!((all.len(), used), (listed.len() + 2, 2));
    let table = market.payments("list", &[]);
    assert!(table.stdout.contains("quoted") && table.stdout.contains(&twice), "{table:?}");
    assert!(!table.stdout.contains("sqn_") && !table.stdout.contains(&quote.nonce), "{table:?}");
}

#[test]
fn what_is_assigned_counts_once_whoever_asks_for_it_afterwards() {
    let Some(mut market) = Market::open() else { return };
    let (stranger, account, other) = (market.customer(), market.site.account("1"), market.site.account("1"));
    let (full, short) = (market.pay(Kind::Token, &stranger, STARTER), market.pay(Kind::Token, &stranger, STARTER / 2));
    let _ = market.chain.mined(&short);

    let given = market.assigned(&full, &account.org_id, &["--plan", "starter", "--reason", "Ticket 17"]);
    assert_eq!((&given["amount_added"], &given["already_credited"]), (&json!(10.5), &json!(false)), "{given}");
    assert_eq!(market.balance(&account.api_key), "11.5", "a running server sees it immediately");
    let too_little = market.assign(&short, &account.org_id, &["--plan", "starter"]);
    assert_eq!(too_little.code, Some(1), "{too_little:?}");
    assert!(too_little.stderr.contains("2.5") && too_little.stderr.contains("--credits"), "{too_little:?}");
    let _ = market.assigned(&short, &account.org_id, &["--credits", "5.25", "--reason", "sent half"]);
    assert_eq!(market.balance(&account.api_key), "16.75");

    // The account's owner sees the source of the credits.
    let client = market.server.client_with(&account.api_key);
    let activity = client.get("/credits/usage").expect(200).json();
    let activity = activity["transactions"].as_array().unwrap();
    for (hash, amount, plan, reason) in
        [(&full, json!(10.5), json!("starter"), "Ticket 17"), (&short, json!(5.25), Value::Null, "sent half")]
    {
        let found = activity.iter().find(|entry| entry["tx_hash"] == **hash).unwrap();
        assert_eq!((&found["type"], &found["amount"]), (&json!("purchase_topup"), &amount), "{found}");
        assert_eq!((&found["plan_id"], &found["chain_id"]), (&plan, &json!(31337)), "{found}");
        assert!(found["description"].as_str().unwrap().contains(reason), "{found}");
    }
    assert_eq!(client.get("/credits/balance").expect(200).member("total_credits_purchased"), "15.75");

    // Assigning it again changes nothing, and no other account can get it.
    let again = market.assigned(&full, &account.org_id, &["--plan", "coin"]);
    assert_eq!((&again["already_credited"], &again["amount_added"]), (&json!(true), &json!(0)), "{again}");
    let refused = market.assign(&full, &other.org_id, &["--plan", "starter"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains(&account.org_id), "{refused:?}");
    let repeated = market.top_up(&account.api_key, Kind::Token, &full, None).expect(200);
    assert_eq!(repeated.member("already_credited"), "true");
    assert_eq!(market.top_up(&other.api_key, Kind::Token, &full, None).expect(409).error(), "tx_already_used");
    let quote = market.quote(Kind::Token, &stranger.address());
    assert_eq!(market.claim(&quote, &full).expect(409).error(), "tx_already_used");
    // Assigning does not link the payer's wallet: it cannot rotate the key, and its next payment needs proof again.
    let challenge = json!({"address": stranger.address()});
    let challenge = market.client().post("/api-key/recover/challenge", &challenge).expect(404);
    assert_eq!(challenge.error(), "no_linked_wallet");
    let next = market.pay(Kind::Token, &stranger, STARTER);
    assert_eq!(market.top_up(&account.api_key, Kind::Token, &next, None).expect(403).error(), "payer_proof_required");
    // A watcher that starts at the first block credits none of these payments.
    market.reopen(&[("METERING_CHAINS__DEVNET__WATCH", "true"), ("METERING_CHAINS__DEVNET__WATCH_FROM_BLOCK", "0")]);
    market.watched();
    assert_eq!((market.balance(&account.api_key), market.accounts()), ("16.75".to_owned(), 2));
    let listed = market.listed(&[]);
    assert_eq!((listed.len(), &listed[0]["tx_hash"]), (1, &json!(next)), "{listed:?}");

    let [_, records] = market.books();
    let used: Vec<_> = records["payments"].as_array().unwrap().iter().map(|record| &record["used_as"]).collect();
    assert_eq!(used, ["assigned", "assigned"]);
    market.site.verify();
}

/// Case, transaction, account, value options, exit code, part of the message.
type Attempt<'a> = (&'a str, &'a str, &'a str, &'a [&'a str], i32, &'a str);

#[test]
fn what_cannot_be_assigned_is_refused_with_its_reason_and_changes_nothing() {
    let Some(market) = Market::with(Chain::setup().manual_mining(), "2", "") else { return };
    let wallet = market.chain.wallet();
    let (stranger, account, revoked) = (market.customer(), market.site.account("1"), market.site.account("1"));
    let _ = market.site.admin_json(&["account", "revoke", &revoked.org_id, "--yes"]);
    let batcher = wallet.deploy_batcher();
    wallet.approve(&stranger, &market.token, &batcher, 2 * STARTER);
    let to = market.recipient.address();
    let pays = market.pay(Kind::Token, &stranger, STARTER);
    let twice = wallet.transfer_twice(&stranger, &batcher, &market.token, &to, STARTER, STARTER);
    let reverted = wallet.transfer_untried(&wallet.new_account(), &market.token, &to, STARTER);
    let elsewhere = market.pay_to(Kind::Token, &stranger, &stranger.address(), STARTER);
    let data = wallet.send_native_with_data(&stranger, &to, Kind::Native.price(), "0x00");
    market.chain.mine(2);
    let shallow = market.pay(Kind::Token, &stranger, STARTER);
    market.chain.mine(1);
    let waiting = market.pay(Kind::Token, &stranger, STARTER);
    let unknown = format!("0x{}", "12".repeat(32));
    let (own, nobody) = (account.org_id.as_str(), format!("{}x", &account.org_id[..account.org_id.len() - 1]));
    let before = market.books();
    let plan: &[&str] = &["--plan", "starter"];
    let table: [Attempt<'_>; 16] = [
        ("no such account", &pays, &nobody, plan, 4, &nobody),
        ("a revoked account", &pays, &revoked.org_id, plan, 5, "revoked"),
        ("no such plan", &pays, own, &["--plan", "gold"], 4, "gold"),
        ("a plan in another token", &pays, own, &["--plan", "coin"], 1, "does not pay plan coin"),
        ("no such transaction", &unknown, own, plan, 4, &unknown),
        ("two transfers, a plan", &twice, own, plan, 1, "2 transfers"),
        ("two transfers, credits", &twice, own, &["--credits", "1"], 1, "account grant"),
        ("reverted", &reverted, own, plan, 1, "reverted"),
        ("reverted, credits", &reverted, own, &["--credits", "1"], 1, "reverted"),
        ("elsewhere", &elsewhere, own, plan, 1, "no transfer"),
        ("elsewhere, credits", &elsewhere, own, &["--credits", "1"], 1, "no transfer"),
        ("call data", &data, own, &["--credits", "1"], 1, "call data"),
        ("too few confirmations", &shallow, own, plan, 1, "1 of 2 confirmations"),
        ("in no block", &waiting, own, &["--credits", "1"], 1, "0 of 2 confirmations"),
        ("zero credits", &pays, own, &["--credits", "0"], 2, "above zero"),
        ("plan and credits", &pays, own, &["--credits", "1", "--plan", "starter"], 2, "cannot be used with"),
    ];
    for (what, hash, account, worth, code, said) in table {
        let ran = market.assign(hash, account, worth);
        assert_eq!(ran.code, Some(code), "{what}: {ran:?}");
        assert!(ran.stderr.contains(said), "{what}: {ran:?}");
    }
    let unknown_chain = market.payments("assign", &["--chain", "base", "--tx", &pays, "--account", own, "--plan", "p"]);
    assert_eq!(unknown_chain.code, Some(4), "{unknown_chain:?}");
    assert_eq!(market.books(), before);
    // With enough confirmations, it is listed and can be assigned.
    assert!(market.listed(&[]).iter().all(|payment| payment["tx_hash"] != *shallow));
    market.chain.mine(1);
    assert!(market.listed(&[]).iter().any(|payment| payment["tx_hash"] == *shallow));
    let _ = market.assigned(&shallow, own, plan);
    market.site.verify();
}

#[test]
fn a_payment_that_a_quote_waits_for_is_assigned_on_purpose_only_and_never_twice() {
    let Some(market) = Market::open() else { return };
    let account = market.site.account("1");
    let paid: Vec<_> = (0..5)
        .map(|_| {
            let customer = market.customer();
            let quote = market.quote(Kind::Token, &customer.address());
            let hash = market.pay(Kind::Token, &customer, quote.units);
            let _ = market.chain.mined(&hash);
            (quote, hash)
        })
        .collect();
    let (quote, hash) = &paid[0];
    let refused = market.assign(hash, &account.org_id, &["--plan", "starter"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("agent") && refused.stderr.contains("--despite-quote"), "{refused:?}");
    let _ = market.assigned(hash, &account.org_id, &["--plan", "starter", "--despite-quote"]);
    assert_eq!(market.claim(quote, hash).expect(409).error(), "tx_already_used");
    assert_eq!((market.balance(&account.api_key), market.accounts()), ("11.5".to_owned(), 1));

    // The operator and the customer at the same time: one of them gets it.
    let (mut assigned, mut claimed) = (1, 0);
    for (quote, hash) in &paid[1..] {
        let (ran, answer) = std::thread::scope(|scope| {
            let claiming = scope.spawn(|| market.claim(quote, hash));
            let ran = market.assign(hash, &account.org_id, &["--plan", "starter", "--despite-quote"]);
            (ran, claiming.join().unwrap())
        });
        match (ran.code, answer.status) {
            (Some(0), 409) => assigned += 1,
            (Some(5), 200) => {
                claimed += 1;
                assert_eq!(market.balance(&key_of(&answer)), "12.5");
            }
            _ => panic!("{ran:?} {}", answer.text()),
        }
    }
    assert_eq!(market.accounts(), 1 + claimed);
    let expected = metering_core::Credits::from_atoms(7_200_000_000 + assigned * 75_600_000_000);
    until("the balance equals everything assigned", || market.balance(&account.api_key) == expected.to_string());
    market.site.verify();
}
