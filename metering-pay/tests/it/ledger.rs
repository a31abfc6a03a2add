//! A chain with one token (EIP-3009). Its state is computed from its blocks, so blocks can be replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use metering_core::Timestamp;
use metering_core::chains::{
    Address, Block, BlockHash, Depth, Evidence, NativeTransfer, TokenDomain, TokenTransfer, TokenUnits, TxHash,
};
use metering_core::offers::{AuthorizationNonce, Permit, SignedAuthorization};

pub(super) const CHAIN: u64 = 84_532;
/// Where stock clients expect the token of this chain.
pub(super) const TOKEN: Address = Address::from_bytes([
    0x03, 0x6c, 0xbd, 0x53, 0x84, 0x2c, 0x54, 0x26, 0x63, 0x4e, 0x79, 0x29, 0x54, 0x1e, 0xc2, 0x31, 0x8f, 0x3d, 0xcf,
    0x7e,
]);
pub(super) const RECIPIENT: Address = Address::from_bytes([0x11; 20]);
/// The wallet that pays the gas.
pub(super) const GAS: Address = Address::from_bytes([0x99; 20]);
/// The depth at which a block is final.
const FINAL: u64 = 20;

pub(super) fn domain() -> TokenDomain {
    TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id: CHAIN, contract: TOKEN }
}

/// A transaction. Transactions of the gas wallet have a place.
#[derive(Debug, Clone)]
pub(super) struct Tx {
    pub(super) hash: TxHash,
    pub(super) place: Option<u64>,
    pub(super) calls: Vec<Call>,
}

/// A call of the token's contract. If one fails, its transaction does nothing.
#[derive(Debug, Clone)]
pub(super) enum Call {
    Execute(SignedAuthorization),
    /// Transfers a part of what the gas wallet may have transferred.
    Settle(SignedAuthorization, TokenUnits),
    Cancel(Address, AuthorizationNonce),
    Transfer(Address, Address, u128),
}

#[derive(Debug, Clone)]
struct Mined {
    salt: u64,
    time: Timestamp,
    txs: Vec<Tx>,
}

/// The contract's state, and the receipts of all transactions.
#[derive(Debug, Default, Clone)]
pub(super) struct World {
    pub(super) balances: BTreeMap<Address, u128>,
    /// Used nonces, and the transaction that executed an authorization with each. `None` for cancelled ones.
    pub(super) used: BTreeMap<(Address, AuthorizationNonce), Option<(TxHash, Timestamp)>>,
    pub(super) receipts: BTreeMap<TxHash, Evidence>,
    /// How many transactions of the gas wallet are in the chain.
    pub(super) gas_mined: u64,
}

/// A digest and a signature.
type Signed = ([u8; 32], Vec<u8>);

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) genesis: BTreeMap<Address, u128>,
    pub(super) blocked: BTreeSet<Address>,
    /// The signatures that contract wallets accept: wallet, digest and signature.
    pub(super) accepted: BTreeSet<(Address, [u8; 32], Vec<u8>)>,
    pub(super) contracts: BTreeSet<Address>,
    /// Wallets whose payments succeed in simulations and revert when they are mined.
    pub(super) traps: BTreeSet<Address>,
    /// The amount that Permit2 may transfer, if not everything.
    pub(super) allowances: BTreeMap<Address, u128>,
    blocks: Vec<Mined>,
    pub(super) mempool: Vec<Tx>,
    salts: u64,
    /// Which signatures are their payer's, because checking one takes long.
    checked: Mutex<BTreeMap<Signed, bool>>,
}

impl Ledger {
    pub(super) fn next_hash(&mut self) -> TxHash {
        self.salts += 1;
        let mut bytes = [0xee; 32];
        bytes[..8].copy_from_slice(&self.salts.to_be_bytes());
        TxHash::from_bytes(bytes)
    }

    pub(super) fn height(&self) -> u64 {
        u64::try_from(self.blocks.len()).unwrap()
    }

    /// The hash of the block at this height; the first one is at 1.
    pub(super) fn block_hash(&self, height: u64) -> Option<BlockHash> {
        let block = self.blocks.get(usize::try_from(height.checked_sub(1)?).unwrap())?;
        let mut hash = [0xb1; 32];
        hash[..8].copy_from_slice(&block.salt.to_be_bytes());
        Some(hash)
    }

    pub(super) fn finalized(&self) -> u64 {
        (self.height() + 1).saturating_sub(FINAL)
    }

    /// Mines everything that waits and can be mined. If several transactions have the same place, the newest is mined.
    pub(super) fn mine(&mut self, time: Timestamp) {
        let mut next = self.world().gas_mined;
        let (mut own, mut txs): (Vec<_>, Vec<_>) = self.mempool.drain(..).partition(|tx| tx.place.is_some());
        while let Some(at) = own.iter().rposition(|tx| tx.place == Some(next)) {
            txs.push(own[at].clone());
            next += 1;
        }
        own.retain(|tx| tx.place >= Some(next));
        self.mempool = own;
        self.salts += 1;
        self.blocks.push(Mined { salt: self.salts, time, txs });
    }

