//! The theft game: honest customers and a thief, who sees every transaction and can call every endpoint, move in random
//! order. In the end, no customer's money is in an account that the thief can spend from, the thief has no more credits
//! than it paid for, and every customer who paid can use what they bought.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use metering_core::wire::{ChallengeRequest, QuoteResponse};
use metering_core::{
    AccountId, Address, ApiKey, Clock, Credits, PaymentSettings, PaymentStore, Plan, QuoteNonce, QuoteState, Store,
    TxHash, TxRef,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::scene::{MAIN, RECIPIENT, SIDE, Scene, USDC, key_of, plan};
use super::wallet::Wallet;

/// The price of `starter` here, in units of a token with three decimals. There are only nine tags, so that amounts of
/// different payers collide as often as possible.
const PRICE: u128 = 5_000;
const CUSTOMERS: [u8; 3] = [1, 2, 3];
const THIEFS_WALLETS: [u8; 2] = [11, 12];
/// A public contract, such as a router or an exchange, that customers and the thief buy through.
const ROUTER: u8 = 21;

/// A move in the game. Numbers select wallets, quotes, transactions and keys, modulo how many exist.
#[derive(Debug, Clone)]
enum Move {
    CustomerQuotes {
        customer: usize,
        plan: bool,
        chain: bool,
    },
    CustomerPays {
        quote: usize,
    },
    CustomerClaims {
        quote: usize,
    },
    CustomerPaysPrice {
        customer: usize,
        chain: bool,
    },
    ThiefQuotesFor {
        wallet: usize,
        plan: bool,
        chain: bool,
    },
    ThiefPays {
        wallet: usize,
        amount_of: usize,
        chain: bool,
    },
    /// The thief claims each of its quotes with every transaction.
    ThiefClaims,
    ThiefTopsUp {
        key: usize,
        tx: usize,
        signer: Option<usize>,
    },
    ThiefRotates {
        wallet: usize,
        signer: usize,
    },
    ThiefAnswersForeignChallenge {
        wallet: usize,
        signer: usize,
    },
    Watch {
        chain: bool,
    },
    Pass {
        hours: u8,
    },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let n = 0_usize..1_000;
    let one = prop_oneof![
        3 => (n.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(customer, plan, chain)| Move::CustomerQuotes { customer, plan, chain }),
        3 => n.clone().prop_map(|quote| Move::CustomerPays { quote }),
        1 => n.clone().prop_map(|quote| Move::CustomerClaims { quote }),
        1 => (n.clone(), any::<bool>()).prop_map(|(customer, chain)| Move::CustomerPaysPrice { customer, chain }),
        3 => (n.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(wallet, plan, chain)| Move::ThiefQuotesFor { wallet, plan, chain }),
        2 => (n.clone(), n.clone(), any::<bool>())
            .prop_map(|(wallet, amount_of, chain)| Move::ThiefPays { wallet, amount_of, chain }),
        4 => Just(Move::ThiefClaims),
        5 => (n.clone(), n.clone(), proptest::option::of(n.clone()))
            .prop_map(|(key, tx, signer)| Move::ThiefTopsUp { key, tx, signer }),
        2 => (n.clone(), n.clone()).prop_map(|(wallet, signer)| Move::ThiefRotates { wallet, signer }),
        1 => (n.clone(), n).prop_map(|(wallet, signer)| Move::ThiefAnswersForeignChallenge { wallet, signer }),
        1 => any::<bool>().prop_map(|chain| Move::Watch { chain }),
        1 => (0_u8..60).prop_map(|hours| Move::Pass { hours }),
    ];
    vec(one, 1..60)
}

fn pick<T>(items: &[T], number: usize) -> Option<&T> {
    items.get(number.checked_rem(items.len())?)
}

fn chain_of(main: bool) -> u64 {
    if main { MAIN } else { SIDE }
}

fn plan_of(starter: bool) -> &'static str {
    if starter { "starter" } else { "coin" }
}

/// The credits of the plan `starter`.
fn starter() -> Credits {
    "10.5".parse().unwrap()
}

/// A customer's quote and the payment for it.
#[derive(Debug)]
struct BoughtQuote {
    wallet: Wallet,
    quote: QuoteResponse,
    paid: Option<TxHash>,
}

