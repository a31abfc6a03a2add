//! `metering admin payments` against a real node, next to a running server. Unclaimed payments are listed with
//! everything known about them, assigned to an account once, and cannot be used again.

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::client::Client;
use metering_tests::command::ProgramOutput;
use metering_tests::ports::free_address;
use metering_tests::site::IssuedAccount;
use serde_json::{Value, json};

use crate::support::shop::{Kind, STARTER, Shop, key_of};
use crate::support::wait::until;

impl Shop {
    /// Runs `metering admin payments COMMAND --config ... ARGS`.
    pub(crate) fn payments(&self, command: &str, args: &[&str]) -> ProgramOutput {
        let file = self.site.path("metering.toml");
        let first = ["payments", command, "--config", file.to_str().unwrap()];
        self.site.admin(&[&first, args].concat())
    }

    /// The payments that `payments list` prints.
    #[track_caller]
    pub(crate) fn listed(&self, args: &[&str]) -> Vec<Value> {
        let output = self.payments("list", &[args, &["--json"]].concat());
        assert_eq!(output.code, Some(0), "{output:?}");
        let document: Value = serde_json::from_str(&output.stdout).unwrap();
        document["payments"].as_array().unwrap().clone()
    }

    fn assign(&self, tx: &str, account: &str, args: &[&str]) -> ProgramOutput {
        let first = ["--chain", "devnet", "--tx", tx, "--account", account, "--json"];
        self.payments("assign", &[&first, args].concat())
    }

