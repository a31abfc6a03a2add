//! The theft game for payments that come with requests: honest agents and a thief, who sees every authorization that
//! was sent to the chain, move in random order, while blocks are replaced, sources fail and processes stop. In the end,
//! the credits of each account equal its payments, every token received is credited, no payment of an honest wallet is
//! in an account of the thief, and the thief never signed in with an honest wallet's sign-in message.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use metering_core::offers::{AuthorizationState, SignedAuthorization};
use metering_core::{AccountId, ApiKey, Store};
use proptest::collection::vec;
use proptest::prelude::*;

use super::ledger::{CHAIN, Call};
use super::scene::{LARGE, SMALL, Scene, atoms};
use super::sign_in::{send as send_signed_in, sign_in};
use super::wallet::Wallet;

/// The wallet of the thief. Wallets 1 to 3 are honest.
const THIEF: u8 = 4;

/// A move. Numbers select payments, modulo how many exist.
#[derive(Debug, Clone)]
enum Move {
    Pays { wallet: u8, with_key: bool, is_large: bool },
    SendsAgain { payment: usize, with_key: bool, is_dear: bool },
    ThiefSends { payment: usize, with_key: bool, is_dear: bool },
    ThiefExecutes { first: usize, second: Option<usize> },
    ThiefCancels { payment: usize },
    Mines,
    MinesAtOnce(bool),
    Reorganises { depth: usize, is_lost: bool },
    Fails(bool),
    Blocks(Option<u8>),
    Restarts,
    Passes { seconds: u64 },
    Settles,
    SignsIn { wallet: u8, for_key: bool },
    ThiefSignsIn { sign_in: usize, for_key: bool },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let n = 0_usize..100;
    let sent = (n.clone(), any::<bool>(), any::<bool>());
    let one = prop_oneof![
        6 => (1..=THIEF, any::<bool>(), any::<bool>())
            .prop_map(|(wallet, with_key, is_large)| Move::Pays { wallet, with_key, is_large }),
        2 => sent.clone().prop_map(|(payment, with_key, is_dear)| Move::SendsAgain { payment, with_key, is_dear }),
        3 => sent.prop_map(|(payment, with_key, is_dear)| Move::ThiefSends { payment, with_key, is_dear }),
        2 => (n.clone(), proptest::option::of(n.clone())).prop_map(|(first, second)| Move::ThiefExecutes { first, second }),
        1 => n.prop_map(|payment| Move::ThiefCancels { payment }),
        2 => Just(Move::Mines),
        1 => any::<bool>().prop_map(Move::MinesAtOnce),
        2 => (1_usize..4, any::<bool>()).prop_map(|(depth, is_lost)| Move::Reorganises { depth, is_lost }),
        1 => any::<bool>().prop_map(Move::Fails),
        1 => proptest::option::of(1..=THIEF).prop_map(Move::Blocks),
        1 => Just(Move::Restarts),
        2 => (1_u64..120).prop_map(|seconds| Move::Passes { seconds }),
        2 => Just(Move::Settles),
        2 => (1..THIEF, any::<bool>()).prop_map(|(wallet, for_key)| Move::SignsIn { wallet, for_key }),
        2 => (0_usize..100, any::<bool>()).prop_map(|(sign_in, for_key)| Move::ThiefSignsIn { sign_in, for_key }),
    ];
    vec(one, 1..30)
}

struct Game {
    scene: Scene,
    thief: (ApiKey, AccountId),
    payments: Vec<SignedAuthorization>,
    /// The sign-in messages of honest wallets, whatever their outcome.
    sign_ins: Vec<String>,
    /// Whether one transaction executed several payments: one of them is credited, and an operator assigns the others.
    has_batches: bool,
}

impl Game {
    fn payment(&self, index: usize) -> Option<SignedAuthorization> {
        self.payments.get(index.checked_rem(self.payments.len())?).cloned()
    }

    /// The authorization, if the thief can have it: it is its own, or was accepted and may have been sent to the chain.
    async fn known_to_thief(&self, index: usize) -> Option<SignedAuthorization> {
        let signed = self.payment(index)?;
        let is_own = signed.authorization.from == Wallet::of(THIEF).address;
        (is_own || self.scene.record(&signed).await.is_some()).then_some(signed)
    }

