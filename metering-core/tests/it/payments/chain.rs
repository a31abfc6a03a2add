//! A chain in memory: what a reader would say of it, without a node.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use metering_core::{
    Address, Block, ChainError, ChainReader, Clock, Depth, Evidence, NativeTransfer, Sighting, TokenTransfer,
    TokenUnits, TxHash,
};

/// A chain whose blocks hold one transaction each.
#[derive(Debug)]
pub(super) struct FakeChain {
    clock: Arc<dyn Clock>,
    required: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    head: u64,
    mined: BTreeMap<TxHash, Evidence>,
    pending: HashSet<TxHash>,
    tokens: HashMap<Address, u8>,
    contracts: HashSet<Address>,
    /// What the contract wallets accept: wallet, digest and signature.
    accepted: HashSet<(Address, [u8; 32], Vec<u8>)>,
    trouble: Option<ChainError>,
    looked_at: u64,
    last_hash: u64,
}

impl FakeChain {
    /// A chain where a payment needs so many confirmations.
    pub(super) fn new(clock: Arc<dyn Clock>, required: u64) -> Arc<Self> {
        Arc::new(Self { clock, required, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// A token's contract with so many decimals.
    pub(super) fn deploy_token(&self, token: Address, decimals: u8) {
        self.state().tokens.insert(token, decimals);
    }

    /// A contract at an address.
    pub(super) fn deploy_contract(&self, address: Address) {
        self.state().contracts.insert(address);
    }

    /// Lets a contract wallet accept a signature.
    pub(super) fn accept(&self, wallet: Address, digest: [u8; 32], signature: &[u8]) {
        self.state().accepted.insert((wallet, digest, signature.to_vec()));
    }

    /// Puts the transaction that these transfers make into the next block.
    pub(super) fn mine(&self, succeeded: bool, native: NativeTransfer, transfers: Vec<TokenTransfer>) -> TxHash {
        let time = self.clock.now();
        let mut state = self.state();
        state.head += 1;
        state.last_hash += 1;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&state.last_hash.to_be_bytes());
        let hash = TxHash::from_bytes(bytes);
        let block = Block { number: state.head, hash: bytes, time };
        let depth = Depth { confirmations: 1, required: self.required };
        state.mined.insert(hash, Evidence { succeeded, block, depth, native: Some(native), transfers });
        hash
    }

    /// A transfer of a token, sent by its owner.
    pub(super) fn pay(&self, token: Address, from: Address, to: Address, units: u128) -> TxHash {
        if token == Address::ZERO {
            let native = NativeTransfer { from, to: Some(to), value: TokenUnits::new(units), has_input: false };
            return self.mine(true, native, Vec::new());
        }
        let native = NativeTransfer { from, to: Some(token), value: TokenUnits::ZERO, has_input: true };
        self.mine(true, native, vec![TokenTransfer { token, from, to, value: TokenUnits::new(units) }])
    }

    /// More blocks on top.
    pub(super) fn grow(&self, blocks: u64) {
        self.state().head += blocks;
    }

    /// Takes a transaction out of its block; it is known, and in none.
    pub(super) fn reorganise(&self, hash: TxHash) {
        let mut state = self.state();
        state.mined.remove(&hash);
        state.pending.insert(hash);
    }

    /// Lets every reading fail, or work again.
    pub(super) fn trouble(&self, trouble: Option<ChainError>) {
        self.state().trouble = trouble;
    }

    /// How often a transaction was looked at.
    pub(super) fn looked_at(&self) -> u64 {
        self.state().looked_at
    }

    /// All transactions there are: everybody sees them.
    pub(super) fn all(&self) -> Vec<(TxHash, Evidence)> {
        self.state().mined.iter().map(|(hash, evidence)| (*hash, evidence.clone())).collect()
    }
}

fn readable(state: &State) -> Result<(), ChainError> {
    state.trouble.clone().map_or(Ok(()), Err)
}

#[async_trait]
impl ChainReader for FakeChain {
    async fn transaction(&self, hash: &TxHash) -> Result<Sighting, ChainError> {
        let mut state = self.state();
        state.looked_at += 1;
        readable(&state)?;
        let Some(evidence) = state.mined.get(hash) else {
            let pending = state.pending.contains(hash);
            return Ok(if pending { Sighting::Pending { required: self.required } } else { Sighting::Unknown });
        };
        let confirmations = state.head - evidence.block.number + 1;
        Ok(Sighting::Mined(Evidence { depth: Depth { confirmations, required: self.required }, ..evidence.clone() }))
    }

    async fn settled_block(&self) -> Result<u64, ChainError> {
        let state = self.state();
        readable(&state)?;
        Ok((state.head + 1).saturating_sub(self.required))
    }

    async fn payments_to(
        &self,
        recipient: Address,
        tokens: &[Address],
        from_block: u64,
        to_block: u64,
    ) -> Result<Vec<TxHash>, ChainError> {
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
        Ok(found.into_iter().map(|(hash, _)| *hash).collect())
    }

    async fn token_decimals(&self, token: Address) -> Result<Option<u8>, ChainError> {
        let state = self.state();
        readable(&state)?;
        Ok(state.tokens.get(&token).copied())
    }

    async fn has_code(&self, address: Address) -> Result<bool, ChainError> {
        let state = self.state();
        readable(&state)?;
        Ok(state.contracts.contains(&address))
    }

    async fn accepts_signature(&self, wallet: Address, digest: [u8; 32], signature: &[u8]) -> Result<bool, ChainError> {
        let state = self.state();
        readable(&state)?;
        Ok(state.accepted.contains(&(wallet, digest, signature.to_vec())))
    }
}