    /// Assigns a payment, and returns the printed document.
    #[track_caller]
    pub(crate) fn assigned(&self, tx: &str, account: &str, args: &[&str]) -> Value {
        let output = self.assign(tx, account, args);
        assert_eq!(output.code, Some(0), "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    }
}

/// An account that this wallet is linked to.
fn linked_account(shop: &Shop, sponsor: &Account) -> IssuedAccount {
    let account = shop.site.account("1");
    let hash = shop.pay(Kind::Token, sponsor, STARTER);
    let refused = shop.top_up(&account.api_key, Kind::Token, &hash, None).expect(403).json();
    let signature = shop.chain.wallet().sign_message(sponsor, refused["message"].as_str().unwrap());
    let _ = shop.top_up(&account.api_key, Kind::Token, &hash, Some(&signature)).expect(200);
    account
}

#[test]
fn unclaimed_payments_are_listed_with_details() {
    let Some(shop) = Shop::open() else { return };
    let wallet = shop.chain.wallet();
    let (customer, sponsor, new_customer, unlinked) =
        (shop.customer(), shop.customer(), shop.customer(), shop.customer());
    let own = shop.server.client_with(&shop.signed_up(Kind::Token, &customer)).get("/credits/balance").expect(200);
    let own = own.json()["org_id"].clone();
    let linked_account = linked_account(&shop, &sponsor);
    let quote = shop.quote(Kind::Native, &new_customer.address());
    let batcher = wallet.deploy_batcher();
    wallet.approve(&unlinked, &shop.token, &batcher, 2 * STARTER);
    let (to, contract) = (shop.recipient.address(), wallet.deploy_contract_wallet(&unlinked));
    wallet.mint(&shop.token, &contract, STARTER);
    let twice = wallet.transfer_twice(&unlinked, &batcher, &shop.token, &to, STARTER, STARTER);
    let quoted = shop.pay(Kind::Native, &new_customer, quote.units);
    let of_contract = wallet.transfer_by_contract(&unlinked, &contract, &shop.token, &to, STARTER);
    let pay = |kind, from, units| shop.pay(kind, from, units);
    let unknown = "unknown_payer";
    // transaction, status, payer, amount, accounts
    let table = [
        (quoted, "quoted", new_customer.address(), quote.units, vec![]),
        (pay(Kind::Token, &customer, STARTER), "known_payer", customer.address(), STARTER, vec![own]),
        (pay(Kind::Native, &sponsor, 5), "linked_wallet", sponsor.address(), 5, vec![json!(linked_account.org_id)]),
        (pay(Kind::Token, &unlinked, 1), unknown, unlinked.address(), 1, vec![]),
        (pay(Kind::Token, &unlinked, 70 * STARTER), unknown, unlinked.address(), 70 * STARTER, vec![]),
        (of_contract, unknown, contract, STARTER, vec![]),
    ];
    // None of these counts as received: another recipient, another token, no amount, reverted, a forged event.
    let other_token = wallet.deploy_token("DAI", 6);
    wallet.mint(&other_token, &unlinked.address(), STARTER);
    let forger = wallet.deploy_forger();
    let nothing = [
        shop.pay_to(Kind::Token, &unlinked, &customer.address(), STARTER),
        wallet.transfer(&unlinked, &other_token, &to, STARTER),
        shop.pay(Kind::Token, &unlinked, 0),
        wallet.transfer_unsimulated(&wallet.new_account(), &shop.token, &to, STARTER),
        wallet.forge(&unlinked, &forger, &unlinked.address(), &to, STARTER),
    ];
    let _ = shop.chain.mined(&nothing[4]);

    let listed = shop.listed(&[]);
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
    let all = shop.listed(&["--all", "--chain", "devnet", "--from-block", "0"]);
    let used = all.iter().filter(|payment| payment["status"] == "used").count();
    assert_eq!((all.len(), used), (listed.len() + 2, 2));
    let table = shop.payments("list", &[]);
    assert!(table.stdout.contains("quoted") && table.stdout.contains(&twice), "{table:?}");
    assert!(!table.stdout.contains("sqn_") && !table.stdout.contains(&quote.nonce), "{table:?}");
}

#[test]
fn unclaimed_payment_is_known_after_a_restart_until_it_is_assigned() {
    let Some(mut shop) = Shop::with(Chain::setup(), "1", "watch = true\nwatch_from_block = 0") else { return };
    let account = shop.site.account("1");
    let hash = shop.pay(Kind::Token, &shop.customer(), STARTER / 2);
    let _ = shop.chain.mined(&hash);
    shop.wait_until_scanned();
    // The next server looks for nothing.
    let address = free_address();
    shop.restart_with(&[("METERING_ADMIN_LISTEN", &address.to_string()), ("METERING_CHAINS__DEVNET__WATCH", "false")]);
    let viewer = shop.site.admin_json(&["operator", "create", "reader", "--role", "viewer"]);
    let viewer = Client::new(address).with_key(viewer["token"].as_str().unwrap());
    let attention = || viewer.get("/admin/attention").expect(200).json();
    let needs = attention();
    let found = &needs["unclaimed"][0];
    assert_eq!((&needs["unclaimed_count"], &found["payment"]["tx_hash"]), (&json!(1), &json!(hash)), "{needs}");
    assert_eq!(found["nearest_plan"]["difference"], "2.5", "{found}");
    let metrics = Client::new(address);
    let counted = || metrics.get("/metrics").expect(200).text().contains("\nmetering_unclaimed_payments 1\n");
    until("it is counted", counted);
    let _ = shop.assigned(&hash, &account.org_id, &["--credits", "5", "--reason", "sent half"]);
    assert_eq!(attention()["unclaimed"], json!([]));
}

#[test]
fn assigned_payment_is_credited_once() {
    let Some(mut shop) = Shop::open() else { return };
    let (unlinked, account, other) = (shop.customer(), shop.site.account("1"), shop.site.account("1"));
    let (full, short) = (shop.pay(Kind::Token, &unlinked, STARTER), shop.pay(Kind::Token, &unlinked, STARTER / 2));
    let _ = shop.chain.mined(&short);

    let given = shop.assigned(&full, &account.org_id, &["--plan", "starter", "--reason", "Ticket 17"]);
    assert_eq!((&given["amount_added"], &given["already_credited"]), (&json!(10.5), &json!(false)), "{given}");
    assert_eq!(shop.balance(&account.api_key), "11.5", "a running server sees it immediately");
    let too_little = shop.assign(&short, &account.org_id, &["--plan", "starter"]);
    assert_eq!(too_little.code, Some(1), "{too_little:?}");
    assert!(too_little.stderr.contains("2.5") && too_little.stderr.contains("--credits"), "{too_little:?}");
    let _ = shop.assigned(&short, &account.org_id, &["--credits", "5.25", "--reason", "sent half"]);
    assert_eq!(shop.balance(&account.api_key), "16.75");

    // The account's owner sees the source of the credits.
    let client = shop.server.client_with(&account.api_key);
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
    let again = shop.assigned(&full, &account.org_id, &["--plan", "coin"]);
    assert_eq!((&again["already_credited"], &again["amount_added"]), (&json!(true), &json!(0)), "{again}");
    let refused = shop.assign(&full, &other.org_id, &["--plan", "starter"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains(&account.org_id), "{refused:?}");
    let repeated = shop.top_up(&account.api_key, Kind::Token, &full, None).expect(200);
    assert_eq!(repeated.member("already_credited"), "true");
    assert_eq!(shop.top_up(&other.api_key, Kind::Token, &full, None).expect(409).error(), "tx_already_used");
    let quote = shop.quote(Kind::Token, &unlinked.address());
    assert_eq!(shop.claim(&quote, &full).expect(409).error(), "tx_already_used");
    // Assigning does not link the payer's wallet: it cannot rotate the key, and its next payment needs proof again.
    let challenge = json!({"address": unlinked.address()});
    let challenge = shop.client().post("/api-key/recover/challenge", &challenge).expect(404);
    assert_eq!(challenge.error(), "no_linked_wallet");
    let next = shop.pay(Kind::Token, &unlinked, STARTER);
    assert_eq!(shop.top_up(&account.api_key, Kind::Token, &next, None).expect(403).error(), "payer_proof_required");
    // A watcher that starts at the first block credits none of these payments.
    shop.restart_with(&[
        ("METERING_CHAINS__DEVNET__WATCH", "true"),
        ("METERING_CHAINS__DEVNET__WATCH_FROM_BLOCK", "0"),
    ]);
    shop.wait_until_scanned();
    assert_eq!((shop.balance(&account.api_key), shop.accounts()), ("16.75".to_owned(), 2));
    let listed = shop.listed(&[]);
    assert_eq!((listed.len(), &listed[0]["tx_hash"]), (1, &json!(next)), "{listed:?}");

    let [_, records] = shop.books();
    let used: Vec<_> = records["payments"].as_array().unwrap().iter().map(|record| &record["used_as"]).collect();
    assert_eq!(used, ["assigned", "assigned"]);
}

#[test]
fn quoted_payment_is_assigned_only_explicitly_and_once() {
    let Some(shop) = Shop::open() else { return };
    let account = shop.site.account("1");
    let paid: Vec<_> = (0..5)
        .map(|_| {
            let customer = shop.customer();
            let quote = shop.quote(Kind::Token, &customer.address());
            let hash = shop.pay(Kind::Token, &customer, quote.units);
            let _ = shop.chain.mined(&hash);
            (quote, hash)
        })
        .collect();
    let (quote, hash) = &paid[0];
    let refused = shop.assign(hash, &account.org_id, &["--plan", "starter"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("agent") && refused.stderr.contains("--despite-quote"), "{refused:?}");
    let _ = shop.assigned(hash, &account.org_id, &["--plan", "starter", "--despite-quote"]);
    assert_eq!(shop.claim(quote, hash).expect(409).error(), "tx_already_used");
    assert_eq!((shop.balance(&account.api_key), shop.accounts()), ("11.5".to_owned(), 1));

    // The operator and the customer at the same time: one of them gets it.
    let (mut assigned, mut claimed) = (1, 0);
    for (quote, hash) in &paid[1..] {
        let (output, response) = std::thread::scope(|scope| {
            let claiming = scope.spawn(|| shop.claim(quote, hash));
            let output = shop.assign(hash, &account.org_id, &["--plan", "starter", "--despite-quote"]);
            (output, claiming.join().unwrap())
        });
        match (output.code, response.status) {
            (Some(0), 409) => assigned += 1,
            (Some(5), 200) => {
                claimed += 1;
                assert_eq!(shop.balance(&key_of(&response)), "12.5");
            }
            _ => panic!("{output:?} {}", response.text()),
        }
    }
    assert_eq!(shop.accounts(), 1 + claimed);
    let expected = metering_core::Credits::from_atoms(7_200_000_000 + assigned * 75_600_000_000);
    until("the balance equals everything assigned", || shop.balance(&account.api_key) == expected.to_string());
}
