//! How one process sees the chain: it can fail, lag, lie, or stop in the middle of anything.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use metering_core::chains::{
    AccountCode, Address, BlockHash, ChainError, ChainReader, Heights, PaymentsFound, TokenUnits, TransactionStatus,
    TxHash,
};
use metering_core::{Clock, Timestamp};
use metering_pay::offers::{
    Asset, AuthorizationId, Facilitator, FacilitatorError, GasFunds, Listing, Offer, SignedAuthorization, Spendable,
    Submission, SubmitError, Submitter, TokenReader, UPTO_PROXY,
};

use super::ledger::{CHAIN, Call, GAS, Ledger, TOKEN, Tx, domain};

#[derive(Debug)]
pub(super) struct Node {
    pub(super) ledger: Arc<Mutex<Ledger>>,
    clock: Arc<dyn Clock>,
    /// The signed transactions, by hash.
    signed: Arc<Mutex<Vec<Tx>>>,
    /// After how many calls the process stops.
    pub(super) calls_left: AtomicU64,
    /// How long each call takes.
    pub(super) slowness: Mutex<Duration>,
    /// Whether a transaction is mined as soon as it is sent.
    pub(super) mines: AtomicBool,
    pub(super) has_gas: AtomicBool,
    pub(super) is_down: AtomicBool,
    /// How often the contract's state is reported as unused although it is used.
    pub(super) lag: AtomicU32,
    /// Whether the contract's state is reported as used although it is not.
    pub(super) lies: AtomicBool,
    pub(super) loses_sent: AtomicBool,
    pub(super) sent: AtomicU32,
    pub(super) settled: AtomicU32,
    /// The facilitator's behaviour.
    pub(super) facilitator: Mutex<FacilitatorMood>,
    /// The resources it received for listing.
    pub(super) listed: Mutex<Vec<Listing>>,
}

/// How a facilitator responds to a request to execute a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FacilitatorMood {
    Executes,
    /// It executes the payment, and its response is lost.
    LosesResponse,
    Refuses,
    Down,
}

impl Node {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            ledger: Arc::default(),
            clock,
            signed: Arc::default(),
            calls_left: AtomicU64::new(u64::MAX),
            slowness: Mutex::default(),
            mines: true.into(),
            has_gas: true.into(),
            is_down: false.into(),
            lag: 0.into(),
            lies: false.into(),
            loses_sent: false.into(),
            sent: 0.into(),
            settled: 0.into(),
            facilitator: Mutex::new(FacilitatorMood::Executes),
            listed: Mutex::default(),
        }
    }

    /// Another process that uses the same chain.
    pub(super) fn another(&self) -> Self {
        let (ledger, signed) = (Arc::clone(&self.ledger), Arc::clone(&self.signed));
        Self { ledger, signed, ..Self::new(Arc::clone(&self.clock)) }
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }

    pub(super) fn mine(&self) {
        self.ledger().mine(self.clock.now());
    }

    /// A stranger's transaction, mined at once.
    pub(super) fn by_stranger(&self, calls: Vec<Call>) -> TxHash {
        let hash = self.ledger().next_hash();
        self.ledger().mempool.push(Tx { hash, place: None, calls });
        self.mine();
        hash
    }

    /// Counts a call. A process that stopped never continues.
    async fn call(&self) -> Result<(), ChainError> {
        let left = self.calls_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_err() {
            std::future::pending::<()>().await;
        }
        let slowness = *self.slowness.lock().unwrap();
        if !slowness.is_zero() {
            tokio::time::sleep(slowness).await;
        }
        match self.is_down.load(Ordering::SeqCst) {
            true => Err(ChainError::Unavailable("timeout".to_owned())),
            false => Ok(()),
        }
    }

    fn submission(&self, place: u64, calls: Vec<Call>, now: Timestamp) -> Submission {
        let hash = self.ledger().next_hash();
        self.signed.lock().unwrap().push(Tx { hash, place: Some(place), calls });
        Submission { hash, raw: hash.to_string().into_bytes(), signed_at: now }
    }
}