#[derive(Debug)]
struct Simulation {
    scene: Scene,
    customers: Vec<Wallet>,
    wallets: Vec<Wallet>,
    bought: Vec<BoughtQuote>,
    customer_keys: Vec<ApiKey>,
    thief_quotes: Vec<QuoteResponse>,
    thief_keys: Vec<ApiKey>,
    /// The most credits that the thief's payments can be worth.
    worth: i128,
    /// The thief's payments, some of them through the router.
    thief_payments: HashSet<(u64, TxHash)>,
}

impl Simulation {
    async fn new(require_payer_proof: bool) -> Self {
        let settings = PaymentSettings {
            claim_wait: Duration::ZERO,
            claim_poll: Duration::ZERO,
            signup_bonus: Credits::ZERO,
            require_payer_proof,
            ..PaymentSettings::default()
        };
        let scene = Scene::with(settings).await;
        for chain_id in [MAIN, SIDE] {
            scene.chain(chain_id).deploy_token(USDC, 3);
            let coarse = Plan { token_decimals: 3, ..plan("starter", chain_id) };
            scene.store.put_plans(vec![coarse]).await.unwrap();
            scene.chain(chain_id).deploy_contract(Wallet::of(ROUTER).address);
        }
        let mut thief_keys = Vec::new();
        for _ in 0..2 {
            thief_keys.push(scene.account_without_wallet().await.0);
        }
        Self {
            scene,
            customers: CUSTOMERS.into_iter().chain([ROUTER]).map(Wallet::of).collect(),
            wallets: THIEFS_WALLETS.map(Wallet::of).to_vec(),
            bought: Vec::new(),
            customer_keys: Vec::new(),
            thief_quotes: Vec::new(),
            thief_keys,
            worth: 0,
            thief_payments: HashSet::new(),
        }
    }

    fn transactions(&self) -> Vec<(u64, TxHash)> {
        let of = |chain_id| self.scene.chain(chain_id).all().into_iter().map(move |(hash, _)| (chain_id, hash));
        of(MAIN).chain(of(SIDE)).collect()
    }

    /// Any wallet's address: the thief may name any of them.
    fn address(&self, number: usize) -> Wallet {
        let all: Vec<_> = self.customers.iter().chain(&self.wallets).cloned().collect();
        all[number % all.len()].clone()
    }

    async fn play(&mut self, next: Move) {
        match next {
            Move::CustomerQuotes { customer, plan, chain } => {
                let Some(wallet) = pick(&self.customers, customer).cloned() else { return };
                if let Ok(quote) = self.scene.quote(&wallet, plan_of(plan), chain_of(chain)).await {
                    self.bought.push(BoughtQuote { wallet, quote, paid: None });
                }
            }
            Move::CustomerPays { quote } => {
                let count = self.bought.len();
                let Some(number) = quote.checked_rem(count) else { return };
                let bought = &mut self.bought[number];
                // Honest customers pay in time. RFC 3339 times in UTC sort chronologically.
                let in_time = bought.quote.expires_at > self.scene.clock.now().to_string();
                if bought.paid.is_none() && in_time {
                    bought.paid = Some(self.scene.pay(&bought.wallet, &bought.quote));
                }
            }
            Move::CustomerClaims { quote } => {
                let Some(BoughtQuote { quote, paid: Some(paid), .. }) = pick(&self.bought, quote) else { return };
                if let Ok(response) = self.scene.claim(&quote.signup_nonce, *paid).await {
                    self.customer_keys.push(key_of(&response.api_key));
                }
            }
            Move::CustomerPaysPrice { customer, chain } => {
                if let Some(wallet) = pick(&self.customers, customer) {
                    let chain = self.scene.chain(chain_of(chain));
                    chain.pay(USDC, wallet.address, RECIPIENT, PRICE);
                    chain.grow(10);
                }
            }
            Move::Watch { chain } => {
                self.scene.service.watch(chain_of(chain), Some(0)).await.unwrap();
            }
            Move::Pass { hours } => self.scene.clock.pass(Duration::from_secs(u64::from(hours) * 3_600)),
            thief_accounts => self.steal(thief_accounts).await,
        }
    }

