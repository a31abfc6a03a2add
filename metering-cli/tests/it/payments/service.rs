//! A service that sells plans, as far as paying clients see it. Keys, texts and signatures are real.

use std::collections::BTreeMap;
use std::time::Duration;

use metering_core::chains::{Address, TxRef, WalletSignature, signer};
use metering_core::payments::{Challenge, QuoteNonce, payer_proof_message};
use metering_core::{AccountId, ApiKey, Clock, SystemClock, SystemRandomness, Timestamp};
use serde_json::{Value, json};

use crate::node::{CHAIN_ID, TxOutcome, Wallet};
use crate::stand_in::RecordedRequest;

pub(crate) const RECIPIENT: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
pub(crate) const TOKEN: &str = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";
const COIN: &str = "0x0000000000000000000000000000000000000000";

/// An account, and the credits it got.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) id: AccountId,
    pub(crate) key: String,
    pub(crate) payer: Option<Address>,
    pub(crate) credits: u32,
}

/// A quote: who pays it, and whether it was claimed.
#[derive(Debug)]
struct Quote {
    payer: Address,
    claimed: bool,
}

#[derive(Debug)]
pub(crate) struct Service {
    url: String,
    /// The name in the texts that wallets sign.
    pub(crate) name: String,
    pub(crate) accounts: Vec<Account>,
    /// The account that each transaction was credited to.
    pub(crate) used: BTreeMap<String, AccountId>,
    pub(crate) quotes_expire_in_seconds: i64,
    /// Fields of quotes that are wrong on purpose.
    pub(crate) spoilt: Vec<(&'static str, Value)>,
    /// The wallet that sends the chain's transactions.
    pub(crate) sender: Address,
    pub(crate) rpc_hint: Option<String>,
    quotes: BTreeMap<String, Quote>,
    challenges: BTreeMap<String, (Address, String)>,
}

type Reply = (u16, Value);

impl Service {
    pub(crate) fn new(sender: Address) -> Self {
        Self {
            url: String::new(),
            name: String::new(),
            accounts: Vec::new(),
            used: BTreeMap::new(),
            quotes_expire_in_seconds: 1_800,
            spoilt: Vec::new(),
            sender,
            rpc_hint: None,
            quotes: BTreeMap::new(),
            challenges: BTreeMap::new(),
        }
    }

    pub(crate) fn is_at(&mut self, url: &str) {
        (self.url, self.name) = (url.to_owned(), format!("The metering service at {url}"));
    }

    /// Creates an account; returns its key.
    pub(crate) fn open_account(&mut self, payer: Option<Address>) -> String {
        let key = ApiKey::generate(&SystemRandomness).expose().to_owned();
        let id = AccountId::generate(&SystemRandomness);
        self.accounts.push(Account { id, key: key.clone(), payer, credits: 2 });
        key
    }

    pub(crate) fn respond(&mut self, request: &RecordedRequest, node: &Wallet) -> Reply {
        let body = request.json();
        match (request.method.as_str(), request.path()) {
            ("GET", "/credits/plans") => (200, self.plans()),
            ("GET", "/credits/balance") => self.of_key(request, |account| (200, account.balance())),
            ("POST", "/signup/pay/quote") => self.quote(&body),
            ("POST", "/signup/pay/claim") => self.claim(&body, node),
            ("POST", "/credits/topup") => self.top_up(request, node),
            ("POST", "/api-key/recover/challenge") => self.challenge(&body),
            ("POST", "/api-key/recover/verify") => self.verify(&body),
            (method, path) => panic!("unexpected request {method} {path}"),
        }
    }

    fn plans(&self) -> Value {
        let plan = |id: &str, kind: &str, symbol: &str, token: &str, price: &str, decimals: u8| {
            json!({
                "id": id, "chain_id": CHAIN_ID, "token_symbol": symbol, "payment_kind": kind, "credits": 10,
                "bonus_credits": 0.5, "token_amount": price, "token_contract": token.to_lowercase(),
                "token_decimals": decimals, "label": id, "description": "", "active": true, "recipient": RECIPIENT,
                "rpc_url": self.rpc_hint.clone().unwrap_or_default(),
            })
        };
        let plans =
            [plan("starter", "erc20", "USDC", TOKEN, "5", 6), plan("coin", "native_value", "ETH", COIN, "0.0025", 18)];
        let chain = json!({
            "chain_id": CHAIN_ID, "name": "devnet", "rpc_url": "", "recipient": RECIPIENT, "confirmations": 2,
        });
        json!({ "plans": plans, "chains": [chain], "terms_url": "", "terms_version": "1" })
    }

    fn quote(&mut self, body: &Value) -> Reply {
        let payer: Address = text(body, "payer_address").parse().unwrap();
        if self.accounts.iter().any(|account| account.payer == Some(payer)) {
            return refuse(409, "payer_already_registered");
        }
        let nonce = QuoteNonce::generate(&SystemRandomness).expose().to_owned();
        self.quotes.insert(nonce.clone(), Quote { payer, claimed: false });
        let token = body["plan_id"] == "starter";
        let (amount, contract, decimals, kind) =
            if token { ("5003817", TOKEN, 6, "erc20") } else { ("2502408338000000", COIN, 18, "native_value") };
        let expires_at = SystemClock.now().unix_millis() + self.quotes_expire_in_seconds * 1_000;
        let mut quote = json!({
            "signup_nonce": nonce, "recipient": RECIPIENT, "amount_atomic": amount, "amount_human": "?",
            "token_contract": contract, "token_symbol": body["token_symbol"], "token_decimals": decimals,
            "chain_id": CHAIN_ID, "payment_kind": kind, "rpc_hint": self.rpc_hint, "terms_version": "1", "notice": "",
            "expires_at": Timestamp::from_unix_millis(expires_at).to_string(), "terms_url": format!("{}/terms", self.url),
        });
        for (name, value) in &self.spoilt {
            quote[*name] = value.clone();
        }
        (201, quote)
    }

