//! Fetches blocks from the service, with retries.

use std::pin::pin;
use std::time::Duration;

use metering_client::{Client, ClientError, Response};
use tokio::time::{sleep, timeout};

use crate::client::charging::catch_up::block::{Block, BlockNumber};
use crate::client::charging::catch_up::retry::{self, Verdict};
use crate::client::charging::catch_up::walk::{Feed, FetchedBlock};
use crate::client::money::amount::Amount;
use crate::client::session::interruption::Interruption;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::table::printable;

/// The route of the latest finalized block; with a number appended, of that block.
const ROUTE: &str = "/mpp/snapshot/allTrades";

/// How long to wait, after an interruption, for a block that is already requested and charged.
const FINAL_BLOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The service.
pub(super) struct Service {
    client: Client,
    interruption: Interruption,
    pause_max: Duration,
    progress: Progress,
    balance: Option<Amount>,
    /// The user wants to stop: no more requests are sent.
    ending: bool,
}

impl Service {
    pub(super) fn new(client: Client, interruption: Interruption, pause_max: Duration, progress: Progress) -> Self {
        Self { client, interruption, pause_max, progress, balance: None, ending: false }
    }

    /// The balance in the last response.
    pub(super) fn balance(&self) -> Option<Amount> {
        self.balance.clone()
    }

    /// Sends a request, with retries. The inner `Err` is the service's final error.
    async fn request(&mut self, target: &str) -> Result<Result<Response, (ClientError, Verdict)>, Failure> {
        let mut retries = retry::policy(self.pause_max).start();
        loop {
            let error = match self.send_once(target).await? {
                Ok(response) => {
                    self.note_balance(response.credit_balance());
                    return Ok(Ok(response));
                }
                Err(error) => error,
            };
            if let ClientError::Refused(refusal) = &error {
                self.note_balance(refusal.field("credit_balance").as_deref());
            }
            let verdict = retry::judge(&error);
            let next = (verdict == Verdict::Retry).then(|| retries.next_wait(error.retry_after(), Duration::ZERO));
            let Some(pause) = next.flatten() else { return Ok(Err((error, verdict))) };
            self.progress.message(&printable(&format!("{error}; retrying in {} s", pause.as_secs_f32())));
            self.pause(pause).await?;
        }
    }

    /// Sends one request. A request in flight when the user stops is already charged, so it gets a moment to finish.
    async fn send_once(&mut self, target: &str) -> Result<Result<Response, ClientError>, Failure> {
        if self.ending || self.interruption.has_come().await {
            return Err(interrupted());
        }
        let mut request = pin!(self.client.get(target));
        tokio::select! {
            response = &mut request => return Ok(response),
            () = self.interruption.next() => {}
        }
        self.ending = true;
        tokio::select! {
            response = &mut request => Ok(Ok(response.map_err(|_| interrupted())?)),
            () = self.interruption.next() => Err(interrupted()),
            () = sleep(FINAL_BLOCK_TIMEOUT) => Err(interrupted()),
        }
    }

    async fn pause(&mut self, pause: Duration) -> Result<(), Failure> {
        match timeout(pause, self.interruption.next()).await {
            Ok(()) => Err(interrupted()),
            Err(_) => Ok(()),
        }
    }

    fn note_balance(&mut self, balance: Option<&str>) {
        if let Some(balance) = balance.and_then(|text| serde_json::from_str(text).ok()) {
            self.balance = Some(balance);
        }
    }
}

impl Feed for Service {
    async fn latest(&mut self) -> Result<Block, Failure> {
        match self.request(ROUTE).await? {
            Ok(response) => read("the latest block", &response),
            Err((error, _)) => Err(error.into()),
        }
    }

    async fn block(&mut self, number: BlockNumber) -> Result<FetchedBlock, Failure> {
        match self.request(&format!("{ROUTE}/{number}")).await? {
            Ok(response) => {
                let block = read(&format!("block {number}"), &response)?;
                if block.number == number {
                    return Ok(FetchedBlock::Block(block));
                }
                let problem = format!("is block {}", block.number);
                Err(unusable(&format!("block {number}"), &problem, &response))
            }
            Err((error, Verdict::Missing)) => Ok(FetchedBlock::Missing(error.to_string())),
            Err((error, _)) if error.code() == Some("block_not_final") => Err(Failure::TryLater(format!(
                "block {number} is not final although a later one is; the service may have been restored: {error}"
            ))),
            Err((error, _)) => Err(error.into()),
        }
    }
}

fn read(what: &str, response: &Response) -> Result<Block, Failure> {
    Block::read(&response.body).map_err(|problem| unusable(what, &problem.to_string(), response))
}

/// The failure for a response that is not the requested block.
fn unusable(what: &str, problem: &str, response: &Response) -> Failure {
    let charged = response.credits_charged().map(|charged| format!(", though it was charged ({charged} credits)"));
    Failure::Failed(format!(
        "the service's response for {what} {problem}; it was not written{}, and the cursor did not move",
        charged.unwrap_or_default()
    ))
}

fn interrupted() -> Failure {
    Failure::Interrupted("interrupted; run the command again to continue".to_owned())
}
