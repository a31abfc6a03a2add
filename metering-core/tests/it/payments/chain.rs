//! An in-memory chain that replaces a node.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use metering_core::Clock;
use metering_core::chains::{
    AccountCode, Address, Block, BlockHash, ChainError, ChainReader, Depth, Evidence, Heights, NativeTransfer,
    PaymentsFound, PendingTransaction, TokenTransfer, TokenUnits, TransactionStatus, TxHash,
};

/// The depth at which a block is final.
pub(super) const FINAL: u64 = 20;

/// A chain with one transaction per block.
#[derive(Debug)]
pub(super) struct FakeChain {
    clock: Arc<dyn Clock>,
    required: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    head: u64,
    /// The heights from which its blocks were replaced, in order of the reorganisations.
    forks: Vec<u64>,
    mined: BTreeMap<TxHash, Evidence>,
    pending: HashMap<TxHash, Evidence>,
    /// Transactions that were sent but never mined, and whose effect is visible.
    sent: HashMap<TxHash, PendingTransaction>,
    tokens: HashMap<Address, u8>,
    contracts: HashSet<Address>,
    /// The signatures that contract wallets accept: wallet, digest and signature.
    accepted: HashSet<(Address, [u8; 32], Vec<u8>)>,
    trouble: Option<ChainError>,
    /// Transactions that cannot be read, and the error for each.
    spoiled: HashMap<TxHash, ChainError>,
    looked_at: u64,
    last_hash: u64,
}

impl State {
    /// The hash of the block at a height, which changes with each reorganisation at or below it.
    fn block_hash(&self, number: u64) -> Option<BlockHash> {
        let mut hash = [0xB1; 32];
        hash[..8].copy_from_slice(&number.to_be_bytes());
        hash[8..16].copy_from_slice(&self.forks.iter().filter(|fork| **fork <= number).count().to_be_bytes());
        (number <= self.head).then_some(hash)
    }
}

