//! The theft game in progress: the moves of the customers and the thief, and their accounts.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use metering_core::chains::{Address, TxHash};
use metering_core::payments::Plan;
use metering_core::service::PaymentSettings;
use metering_core::wire::{ChallengeRequest, QuoteResponse};
use metering_core::{ApiKey, Clock, Credits, PaymentStore};

use super::super::scene::{MAIN, RECIPIENT, SIDE, Scene, USDC, key_of, plan};
use super::super::wallet::Wallet;
use super::moves::Move;

/// The price of `starter` here, in units of a token with three decimals. There are only nine tags, so amounts of
/// different payers collide as often as possible.
const PRICE: u128 = 5_000;
const CUSTOMERS: [u8; 3] = [1, 2, 3];
const THIEFS_WALLETS: [u8; 2] = [11, 12];
/// A public contract, such as a router or an exchange, that customers and the thief buy through.
pub(super) const ROUTER: u8 = 21;

fn pick<T>(items: &[T], number: usize) -> Option<&T> {
    items.get(number.checked_rem(items.len())?)
}

fn chain_of(main: bool) -> u64 {
    if main { MAIN } else { SIDE }
}

fn plan_of(starter: bool) -> &'static str {
    if starter { "starter" } else { "coin" }
}

/// A customer's quote and the payment for it.
#[derive(Debug)]
pub(super) struct BoughtQuote {
    pub(super) wallet: Wallet,
    pub(super) quote: QuoteResponse,
    pub(super) paid: Option<TxHash>,
}

#[derive(Debug)]
pub(super) struct Simulation {
    pub(super) scene: Scene,
    pub(super) customers: Vec<Wallet>,
    wallets: Vec<Wallet>,
    pub(super) bought: Vec<BoughtQuote>,
    pub(super) customer_keys: Vec<ApiKey>,
    /// The key of an account that tops up by quote, and the payments of its quotes, by id.
    pub(super) top_up_key: ApiKey,
    pub(super) top_ups: HashMap<String, (u64, TxHash, Credits)>,
    thief_quotes: Vec<QuoteResponse>,
    pub(super) thief_keys: Vec<ApiKey>,
    /// The most credits that the thief's payments can be worth.
    pub(super) worth: i128,
    /// The thief's payments, some of them through the router.
    pub(super) thief_payments: HashSet<(u64, TxHash)>,
}

impl Simulation {
    pub(super) async fn new(require_payer_proof: bool) -> Self {
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
        let (top_up_key, _) = scene.account_without_wallet().await;
        Self {
            scene,
            top_up_key,
            top_ups: HashMap::new(),
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

    pub(super) fn transactions(&self) -> Vec<(u64, TxHash)> {
        let of = |chain_id| self.scene.chain(chain_id).all().into_iter().map(move |(hash, _)| (chain_id, hash));
        of(MAIN).chain(of(SIDE)).collect()
    }

    /// Any wallet's address: the thief may name any of them.
    fn address(&self, number: usize) -> Wallet {
        let all: Vec<_> = self.customers.iter().chain(&self.wallets).cloned().collect();
        all[number % all.len()].clone()
    }

    pub(super) async fn play(&mut self, next: Move) {
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
            Move::CustomerPaysTopUp { payer, plan, chain } => {
                let Some(wallet) = pick(&self.customers, payer).cloned() else { return };
                // There are two amounts for top-ups, so they may all be taken.
                let quote = self.scene.top_up_quote(&self.top_up_key, plan_of(plan), chain_of(chain)).await;
                let Ok(quote) = quote else { return };
                // A contract's payment in the native coin cannot be credited.
                let by_contract = wallet.address == Wallet::of(ROUTER).address && !plan;
                if !by_contract && !self.top_ups.contains_key(&quote.quote_id) {
                    let paid = self.scene.pay_top_up(wallet.address, &quote);
                    let credits = quote.credits.checked_add(quote.bonus_credits).unwrap();
                    self.top_ups.insert(quote.quote_id, (quote.chain_id, paid, credits));
                }
            }
            Move::Watch { chain } => {
                self.scene.service.payments().watch(chain_of(chain), Some(0)).await.unwrap();
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
            Move::ThiefTopUpQuotes { key, plan, chain } => {
                if let Some(key) = pick(&self.thief_keys, key) {
                    let _ = self.scene.top_up_quote(key, plan_of(plan), chain_of(chain)).await;
                }
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
                let Ok(challenge) = self.scene.service.recovery().challenge(&request).await else { return };
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
}
