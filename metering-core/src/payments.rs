//! Paying for credits on a chain: plans, quotes, the rules that judge a payment and follow it until it is final, and
//! the recovery of a key by the wallet that paid.
//!
//! A transaction counts once, for one account. Trouble with a chain consumes nothing and reverses nothing. Payments that
//! processors took are recorded in the same way ([`ProcessorRef`]).

pub(crate) mod auto_top_up;
pub(crate) mod buyer;
pub(crate) mod credit_note;
pub(crate) mod exchange_rate;
pub(crate) mod exchange_rates;
pub(crate) mod issued_receipt;
pub(crate) mod not_before;
pub(crate) mod payment;
pub(crate) mod plan;
pub(crate) mod processor;
pub(crate) mod proof;
pub(crate) mod quote;
pub(crate) mod receipt;
pub(crate) mod receipt_terms;
pub(crate) mod recipient;
pub(crate) mod recovery;
pub(crate) mod seller;
pub(crate) mod tax;
mod uri;
pub(crate) mod value;

pub use auto_top_up::{
    AutoTopUp, SavedCard, TopUpCharge, TopUpChargeId, TopUpChargeIdError, TopUpChargeState, TopUpRule, TopUpStop,
};
pub use buyer::{Buyer, BuyerError, BuyerRecord};
pub use credit_note::CreditNoteNumber;
pub use exchange_rate::{CurrencyAmount, ExchangeRate};
pub use exchange_rates::{ExchangeRates, RateList, RateListError};
pub use issued_receipt::{ConsecutiveNumber, ConsecutiveNumberError, IssuedReceipt, NumberPrefix, NumberPrefixError};
pub use not_before::{NotBefore, NotBeforeError};
pub use payment::{
    Arrival, ArrivalLocation, ChainView, Payment, PaymentError, PaymentFault, PaymentRecord, PaymentSettlement,
    PaymentTarget, PaymentUse, RecoveryError, SettlementDecision, SettlementEntry, SettlementStep, SoldPlan,
    UnclaimedPayment, UnreadableArrival, decide,
};
pub use plan::{PaymentKind, Plan, PlanError, PlanKey, TokenAmount};
pub use processor::{ProcessorRef, ProcessorRefError, ProcessorReversal};
pub use proof::{claim_proof_message, payer_proof_message};
pub use quote::{
    MalformedNonce, NonceHash, Quote, QuoteNonce, QuoteNonceKind, QuoteState, TagKind, draw_amount, nonce_hash,
};
pub use receipt::{ReceiptNumber, ReceiptNumberError};
pub use receipt_terms::{ReceiptTerms, ReceiptTermsRecord};
pub use recipient::{RecipientChanges, RecipientRecord, Registration, register_recipients};
pub use recovery::Challenge;
pub use seller::Seller;
pub use tax::{SalesTax, TaxRate};
pub use value::{ConvertedAmount, PaymentValue};