#[async_trait]
impl ChainReader for Node {
    async fn transaction(&self, hash: &TxHash) -> Result<TransactionStatus, ChainError> {
        self.call().await?;
        let ledger = self.ledger();
        Ok(match ledger.world().receipts.remove(hash) {
            Some(evidence) => TransactionStatus::Mined(evidence),
            None if ledger.mempool.iter().any(|tx| tx.hash == *hash) => {
                TransactionStatus::Pending { required: 1, transaction: None }
            }
            None => TransactionStatus::Unknown,
        })
    }

    async fn heights(&self) -> Result<Heights, ChainError> {
        self.call().await?;
        let ledger = self.ledger();
        Ok(Heights { newest: ledger.height(), confirmed: ledger.height(), finalized: ledger.finalized() })
    }

    async fn block_hashes(&self, numbers: &[u64]) -> Result<Vec<Option<BlockHash>>, ChainError> {
        self.call().await?;
        Ok(numbers.iter().map(|number| self.ledger().block_hash(*number)).collect())
    }

    fn confirmations(&self) -> Option<u32> {
        Some(1)
    }

    async fn payments_to(&self, _: Address, _: &[Address], _: u64, _: u64) -> Result<PaymentsFound, ChainError> {
        Ok(PaymentsFound::default())
    }

    async fn token_decimals(&self, _: Address) -> Result<Option<u8>, ChainError> {
        Ok(Some(6))
    }

    async fn code(&self, address: Address) -> Result<AccountCode, ChainError> {
        self.call().await?;
        let is_contract = address == UPTO_PROXY || self.ledger().contracts.contains(&address);
        Ok(if is_contract { AccountCode::Contract } else { AccountCode::Empty })
    }

    async fn accepts_signature(&self, wallet: Address, digest: [u8; 32], signature: &[u8]) -> Result<bool, ChainError> {
        self.call().await?;
        Ok(self.ledger().accepted.contains(&(wallet, digest, signature.to_vec())))
    }
}

#[async_trait]
impl TokenReader for Node {
    async fn asset(&self, token: Address) -> Result<Option<Asset>, ChainError> {
        self.call().await?;
        Ok((token == TOKEN).then(|| Asset { domain: domain(), decimals: 6 }))
    }

    async fn is_used(&self, id: &AuthorizationId) -> Result<bool, ChainError> {
        self.call().await?;
        assert_eq!((id.chain_id, id.token), (CHAIN, TOKEN));
        let is_used = self.ledger().world().used.contains_key(&(id.payer, id.nonce));
        let lags = || self.lag.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |lag| lag.checked_sub(1)).is_ok();
        Ok(if is_used { !lags() } else { self.lies.load(Ordering::SeqCst) })
    }

    async fn executed_in(&self, id: &AuthorizationId, since: Timestamp) -> Result<Option<TxHash>, ChainError> {
        self.call().await?;
        let used = self.ledger().world().used.get(&(id.payer, id.nonce)).copied().flatten();
        Ok(used.filter(|(_, time)| *time >= since).map(|(hash, _)| hash))
    }

    async fn is_permit_used(&self, id: &AuthorizationId) -> Result<bool, ChainError> {
        self.is_used(id).await
    }

    async fn spendable(&self, token: Address, owner: Address) -> Result<Spendable, ChainError> {
        self.call().await?;
        assert_eq!(token, TOKEN);
        let ledger = self.ledger();
        let balance = ledger.world().balances.get(&owner).copied().unwrap_or_default();
        let allowance = ledger.allowances.get(&owner).copied().unwrap_or(u128::MAX);
        Ok(Spendable { balance: TokenUnits::new(balance), allowance: TokenUnits::new(allowance) })
    }
}

/// The call that executes an authorization, or a part of a permit.
fn call_of(signed: &SignedAuthorization, used: Option<TokenUnits>) -> Call {
    used.map_or_else(|| Call::Execute(signed.clone()), |used| Call::Settle(signed.clone(), used))
}

#[async_trait]
impl Submitter for Node {
    fn wallet(&self) -> Address {
        GAS
    }