impl FakeChain {
    /// A chain where a payment needs `required` confirmations.
    pub(super) fn new(clock: Arc<dyn Clock>, required: u64) -> Arc<Self> {
        Arc::new(Self { clock, required, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Deploys a token with `decimals` decimals.
    pub(super) fn deploy_token(&self, token: Address, decimals: u8) {
        self.state().tokens.insert(token, decimals);
    }

    /// Deploys a contract at an address.
    pub(super) fn deploy_contract(&self, address: Address) {
        self.state().contracts.insert(address);
    }

    /// Makes a contract wallet accept a signature.
    pub(super) fn accept(&self, wallet: Address, digest: [u8; 32], signature: &[u8]) {
        self.state().accepted.insert((wallet, digest, signature.to_vec()));
    }

    /// Mines a transaction with these transfers in the next block.
    pub(super) fn mine(&self, succeeded: bool, native: NativeTransfer, transfers: Vec<TokenTransfer>) -> TxHash {
        let time = self.clock.now();
        let mut state = self.state();
        state.head += 1;
        state.last_hash += 1;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&state.last_hash.to_be_bytes());
        let hash = TxHash::from_bytes(bytes);
        let hash_of_block = state.block_hash(state.head).expect("the head has a hash");
        let block = Block { number: state.head, hash: hash_of_block, time };
        let depth = Depth { confirmations: 1, required: self.required };
        state.mined.insert(hash, Evidence { succeeded, block, depth, native: Some(native), transfers });
        hash
    }

    /// Mines a token transfer, sent by its owner.
    pub(super) fn pay(&self, token: Address, from: Address, to: Address, units: u128) -> TxHash {
        if token == Address::ZERO {
            let native = NativeTransfer { from, to: Some(to), value: TokenUnits::new(units), has_input: false };
            return self.mine(true, native, Vec::new());
        }
        let native = NativeTransfer { from, to: Some(token), value: TokenUnits::ZERO, has_input: true };
        self.mine(true, native, vec![TokenTransfer { token, from, to, value: TokenUnits::new(units) }])
    }

    /// Sends a transaction that is never mined.
    pub(super) fn send(&self, transaction: PendingTransaction) -> TxHash {
        let mut state = self.state();
        state.last_hash += 1;
        let mut bytes = [0xee; 32];
        bytes[..8].copy_from_slice(&state.last_hash.to_be_bytes());
        let hash = TxHash::from_bytes(bytes);
        state.sent.insert(hash, transaction);
        hash
    }

    /// Adds blocks on top.
    pub(super) fn grow(&self, blocks: u64) {
        self.state().head += blocks;
    }

    /// Replaces a transaction's block and all later ones by blocks without it: the transaction is pending again.
    pub(super) fn reorganise(&self, hash: TxHash) {
        let mut state = self.state();
        let removed = state.mined.remove(&hash).expect("the transaction is mined");
        state.forks.push(removed.block.number);
        state.pending.insert(hash, removed);
        let moved: Vec<_> = state.mined.keys().copied().collect();
        for hash in moved {
            let number = state.mined[&hash].block.number;
            let block_hash = state.block_hash(number).expect("the block is not above the head");
            state.mined.get_mut(&hash).expect("the transaction is mined").block.hash = block_hash;
        }
    }

    /// Goes back to a height. All transactions above it become pending again, and new blocks will replace theirs.
    pub(super) fn cut(&self, height: u64) {
        let mut state = self.state();
        state.forks.push(height + 1);
        state.head = height;
        let removed: Vec<_> =
            state.mined.iter().filter(|(_, seen)| seen.block.number > height).map(|(hash, _)| *hash).collect();
        for hash in removed {
            let evidence = state.mined.remove(&hash).expect("the transaction is mined");
            state.pending.insert(hash, evidence);
        }
    }

    /// The number of the newest block.
    pub(super) fn head(&self) -> u64 {
        self.state().head
    }

    /// Mines a transaction that a reorganisation removed, in the next block.
    pub(super) fn mine_again(&self, hash: TxHash) {
        let mut state = self.state();
        let mut evidence = state.pending.remove(&hash).expect("the transaction is pending");
        state.head += 1;
        evidence.block = Block {
            number: state.head,
            hash: state.block_hash(state.head).expect("the head has a hash"),
            time: self.clock.now(),
        };
        state.mined.insert(hash, evidence);
    }

    /// Changes the effect of a pending transaction.
    pub(super) fn alter_pending(&self, hash: TxHash, alter: impl FnOnce(&mut Evidence)) {
        alter(self.state().pending.get_mut(&hash).expect("the transaction is pending"));
    }

    /// Has never had a transaction, although its block is unchanged: a source had invented it.
    pub(super) fn disown(&self, hash: TxHash) {
        let _ = self.state().mined.remove(&hash).expect("the transaction is mined");
    }

    /// Makes every read fail, or work again.
    pub(super) fn trouble(&self, trouble: Option<ChainError>) {
        self.state().trouble = trouble;
    }

    /// Makes one transaction unreadable, or readable again.
    pub(super) fn spoil(&self, hash: TxHash, error: Option<ChainError>) {
        let mut state = self.state();
        match error {
            Some(error) => state.spoiled.insert(hash, error),
            None => state.spoiled.remove(&hash),
        };
    }

    /// How often transactions were read.
    pub(super) fn looked_at(&self) -> u64 {
        self.state().looked_at
    }

    /// All transactions, which are public.
    pub(super) fn all(&self) -> Vec<(TxHash, Evidence)> {
        self.state().mined.iter().map(|(hash, evidence)| (*hash, evidence.clone())).collect()
    }
}

fn readable(state: &State) -> Result<(), ChainError> {
    state.trouble.clone().map_or(Ok(()), Err)
}

#[async_trait]
impl ChainReader for FakeChain {
    async fn transaction(&self, hash: &TxHash) -> Result<TransactionStatus, ChainError> {
        let mut state = self.state();
        state.looked_at += 1;
        readable(&state)?;
        if let Some(error) = state.spoiled.get(hash) {
            return Err(error.clone());
        }
        let Some(evidence) = state.mined.get(hash) else {
            let transaction = state.sent.get(hash).cloned().map(Box::new);
            let pending = transaction.is_some() || state.pending.contains_key(hash);
            let required = self.required;
            return Ok(if pending {
                TransactionStatus::Pending { required, transaction }
            } else {
                TransactionStatus::Unknown
            });
        };
        let confirmations = state.head - evidence.block.number + 1;
        Ok(TransactionStatus::Mined(Evidence {
            depth: Depth { confirmations, required: self.required },
            ..evidence.clone()
        }))
    }

    async fn heights(&self) -> Result<Heights, ChainError> {
        let state = self.state();
        readable(&state)?;
        let at_depth = |depth: u64| (state.head + 1).saturating_sub(depth);
        Ok(Heights {
            newest: state.head,
            confirmed: at_depth(self.required),
            finalized: at_depth(FINAL.max(self.required)),
        })
    }

    async fn block_hashes(&self, numbers: &[u64]) -> Result<Vec<Option<BlockHash>>, ChainError> {
        let state = self.state();
        readable(&state)?;
        Ok(numbers.iter().map(|number| state.block_hash(*number)).collect())
    }

    fn confirmations(&self) -> Option<u32> {
        u32::try_from(self.required).ok()
    }

    async fn payments_to(
        &self,
        recipient: Address,
        tokens: &[Address],
        from_block: u64,
        to_block: u64,
    ) -> Result<PaymentsFound, ChainError> {
        let state = self.state();
        readable(&state)?;
        let pays = |evidence: &Evidence| {
            let by_token = evidence.transfers.iter().any(|t| t.to == recipient && tokens.contains(&t.token));
            let coins = |native: NativeTransfer| native.to == Some(recipient) && native.value.get() > 0;
            by_token || (tokens.contains(&Address::ZERO) && evidence.native.is_some_and(coins))
        };
        let mut found: Vec<_> = state
            .mined
            .iter()
            .filter(|(_, evidence)| (from_block..=to_block).contains(&evidence.block.number) && pays(evidence))
            .collect();
        found.sort_by_key(|(_, evidence)| evidence.block.number);
        Ok(PaymentsFound {
            transactions: found.into_iter().map(|(hash, evidence)| (evidence.block.number, *hash)).collect(),
            unreadable_blocks: Vec::new(),
        })
    }

    async fn token_decimals(&self, token: Address) -> Result<Option<u8>, ChainError> {
        let state = self.state();
        readable(&state)?;
        Ok(state.tokens.get(&token).copied())
    }

    async fn code(&self, address: Address) -> Result<AccountCode, ChainError> {
        let state = self.state();
        readable(&state)?;
        let is_contract = state.contracts.contains(&address);
        Ok(if is_contract { AccountCode::Contract } else { AccountCode::Empty })
    }

    async fn accepts_signature(&self, wallet: Address, digest: [u8; 32], signature: &[u8]) -> Result<bool, ChainError> {
        let state = self.state();
        readable(&state)?;
        Ok(state.accepted.contains(&(wallet, digest, signature.to_vec())))
    }
}
