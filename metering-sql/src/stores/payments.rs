/// Implements [`PaymentStore`](metering_core::PaymentStore).
#[macro_export]
macro_rules! payment_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                Account, AccountId, PaymentStore, Timestamp,
                access::KeyHash,
                chains::{Address, TxHash, TxRef},
                payments::*,
                store::*,
            };
            impl PaymentStore for $store {}
            read plans() -> Vec<Plan> = plans::list;
            write put_plans(plans: Vec<Plan>) -> () = plans::put;
            write remove_plan(key: &PlanKey) -> bool = plans::remove;
            write set_plan_active(key: &PlanKey, active: bool) -> bool = plans::set_active;
            write open_quote(quote: Quote) -> QuoteOpened = quotes::open;
            read quote(nonce: &NonceHash) -> Option<Quote> = quotes::by_nonce;
            read quote_paid_by(payment: &Payment) -> Option<Quote> = quotes::paid_by;
            read top_up_quotes(account: &AccountId) -> Vec<Quote> = quotes::top_ups;
            read quoted_targets(chain_id: u64) -> Vec<PaymentTarget> = quotes::targets;
            write claim_quote(claim: Claim) -> Claimed = claims::claim;
            write credit_payment(credit: PaymentCredit) -> PaymentCredited = payments::credit;
            read payment(tx: &TxRef) -> Option<PaymentRecord> = payments::by_tx;
            read payments(after: ?Cursor, limit: u32) -> Page<PaymentRecord> = payments::list;
            read unsettled_payments(chain_id: u64, after: ?Cursor, limit: u32)
                -> Page<PaymentRecord> = settlements::unsettled;
            write settle_payment(change: SettlementChange) -> PaymentSettled = settlements::settle;
            write credit_processor_payment(credit: PaymentCredit, processor: ProcessorRef)
                -> PaymentCredited = processors::credit;
            write reverse_processor_payment(change: ReversalChange) -> ProcessorReversed = processors::reverse;
            read processor_reversals(payment: &TxHash) -> Vec<ProcessorReversal> = processors::reversals;
            read auto_top_up(account: &AccountId) -> Option<AutoTopUp> = auto_top_ups::of_account;
            write set_auto_top_up(account: &AccountId, change: AutoTopUpChange) -> AutoTopUpSet = auto_top_ups::set;
            write stop_top_ups(account: &AccountId, reason: TopUpStop, now: Timestamp) -> () = auto_top_ups::stop;
            read due_top_ups(after: ?Cursor, limit: u32) -> Page<AutoTopUp> = auto_top_ups::due;
            write begin_top_up(account: &AccountId, id: TopUpChargeId, now: Timestamp)
                -> Option<TopUpCharge> = auto_top_ups::begin;
            read open_top_ups(limit: u32) -> Vec<TopUpCharge> = auto_top_ups::open;
            read top_up_charges(account: &AccountId, since: Timestamp)
                -> Vec<TopUpCharge> = auto_top_ups::charges_since;
            write end_top_up(id: TopUpChargeId, end: TopUpEnd, now: Timestamp) -> bool = auto_top_ups::end;
            read linked_accounts(wallet: &Address) -> Vec<AccountId> = wallets::accounts_of;
            read linked_wallets(account: &AccountId) -> Vec<Address> = wallets::of_account;
            read buyers(account: &AccountId) -> Vec<BuyerRecord> = buyers::list;
            write set_buyer(account: &AccountId, buyer: Option<Buyer>, now: Timestamp) -> bool = buyers::set;
            write add_receipt_buyer(account: &AccountId, bought_at: Timestamp)
                -> ReceiptBuyerAdded = buyers::add_to_receipt;
            write set_receipt_terms(terms: ReceiptTerms, now: Timestamp) -> () = receipts::set_terms;
            read receipt_terms() -> Vec<ReceiptTermsRecord> = receipts::terms;
            read issued_receipts(account: &AccountId) -> Vec<IssuedReceipt> = receipts::of_account;
            write open_challenge(challenge: Challenge) -> () = challenges::open;
            read challenge(nonce: &str) -> Option<Challenge> = challenges::by_nonce;
            write fail_challenge(nonce: &str) -> () = challenges::fail;
            write rotate_key(nonce: &str, key: KeyHash, now: Timestamp) -> Option<Account> = challenges::rotate_key;
            read account_by_payer(payer: &Address) -> Option<Account> = accounts::by_payer;
            read scan_mark(chain_id: u64) -> Option<u64> = scan_marks::of_chain;
            write set_scan_mark(chain_id: u64, block: u64) -> () = scan_marks::advance;
            write register_recipients(configured: Vec<(u64, Address)>, now: Timestamp)
                -> Vec<Registration> = recipients::register;
            read recipients() -> Vec<RecipientRecord> = recipients::list;
            write put_unreadable(arrival: UnreadableArrival) -> () = unreadable::put;
            read unreadable(chain_id: u64, from_block: u64, limit: u32)
                -> Vec<UnreadableArrival> = unreadable::of_chain;
            read unreadable_due(chain_id: u64, now: Timestamp, limit: u32) -> Vec<UnreadableArrival> = unreadable::due;
            write forget_unreadable(location: &ArrivalLocation) -> () = unreadable::forget;
            write put_unclaimed(payment: UnclaimedPayment) -> () = unclaimed::put;
            snapshot unclaimed(after: ?Cursor, limit: u32) -> (Page<UnclaimedPayment>, u64) = unclaimed::newest;
            read unclaimed_in(chain_id: u64, blocks: ::core::ops::RangeInclusive<u64>)
                -> Vec<UnclaimedPayment> = unclaimed::in_blocks;
            write forget_unclaimed(gone: Vec<UnclaimedPayment>) -> () = unclaimed::forget;
        }
    };
}
