//! Payments whose transactions revert on a real chain, at the cost of the service's gas wallet.

use std::thread;

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::wallet::authorizations::USDC;
use metering_tests::response::Response;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::market::{Market, Terms, UNITS, chain, own};
use super::signing::{payment, signed, transfer};
use crate::support::wire::BASE;

/// A wallet whose `isValidSignature` says yes in simulations, which have no gas price, and burns all its gas otherwise:
///
/// ```text
/// 00 GASPRICE; PUSH1 14; JUMPI
/// 04 PUSH4 1626ba7e; PUSH1 e0; SHL; PUSH1 00; MSTORE; PUSH1 20; PUSH1 00; RETURN
/// 14 JUMPDEST; INVALID
/// ```
const TRAP: &str = "0x3a601457631626ba7e60e01b60005260206000f35bfe";

/// A market whose server executes payments with its own gas wallet.
struct Scene {
    market: Market,
    gas: Account,
    /// Has the key of the gas wallet.
    _keys: Site,
}

impl Scene {
    fn new(more: &str) -> Option<Self> {
        let chain = chain(Chain::setup())?;
        let (gas, keys) = (chain.wallet().new_account(), Site::new());
        let terms = Terms { settle: Some(own(&keys, &gas)), more: more.to_owned(), ..Terms::default() };
        let market = Market::on(chain, &terms);
        market.wait_for_offers();
        Some(Self { market, gas, _keys: keys })
    }

    /// The payment of a trap with this number, which has money for many.
    fn of_trap(&self, number: u8, code: &str, nonce: u8) -> String {
        let (chain, address) = (&self.market.chain, format!("0x{}", format!("{number:02x}").repeat(20)));
        let _ = chain.rpc("anvil_setCode", json!([address, code]));
        chain.wallet().mint(USDC, &address, 100 * UNITS);
        payment(&transfer(&self.market, &address, nonce), &format!("0x{}", "07".repeat(70)))
    }

    /// Sends payments concurrently, each with its own request.
    fn pay(&self, payments: &[String]) -> Vec<Response> {
        let client = &|| self.market.server.client();
        thread::scope(|scope| {
            let sent: Vec<_> = payments
                .iter()
                .map(|payment| scope.spawn(move || client().with_header("payment-signature", payment).get(BASE)))
                .collect();
            sent.into_iter().map(|request| request.join().unwrap()).collect()
        })
    }

    /// How many transactions of the gas wallet are in the chain.
    fn mined(&self) -> u64 {
        let count = self.market.chain.rpc("eth_getTransactionCount", json!([self.gas.address(), "latest"]));
        u64::from_str_radix(count.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    }

    fn received(&self) -> u128 {
        self.market.held_by(&self.market.recipient)
    }
}

fn outcomes(responses: &[Response]) -> Vec<(u16, Value)> {
    responses.iter().map(|response| (response.status, response.json()["error"].clone())).collect()
}

#[test]
fn wallet_that_lies_in_simulations_reverts_once_and_is_paused() {
    let Some(scene) = Scene::new("contract_wallets = true\n") else { return };
    let refused = (402, json!("payment_refused"));
    assert_eq!(outcomes(&scene.pay(&[scene.of_trap(0x41, TRAP, 1)])), std::slice::from_ref(&refused));
    assert_eq!(scene.mined(), 1, "it is given up at its first revert");
    // The same wallet again, and twenty times at once.
    let waits = (429, json!("rate_limited"));
    let again: Vec<_> = (2..22).map(|nonce| scene.of_trap(0x41, TRAP, nonce)).collect();
    assert!(outcomes(&scene.pay(&again)).iter().all(|outcome| *outcome == waits));
    assert_eq!(scene.mined(), 1);
    // Ten others with the same code at once: two more reverts are within its limit.
    let others: Vec<_> = (0x51..0x5b).map(|number| scene.of_trap(number, TRAP, 1)).collect();
    let found = outcomes(&scene.pay(&others));
    assert!(found.iter().all(|outcome| *outcome == refused), "{found:?}");
    assert_eq!(scene.mined(), 3);
    assert!(scene.market.server.log().contains("a payment reverted at the gas wallet's cost"));
    // Others are served.
    let honest = scene.market.payer();
    assert_eq!(scene.pay(&[signed(&scene.market, &honest, 1)])[0].status, 200);
    scene.market.assert_paid(&honest, UNITS);
    scene.market.site.verify();
}

#[test]
fn too_many_reverts_pause_the_chain() {
    let Some(scene) = Scene::new("contract_wallets = true\nmax_reverts = 1\n") else { return };
    assert_eq!(scene.pay(&[scene.of_trap(0x41, TRAP, 1)])[0].status, 402);
    let honest = scene.market.payer();
    let payment = signed(&scene.market, &honest, 1);
    let paused = (503, json!("settlement_unavailable"));
    assert_eq!(outcomes(&scene.pay(&[payment])), [paused]);
    assert_eq!((scene.mined(), scene.received()), (1, 0));
    assert!(scene.market.server.log().contains("self-settlement is paused"));
    let _ = scene.market.server.client().get("/ready").expect(200);
}

#[test]
fn by_default_wallets_with_code_are_refused_and_thirty_payments_with_money_for_one_cost_one_transaction() {
    let Some(scene) = Scene::new("") else { return };
    let refused = scene.pay(&[scene.of_trap(0x41, TRAP, 1)]);
    assert_eq!(outcomes(&refused), [(402, json!("payment_refused"))]);
    assert!(refused[0].text().contains("has code of its own"), "{}", refused[0].text());
    assert_eq!(scene.mined(), 0);
    let (chain, payer) = (&scene.market.chain, scene.market.chain.wallet().poor_account());
    chain.wallet().mint(USDC, &payer.address(), UNITS);
    let payments: Vec<_> = (0..30).map(|nonce| signed(&scene.market, &payer, nonce)).collect();
    // A block a second, so that simulations do not see what was sent before.
    chain.set_automine(false);
    let _ = chain.rpc("evm_setIntervalMining", json!([1]));
    let found = outcomes(&scene.pay(&payments));
    let served = found.iter().filter(|(status, _)| *status == 200).count();
    assert!(served == 1 && found.iter().all(|(status, _)| matches!(status, 200 | 402)), "{found:?}");
    assert_eq!((scene.mined(), scene.received()), (1, UNITS));
    scene.market.site.verify();
}
