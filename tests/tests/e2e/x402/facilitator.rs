//! The facilitator of the reference implementation executes the payments.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use metering_tests::chain::Chain;

use super::market::{Market, PURSE, Stock, Terms, chain, folder};
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance};

/// How long it may take to start, on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A running facilitator. Dropping it ends it.
pub(crate) struct Facilitator {
    child: Child,
    // It ends when this is closed, for example because the test was killed.
    _input: ChildStdin,
    url: String,
    lines: Receiver<String>,
}

impl Facilitator {
    pub(crate) fn start(chain: &Chain) -> Self {
        let gas = chain.wallet().new_account();
        let mut command = Command::new("node");
        command.arg(folder().join("facilitator.mjs")).arg(chain.url()).env("GAS_KEY", gas.private_key());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let url = lines.recv_timeout(TIMEOUT).expect("the facilitator reports its URL");
        Self { child, _input: input, url, lines }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The requests since the last time, such as `POST /verify 200 {…}`.
    fn seen(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }
}

impl Drop for Facilitator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn terms(facilitator: &Facilitator) -> Terms {
    let settle = format!("settle = 'facilitator'\nfacilitator = '{}'\n", facilitator.url);
    Terms { settle: Some(settle), ..Terms::default() }
}

#[test]
fn reference_facilitator_executes_payments_of_both_versions_and_takes_nothing_while_it_is_down() {
    let Some(chain) = chain(Chain::setup()) else { return };
    let facilitator = Facilitator::start(&chain);
    let market = Market::on(chain, &terms(&facilitator));
    market.wait_for_offers();
    for stock in [Stock::Fetch, Stock::FetchV1] {
        let (payer, account) = (market.chain.wallet().poor_account(), market.site.account("0"));
        let usdc = metering_tests::chain::wallet::authorizations::USDC;
        market.chain.wallet().mint(usdc, &payer.address(), 50_000);
        let calls = market.call(stock, &payer, Some(&account.api_key), BASE, 2);
        let statuses: Vec<_> = calls.iter().map(|call| (call.status(), call.requests().len())).collect();
        let seen = facilitator.seen();
        assert_eq!(statuses, [(200, 2), (200, 1)], "{calls:?}: {seen:?}");
        assert_eq!(calls[0].receipt()["extra"]["account"], account.org_id.as_str());
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen[0].starts_with("POST /verify 200 ") && seen[0].contains(r#""isValid":true"#), "{seen:?}");
        assert!(seen[1].starts_with("POST /settle 200 ") && seen[1].contains(r#""success":true"#), "{seen:?}");
        let listed = format!(r#""listed":"GET http://{}{BASE}""#, market.server.address());
        assert!(seen[1].contains(&listed), "{seen:?}");
        assert_eq!(market.chain.wallet().token_balance(usdc, &payer.address()), "0");
        let left = balance(&market.server.client_with(&account.api_key));
        assert_eq!(left, amount(CREDIT / 20 - 2 * BASE_CALL));
    }
    drop(facilitator);
    let (payer, account) = (market.payer(), market.site.account("0"));
    let call = market.call(Stock::Fetch, &payer, Some(&account.api_key), BASE, 1).remove(0);
    assert_eq!((call.status(), call.error()), (503, "settlement_unavailable".to_owned()), "{call:?}");
    assert_eq!(call.requests().len(), 2);
    assert_eq!(market.held_by(&payer), PURSE);
}