    async fn play(&mut self, next: Move) {
        let path = |is_dear| if is_dear { "/dear" } else { "/quote" };
        match next {
            Move::Pays { wallet, with_key, is_large } => {
                let nonce = u8::try_from(self.payments.len()).unwrap();
                let signed = self.scene.signed(wallet, if is_large { LARGE } else { SMALL }, nonce);
                self.payments.push(signed.clone());
                let key = if wallet == THIEF { &self.thief.0 } else { &self.scene.key };
                self.scene.send("/quote", with_key.then_some(key), Some(&signed)).await;
            }
            Move::SendsAgain { payment, with_key, is_dear } => {
                let Some(signed) = self.payment(payment) else { return };
                self.scene.send(path(is_dear), with_key.then_some(&self.scene.key), Some(&signed)).await;
            }
            Move::ThiefSends { payment, with_key, is_dear } => {
                let Some(signed) = self.known_to_thief(payment).await else { return };
                self.scene.send(path(is_dear), with_key.then_some(&self.thief.0), Some(&signed)).await;
            }
            Move::ThiefExecutes { first, second } => {
                let Some(first) = self.known_to_thief(first).await else { return };
                let mut calls = vec![Call::Execute(first)];
                if let Some(second) = second
                    && let Some(second) = self.known_to_thief(second).await
                {
                    calls.push(Call::Execute(second));
                    self.has_batches = true;
                }
                self.scene.node.by_stranger(calls);
            }
            Move::ThiefCancels { payment } => {
                let Some(signed) = self.payment(payment) else { return };
                if signed.authorization.from == Wallet::of(THIEF).address {
                    let id = signed.id();
                    self.scene.node.by_stranger(vec![Call::Cancel(id.payer, id.nonce)]);
                }
            }
            Move::SignsIn { wallet, for_key } => {
                let header = sign_in(&self.scene, wallet).await;
                match for_key {
                    true => drop(self.scene.payments.signed_in_key(&header, None).await),
                    false => drop(send_signed_in(&self.scene, "/quote", &header).await),
                }
                self.sign_ins.push(header);
            }
            Move::ThiefSignsIn { sign_in, for_key } => {
                let Some(index) = sign_in.checked_rem(self.sign_ins.len()) else { return };
                let header = &self.sign_ins[index];
                let is_taken = match for_key {
                    true => self.scene.payments.signed_in_key(header, None).await.is_ok(),
                    false => send_signed_in(&self.scene, "/quote", header).await.status() == 200,
                };
                assert!(!is_taken, "the thief signed in as someone else");
            }
            Move::Mines => self.scene.node.mine(),
            Move::MinesAtOnce(mines) => self.scene.node.mines.store(mines, Ordering::SeqCst),
            Move::Reorganises { depth, is_lost } => {
                self.scene.node.ledger().reorganise(depth, is_lost, self.scene.clock.now());
            }
            Move::Fails(fails) => self.scene.node.is_down.store(fails, Ordering::SeqCst),
            Move::Blocks(wallet) => {
                self.scene.node.ledger().blocked =
                    wallet.map(|wallet| Wallet::of(wallet).address).into_iter().collect();
            }
            Move::Restarts => {
                self.scene.node.calls_left.store(0, Ordering::SeqCst);
                self.scene = self.scene.restarted();
            }
            Move::Passes { seconds } => self.scene.wait(seconds).await,
            Move::Settles => {
                self.scene.payments.settle_authorizations().await.unwrap();
                // It fails while the chain cannot be read, and is called again.
                drop(self.scene.service.payments().settle(CHAIN).await);
            }
        }
    }

    /// The chain recovers, and all wallets send their signed messages again.
    async fn end(&mut self) {
        self.scene.node.is_down.store(false, Ordering::SeqCst);
        self.scene.node.mines.store(true, Ordering::SeqCst);
        self.scene.node.ledger().blocked.clear();
        for _ in 0..2 {
            self.scene.keep_up().await;
            self.scene.keep_up().await;
            for signed in self.payments.clone() {
                self.scene.send("/quote", None, Some(&signed)).await;
            }
        }
        self.scene.keep_up().await;
        self.scene.keep_up().await;
    }

    async fn assert_fair(&self) {
        let mut paid: BTreeMap<AccountId, i128> = BTreeMap::new();
        let mut credited = 0;
        for signed in &self.payments {
            let Some(record) = self.scene.record(signed).await else { continue };
            let id = signed.id();
            let executed = self.scene.node.ledger().world().used.get(&(id.payer, id.nonce)).copied().flatten();
            if record.state == AuthorizationState::Credited {
                assert!(executed.is_some(), "nothing was received for {id:?}");
                *paid.entry(record.account.clone()).or_default() += atoms(signed.authorization.value.get());
                credited += signed.authorization.value.get();
                let is_thiefs = id.payer == Wallet::of(THIEF).address;
                assert!(is_thiefs || record.account != self.thief.1, "stolen: {id:?}");
            } else {
                let is_open = self.has_batches && record.state == AuthorizationState::Pending;
                assert!(executed.is_none() || is_open, "received and not credited: {record:?}");
            }
        }
        assert!(credited <= self.scene.received());
        assert!(credited == self.scene.received() || self.has_batches, "{credited} of {}", self.scene.received());
        for account in self.scene.store.accounts(None, 1_000).await.unwrap().items {
            let bought = i128::from(account.totals.purchased.atoms());
            assert_eq!(bought, paid.get(&account.id).copied().unwrap_or_default(), "{}", account.id);
        }
        assert!(self.scene.store.verify().await.unwrap().discrepancies.is_empty());
    }
}

fn play(moves: Vec<Move>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let scene = Scene::new().await;
        let thief = scene.another_customer().await;
        let (payments, sign_ins) = (Vec::new(), Vec::new());
        let mut game = Game { scene, thief, payments, sign_ins, has_batches: false };
        for next in moves {
            game.play(next).await;
        }
        game.end().await;
        game.assert_fair().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_token_received_is_credited_once_to_whom_it_was_signed_for(moves in moves()) {
        play(moves);
    }
}