    /// Replaces the newest blocks by one more empty ones. Their transactions are pending again, unless they are lost.
    pub(super) fn reorganise(&mut self, depth: usize, is_lost: bool, time: Timestamp) {
        let removed = self.blocks.split_off(self.blocks.len().saturating_sub(depth));
        if !is_lost {
            let waiting = removed.iter().flat_map(|block| block.txs.clone());
            self.mempool = waiting.chain(self.mempool.drain(..)).collect();
        }
        for _ in 0..=removed.len() {
            self.salts += 1;
            self.blocks.push(Mined { salt: self.salts, time, txs: Vec::new() });
        }
    }

    /// Whether the contract would execute this now.
    pub(super) fn simulate(&self, call: &Call, now: Timestamp) -> Result<(), String> {
        self.run(&mut self.world(), call, now).map(drop)
    }

    pub(super) fn world(&self) -> World {
        let mut world = World { balances: self.genesis.clone(), ..World::default() };
        for (index, mined) in self.blocks.iter().enumerate() {
            let number = u64::try_from(index).unwrap() + 1;
            let block = Block { number, hash: self.block_hash(number).unwrap(), time: mined.time };
            let depth = Depth { confirmations: self.height() - number + 1, required: 1 };
            for tx in &mined.txs {
                world.gas_mined += u64::from(tx.place.is_some());
                let before = world.clone();
                let run = |call: &Call| match call {
                    Call::Execute(signed) if self.traps.contains(&signed.authorization.from) => Err("trap".to_owned()),
                    _ => self.run(&mut world, call, mined.time),
                };
                let ran: Result<Vec<_>, _> = tx.calls.iter().map(run).collect();
                let (succeeded, transfers) = match ran {
                    Ok(transfers) => (true, transfers.into_iter().flatten().collect()),
                    Err(_) => {
                        world = before;
                        (false, Vec::new())
                    }
                };
                for call in &tx.calls {
                    if let (Call::Execute(signed) | Call::Settle(signed, _), true) = (call, succeeded) {
                        let id = signed.id();
                        world.used.insert((id.payer, id.nonce), Some((tx.hash, mined.time)));
                    }
                }
                let from = tx.place.map_or(Address::from_bytes([0xaa; 20]), |_| GAS);
                let native = NativeTransfer { from, to: Some(TOKEN), value: TokenUnits::ZERO, has_input: true };
                world.receipts.insert(tx.hash, Evidence { succeeded, block, depth, native: Some(native), transfers });
            }
        }
        world
    }

    fn run(&self, world: &mut World, call: &Call, now: Timestamp) -> Result<Option<TokenTransfer>, String> {
        let (from, to, units) = match call {
            Call::Cancel(payer, nonce) => {
                return match world.used.insert((*payer, *nonce), None) {
                    None => Ok(None),
                    Some(_) => Err("authorization is used".to_owned()),
                };
            }
            Call::Transfer(from, to, units) => (*from, *to, *units),
            Call::Execute(signed) => {
                let authorization = &signed.authorization;
                let seconds = u64::try_from(now.unix_millis() / 1_000).unwrap();
                let digest = authorization.digest(&domain());
                let by_contract = (authorization.from, digest, signed.signature.as_bytes().to_vec());
                let mut checked = self.checked.lock().unwrap();
                let by_key = checked
                    .entry((digest, signed.signature.as_bytes().to_vec()))
                    .or_insert_with(|| authorization.is_signed_by_key(&domain(), &signed.signature));
                let is_signed = *by_key || self.accepted.contains(&by_contract);
                if seconds <= authorization.valid_after || seconds >= authorization.valid_before {
                    return Err("authorization is not valid now".to_owned());
                } else if !is_signed || signed.token != TOKEN || signed.chain_id != CHAIN {
                    return Err("invalid signature".to_owned());
                } else if world.used.insert((authorization.from, authorization.nonce), None).is_some() {
                    return Err("authorization is used".to_owned());
                }
                (authorization.from, authorization.to, authorization.value.get())
            }
            Call::Settle(signed, used) => {
                let authorization = &signed.authorization;
                let seconds = u64::try_from(now.unix_millis() / 1_000).unwrap();
                let is_signed = Permit { signed, facilitator: GAS }.is_signed_by_key();
                if seconds < authorization.valid_after || seconds > authorization.valid_before {
                    return Err("SignatureExpired".to_owned());
                } else if *used > authorization.value || *used == TokenUnits::ZERO {
                    return Err("AmountExceedsPermitted".to_owned());
                } else if !is_signed || signed.token != TOKEN || signed.chain_id != CHAIN {
                    return Err("InvalidSigner".to_owned());
                } else if world.used.insert((authorization.from, authorization.nonce), None).is_some() {
                    return Err("InvalidNonce".to_owned());
                } else if self.allowances.get(&authorization.from).is_some_and(|allowed| *allowed < used.get()) {
                    return Err("TRANSFER_FROM_FAILED".to_owned());
                }
                (authorization.from, authorization.to, used.get())
            }
        };
        let balance = world.balances.entry(from).or_default();
        if self.blocked.contains(&from) {
            return Err("blocked".to_owned());
        }
        *balance = balance.checked_sub(units).ok_or("transfer amount exceeds balance")?;
        *world.balances.entry(to).or_default() += units;
        Ok(Some(TokenTransfer { token: TOKEN, from, to, value: TokenUnits::new(units) }))
    }
}