    async fn steal(&mut self, next: Move) {
        match next {
            Move::ThiefQuotesFor { wallet, plan, chain } => {
                let wallet = self.address(wallet);
                self.thief_quotes.extend(self.scene.quote(&wallet, plan_of(plan), chain_of(chain)).await.ok());
            }
            Move::ThiefPays { wallet, amount_of, chain } => self.thief_pays(wallet, amount_of, chain),
            Move::ThiefClaims => {
                let transactions = self.transactions();
                for quote in &self.thief_quotes {
                    for (_, tx) in transactions.iter().filter(|(chain_id, _)| *chain_id == quote.chain_id) {
                        if let Ok(response) = self.scene.claim(&quote.signup_nonce, *tx).await {
                            self.thief_keys.push(key_of(&response.api_key));
                        }
                    }
                }
            }
            Move::ThiefTopsUp { key, tx, signer } => {
                let transactions = self.transactions();
                let (Some(key), Some((chain, tx))) = (pick(&self.thief_keys, key), pick(&transactions, tx)) else {
                    return;
                };
                let refused = self.scene.top_up(key, *chain, *tx, None).await.err();
                if let (Some(error), Some(signer)) = (refused, signer.and_then(|signer| pick(&self.wallets, signer))) {
                    let signature = signer.sign(&error.body().message);
                    let _ = self.scene.top_up(key, *chain, *tx, Some(signature)).await;
                }
            }
            Move::ThiefRotates { wallet, signer } | Move::ThiefAnswersForeignChallenge { wallet, signer } => {
                let address = self.address(wallet).address;
                let request = ChallengeRequest { address: Some(address.to_string()) };
                let Ok(challenge) = self.scene.service.challenge(&request).await else { return };
                let Some(signer) = pick(&self.wallets, signer) else { return };
                let claimed_address =
                    if matches!(next, Move::ThiefAnswersForeignChallenge { .. }) { signer.address } else { address };
                let signature = signer.sign(&challenge.message);
                if let Ok(response) = self.scene.verify(claimed_address, &challenge.nonce, &signature).await {
                    self.thief_keys.push(key_of(&response.api_key));
                }
            }
            _ => unreachable!("customers' moves are handled elsewhere"),
        }
    }

    /// The thief pays with its own money: the amount of a quote that it knows, or a plan's price.
    fn thief_pays(&mut self, wallet: usize, amount_of: usize, chain: bool) {
        let router = Wallet::of(ROUTER);
        let wallets: Vec<_> = self.wallets.iter().chain([&router]).collect();
        let Some(wallet) = pick(&wallets, wallet) else { return };
        let quote = pick(&self.thief_quotes, amount_of);
        let known = quote.map(|quote| (quote.chain_id, quote.token_contract.parse().unwrap(), &quote.amount_atomic));
        let (chain_id, token, units): (u64, Address, u128) = match known {
            Some((chain_id, token, amount)) if !amount_of.is_multiple_of(3) => {
                (chain_id, token, amount.parse().unwrap())
            }
            _ => (chain_of(chain), USDC, PRICE),
        };
        let paid = self.scene.chain(chain_id).pay(token, wallet.address, RECIPIENT, units);
        self.thief_payments.insert((chain_id, paid));
        self.scene.chain(chain_id).grow(10);
        let credits: Credits = if token == USDC { "10.5" } else { "4" }.parse().unwrap();
        self.worth += i128::from(credits.atoms());
    }

    /// The accounts that these keys can spend from.
    async fn accounts(&self, keys: &[ApiKey]) -> HashMap<AccountId, i128> {
        let mut accounts = HashMap::new();
        for key in keys {
            if let Some(account) = self.scene.store.account_by_key(&key.hash()).await.unwrap() {
                accounts.insert(account.id, i128::from(account.totals.purchased.atoms()));
            }
        }
        accounts
    }

