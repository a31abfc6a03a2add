// In-memory replacements of a chain and a wallet.
//
// Not a `//!` header, because the doc tests of the crate include this file.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use k256::ecdsa::SigningKey;
use metering_core::chains::{
    AccountCode, Address, Block, BlockHash, Chain, ChainError, ChainReader, Depth, Evidence, Heights, NativeTransfer,
    PaymentsFound, TokenTransfer, TokenUnits, TransactionStatus, TxHash, WalletSignature, signer, signing_digest,
};
use metering_core::{Clock, SystemClock};

/// The id of the chain.
pub(crate) const CHAIN_ID: u64 = 8453;
/// The token that plans are paid in; it has 6 decimals.
pub(crate) const USDC: Address = Address::from_bytes([0xC0; 20]);
/// A block is final at this number of confirmations.
const FINAL_AT: u64 = 3;

/// A chain that mines each payment immediately, in its own block. One confirmation is enough.
#[derive(Debug, Default)]
pub(crate) struct MemoryChain {
    state: Mutex<ChainState>,
}

#[derive(Debug, Default)]
struct ChainState {
    height: u64,
    mined: BTreeMap<TxHash, Evidence>,
}

impl MemoryChain {
    /// The chain as the service's clients see it.
    pub(crate) fn listed(&self) -> Chain {
        Chain {
            chain_id: CHAIN_ID,
            name: "Base".to_owned(),
            public_rpc_url: String::new(),
            recipient: Address::from_bytes([0x5E; 20]),
            confirmations: 1,
            explorer_url: String::new(),
        }
    }

    /// Sends USDC, and returns the transaction's hash.
    pub(crate) fn pay(&self, from: Address, to: Address, amount: TokenUnits) -> TxHash {
        let mut state = self.state();
        state.height += 1;
        let (number, time) = (state.height, SystemClock.now());
        let native = NativeTransfer { from, to: Some(USDC), value: TokenUnits::ZERO, has_input: true };
        let evidence = Evidence {
            succeeded: true,
            block: Block { number, hash: block_hash(number), time },
            depth: Depth { confirmations: 1, required: 1 },
            native: Some(native),
            transfers: vec![TokenTransfer { token: USDC, from, to, value: amount }],
        };
        let hash = TxHash::from_bytes(block_hash(number));
        state.mined.insert(hash, evidence);
        hash
    }

    /// Adds empty blocks.
    pub(crate) fn grow(&self, blocks: u64) {
        self.state().height += blocks;
    }

    fn state(&self) -> MutexGuard<'_, ChainState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn block_hash(number: u64) -> BlockHash {
    let mut hash = [0xB1; 32];
    hash[..8].copy_from_slice(&number.to_be_bytes());
    hash
}

#[async_trait]
impl ChainReader for MemoryChain {
    async fn transaction(&self, hash: &TxHash) -> Result<TransactionStatus, ChainError> {
        let state = self.state();
        let Some(evidence) = state.mined.get(hash) else { return Ok(TransactionStatus::Unknown) };
        let confirmations = state.height - evidence.block.number + 1;
        let depth = Depth { confirmations, ..evidence.depth };
        Ok(TransactionStatus::Mined(Evidence { depth, ..evidence.clone() }))
    }

    async fn heights(&self) -> Result<Heights, ChainError> {
        let newest = self.state().height;
        Ok(Heights { newest, confirmed: newest, finalized: (newest + 1).saturating_sub(FINAL_AT) })
    }

    async fn block_hashes(&self, numbers: &[u64]) -> Result<Vec<Option<BlockHash>>, ChainError> {
        let newest = self.state().height;
        Ok(numbers.iter().map(|number| (*number <= newest).then(|| block_hash(*number))).collect())
    }

    fn confirmations(&self) -> Option<u32> {
        Some(1)
    }

    async fn payments_to(
        &self,
        recipient: Address,
        tokens: &[Address],
        from_block: u64,
        to_block: u64,
    ) -> Result<PaymentsFound, ChainError> {
        let state = self.state();
        let pays = |transfer: &TokenTransfer| transfer.to == recipient && tokens.contains(&transfer.token);
        let mut found = PaymentsFound::default();
        for (hash, Evidence { block, transfers, .. }) in &state.mined {
            if (from_block..=to_block).contains(&block.number) && transfers.iter().any(pays) {
                found.transactions.push((block.number, *hash));
            }
        }
        Ok(found)
    }

    async fn token_decimals(&self, token: Address) -> Result<Option<u8>, ChainError> {
        Ok((token == USDC).then_some(6))
    }

    async fn code(&self, _: Address) -> Result<AccountCode, ChainError> {
        Ok(AccountCode::Empty)
    }

    async fn accepts_signature(&self, _: Address, _: [u8; 32], _: &[u8]) -> Result<bool, ChainError> {
        Ok(false)
    }
}

/// A customer's wallet.
#[derive(Debug)]
pub(crate) struct Wallet {
    key: SigningKey,
}

impl Wallet {
    /// The wallet whose private key is this byte repeated 32 times. For examples only.
    pub(crate) fn of(byte: u8) -> Self {
        Self { key: SigningKey::from_slice(&[byte; 32]).expect("the key is in the curve's range") }
    }

    /// Its address.
    pub(crate) fn address(&self) -> Address {
        let signature = WalletSignature::parse(&self.sign("")).expect("it has 65 bytes");
        signer("", &signature).expect("the signature is valid")
    }

    /// Signs a text (EIP-191).
    pub(crate) fn sign(&self, text: &str) -> String {
        let (signature, recovery) = self.key.sign_prehash_recoverable(&signing_digest(text));
        format!("0x{}{:02x}", hex::encode(signature.to_bytes()), 27 + recovery.to_byte())
    }
}