    async fn mined(&self) -> Result<u64, SubmitError> {
        self.call().await?;
        Ok(self.ledger().world().gas_mined)
    }

    async fn funds(&self) -> Result<GasFunds, SubmitError> {
        self.call().await?;
        let balance = TokenUnits::new(u128::from(self.has_gas.load(Ordering::SeqCst)));
        Ok(GasFunds { balance, cost: TokenUnits::new(1) })
    }

    async fn check(&self, signed: &SignedAuthorization, used: Option<TokenUnits>) -> Result<(), SubmitError> {
        self.call().await?;
        if !self.has_gas.load(Ordering::SeqCst) {
            return Err(SubmitError::ShortOfGas { have: TokenUnits::ZERO, need: TokenUnits::new(1) });
        }
        self.ledger().simulate(&call_of(signed, used), self.clock.now()).map_err(SubmitError::WouldFail)
    }

    async fn sign(
        &self,
        signed: &SignedAuthorization,
        used: Option<TokenUnits>,
        place: u64,
        replaced: &[Submission],
        now: Timestamp,
    ) -> Result<Submission, SubmitError> {
        Submitter::check(self, signed, used).await?;
        let known = self.signed.lock().unwrap().clone();
        let is_known =
            |submission: &Submission| known.iter().any(|tx| tx.hash == submission.hash && tx.place <= Some(place));
        assert!(replaced.iter().all(is_known));
        Ok(self.submission(place, vec![call_of(signed, used)], now))
    }

    async fn sign_nothing(&self, place: u64, _: &[Submission], now: Timestamp) -> Result<Submission, SubmitError> {
        self.call().await?;
        Ok(self.submission(place, Vec::new(), now))
    }

    async fn send(&self, submission: &Submission) -> Result<(), SubmitError> {
        self.call().await?;
        self.sent.fetch_add(1, Ordering::SeqCst);
        if self.loses_sent.load(Ordering::SeqCst) {
            return Ok(());
        }
        let known = self.signed.lock().unwrap().clone();
        let tx = known.into_iter().find(|tx| tx.hash == submission.hash).unwrap();
        if tx.place < Some(self.ledger().world().gas_mined) {
            return Err(SubmitError::PlaceTaken);
        }
        self.ledger().mempool.push(tx);
        if self.mines.load(Ordering::SeqCst) {
            self.mine();
        }
        Ok(())
    }
}

#[async_trait]
impl Facilitator for Node {
    async fn verify(
        &self,
        signed: &SignedAuthorization,
        _: &Offer,
        listing: Option<&Listing>,
    ) -> Result<(), FacilitatorError> {
        self.listed.lock().unwrap().extend(listing.cloned());
        let unreachable = |error: ChainError| FacilitatorError::Unavailable(error.to_string());
        self.call().await.map_err(unreachable)?;
        let simulated = self.ledger().simulate(&Call::Execute(signed.clone()), self.clock.now());
        simulated.map_err(FacilitatorError::Refused)
    }

    async fn settle(
        &self,
        signed: &SignedAuthorization,
        offer: &Offer,
        listing: Option<&Listing>,
    ) -> Result<TxHash, FacilitatorError> {
        self.settled.fetch_add(1, Ordering::SeqCst);
        assert_eq!((offer.asset.domain.clone(), offer.amount), (domain(), signed.authorization.value));
        let mood = *self.facilitator.lock().unwrap();
        match mood {
            FacilitatorMood::Down => return Err(FacilitatorError::Unavailable("refused".to_owned())),
            FacilitatorMood::Refuses => return Err(FacilitatorError::Refused("sanctions".to_owned())),
            FacilitatorMood::Executes | FacilitatorMood::LosesResponse => {}
        }
        self.verify(signed, offer, listing).await?;
        let hash = self.by_stranger(vec![Call::Execute(signed.clone())]);
        match mood {
            FacilitatorMood::LosesResponse => Err(FacilitatorError::Unfinished("timeout".to_owned())),
            _ => Ok(hash),
        }
    }
}