    fn claim(&mut self, body: &Value, node: &Wallet) -> Reply {
        let hash = text(body, "tx_hash");
        let Some(quote) = self.quotes.get_mut(&text(body, "signup_nonce")) else { return refuse(404, "not_found") };
        if quote.claimed {
            return refuse(409, "already_claimed");
        }
        if node.outcome == TxOutcome::Fail {
            return refuse(400, "tx_reverted");
        }
        if !node.has_paid(&hash) {
            return refuse(404, "tx_not_found");
        }
        if self.used.contains_key(&hash) {
            return refuse(409, "tx_already_used");
        }
        quote.claimed = true;
        let payer = quote.payer;
        let key = self.open_account(Some(payer));
        let account = self.accounts.last_mut().unwrap();
        account.credits += 10;
        self.used.insert(hash, account.id.clone());
        (200, account.issued(&key))
    }

    fn top_up(&mut self, request: &RecordedRequest, node: &Wallet) -> Reply {
        let (body, sender, name) = (request.json(), self.sender, self.name.clone());
        let hash = text(&body, "tx_hash");
        let Some(account) = self.accounts.iter_mut().find(|account| request.key() == Some(account.key.as_str())) else {
            return refuse(401, "unauthorized");
        };
        if let Some(owner) = self.used.get(&hash) {
            return if *owner == account.id { account.credited(&hash, 0) } else { refuse(409, "tx_already_used") };
        }
        if !node.has_paid(&hash) {
            return refuse(404, "tx_not_found");
        }
        if account.payer != Some(sender) {
            let tx = TxRef { chain_id: CHAIN_ID, hash: hash.parse().unwrap() };
            let message = payer_proof_message(&name, &account.id, sender, tx);
            if !is_signed(&message, sender, &body["signature"]) {
                return (403, json!({ "error": "payer_proof_required", "message": message, "hint": "Sign it." }));
            }
        }
        account.credits += 10;
        self.used.insert(hash.clone(), account.id.clone());
        account.credited(&hash, 10)
    }

    fn challenge(&mut self, body: &Value) -> Reply {
        let address: Address = text(body, "address").parse().unwrap();
        if !self.accounts.iter().any(|account| account.payer == Some(address)) {
            return refuse(404, "no_linked_wallet");
        }
        let nonce = format!("nonce{}", self.challenges.len());
        let expires_at = SystemClock.now().saturating_add(Duration::from_secs(600));
        let message = Challenge::message(&self.name, address, &nonce, expires_at, "https://terms.example");
        self.challenges.insert(nonce.clone(), (address, message.clone()));
        let expires_at = expires_at.to_string();
        (201, json!({ "nonce": nonce, "message": message, "expires_at": expires_at, "expires_in": 600 }))
    }

    fn verify(&mut self, body: &Value) -> Reply {
        let Some((address, message)) = self.challenges.get(&text(body, "nonce")).cloned() else {
            return refuse(404, "not_found");
        };
        if !is_signed(&message, address, &body["signature"]) {
            return refuse(400, "invalid_signature");
        }
        self.challenges.remove(&text(body, "nonce"));
        let account = self.accounts.iter_mut().find(|account| account.payer == Some(address)).unwrap();
        account.key = ApiKey::generate(&SystemRandomness).expose().to_owned();
        let key = account.key.clone();
        (200, account.issued(&key))
    }

    fn of_key(&self, request: &RecordedRequest, respond: impl Fn(&Account) -> Reply) -> Reply {
        let account = self.accounts.iter().find(|account| request.key() == Some(account.key.as_str()));
        account.map_or_else(|| refuse(401, "unauthorized"), respond)
    }
}

impl Account {
    fn balance(&self) -> Value {
        json!({
            "org_id": self.id, "payer_address": self.payer, "credit_balance": self.credits, "rate_limits": caps(),
        })
    }

    fn issued(&self, key: &str) -> Value {
        json!({
            "status": "approved", "api_key": key, "org_id": self.id, "credit_balance": self.credits,
            "rate_limits": caps(),
        })
    }

    fn credited(&self, hash: &str, added: u32) -> Reply {
        let reply = json!({
            "credit_balance": self.credits, "amount_added": added, "total_credits_purchased": self.credits - 2,
            "plan_id": "starter", "tx_hash": hash, "chain_id": CHAIN_ID, "already_credited": added == 0,
        });
        (200, reply)
    }
}

fn caps() -> Value {
    json!({ "requests_per_minute": 240, "requests_per_day": 1_500_000 })
}

/// An error in the protocol's form.
pub(crate) fn refusal(code: &str) -> Value {
    let passing = ["tx_not_found", "rpc_error", "rate_limited", "overloaded", "payment_not_configured"];
    let mut refusal = json!({ "error": code, "message": format!("Sentence about {code}.") });
    if passing.contains(&code) {
        refusal["retry_after_sec"] = 0.into();
    }
    refusal
}

fn refuse(status: u16, code: &str) -> Reply {
    (status, refusal(code))
}

fn is_signed(message: &str, by: Address, signature: &Value) -> bool {
    let signature = signature.as_str().and_then(|signature| WalletSignature::parse(signature).ok());
    signature.and_then(|signature| signer(message, &signature)) == Some(by)
}

fn text(body: &Value, name: &str) -> String {
    body[name].as_str().unwrap_or_else(|| panic!("{name} is missing in {body}")).to_owned()
}