    async fn assert_no_customer_lost_credits(&mut self, proof: bool) {
        let thief_accounts = self.accounts(&self.thief_keys).await;
        assert!(
            thief_accounts.values().sum::<i128>() <= self.worth_including_gifts(proof).await,
            "the thief has more credits than it paid for"
        );
        let swapped = self.swapped().await;
        for record in self.scene.store.payments(None, 10_000).await.unwrap().items {
            let TxRef { chain_id, hash } = record.payment.tx;
            let customers = self.customers.iter().any(|wallet| wallet.address == record.payment.payer)
                && !self.thief_payments.contains(&(chain_id, hash));
            // Without payer proof, anyone may claim a payment that matches no quote.
            let tx = (record.payment.tx.chain_id, Some(record.payment.tx.hash));
            let quoted = self.bought.iter().any(|bought| (bought.quote.chain_id, bought.paid) == tx);
            if customers && (proof || quoted && !swapped.contains(&(chain_id, hash))) {
                assert!(!thief_accounts.contains_key(&record.account), "stolen: {record:?}");
            }
        }
        for chain_id in [MAIN, SIDE] {
            while !self.scene.service.watch(chain_id, Some(0)).await.unwrap().up_to_date {}
        }
        for BoughtQuote { wallet, paid, quote } in &self.bought {
            let Some(paid) = paid else { continue };
            if let Ok(response) = self.scene.claim(&quote.signup_nonce, *paid).await {
                self.customer_keys.push(key_of(&response.api_key));
            }
            if wallet.address == Wallet::of(ROUTER).address {
                // Only the nonce proves ownership, because the contract signs for no one.
                let (account, _) = self.settled(quote).await.expect("a paid quote has an account");
                let bought = self.accounts(&self.customer_keys).await.get(&account).copied();
                assert_eq!(bought, Some(i128::from(starter().atoms())), "the owner of the nonce has the credits");
                assert!(!thief_accounts.contains_key(&account), "the thief does not have the account");
                continue;
            }
            let rotated =
                self.scene.rotate(wallet).await.expect("a customer who paid can rotate the key of their account");
            let key = key_of(&rotated.api_key);
            // The payment was used for this wallet's account, by a claim, by the watcher, or by its owner now.
            match self.scene.top_up(&key, quote.chain_id, *paid, None).await {
                Ok(response) => assert!(response.already_credited || quote.token_symbol == "USDC"),
                Err(error) => {
                    assert!(matches!(error.code().as_str(), "tx_already_used" | "payment_mismatch"), "{error}")
                }
            }
        }
        assert!(self.scene.store.verify().await.unwrap().discrepancies.is_empty());
    }

    /// The account that a quote became, and the payment that settled it.
    async fn settled(&self, quote: &QuoteResponse) -> Option<(AccountId, TxRef)> {
        let nonce = QuoteNonce::parse(&quote.signup_nonce).unwrap().hash();
        match self.scene.store.quote(&nonce).await.unwrap()?.state {
            QuoteState::Open => None,
            QuoteState::Paid { account, tx } | QuoteState::Claimed { account, tx } => Some((account, tx)),
        }
    }

    /// Customers' payments through the router whose quotes were settled by a payment of the thief, which had sent the
    /// same amount through the router first. The customer gets exactly the same amount from the thief's payment.
    async fn swapped(&self) -> HashSet<(u64, TxHash)> {
        let mut swapped = HashSet::new();
        for BoughtQuote { wallet, paid, quote } in &self.bought {
            let (Some(paid), Some((account, tx))) = (paid, self.settled(quote).await) else { continue };
            if tx.hash != *paid {
                assert_eq!(
                    wallet.address,
                    Wallet::of(ROUTER).address,
                    "only the customer pays from a customer's wallet"
                );
                assert!(self.thief_payments.contains(&(tx.chain_id, tx.hash)), "settled by an unknown payment: {tx}");
                let record = self.scene.store.payment(&tx).await.unwrap().expect("the payment is recorded");
                assert_eq!((record.account, record.payment.amount.to_string()), (account, quote.amount_atomic.clone()));
                swapped.insert((quote.chain_id, *paid));
            }
        }
        swapped
    }

    /// The worth of the thief's payments, plus, without payer proof, of customers' payments without a quote.
    async fn worth_including_gifts(&self, proof: bool) -> i128 {
        if proof {
            return self.worth;
        }
        let all = i128::try_from(self.transactions().len()).unwrap();
        let quoted = i128::try_from(self.bought.iter().filter(|bought| bought.paid.is_some()).count()).unwrap();
        (all - quoted) * i128::from(starter().atoms())
    }
}

fn play(moves: Vec<Move>, proof: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut game = Simulation::new(proof).await;
        for next in moves {
            game.play(next).await;
        }
        game.assert_no_customer_lost_credits(proof).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn thief_never_gains_more_than_it_paid(moves in moves()) {
        play(moves, true);
    }

    #[test]
    fn quoted_payments_are_safe_even_without_payer_proof(moves in moves()) {
        play(moves, false);
    }
}
