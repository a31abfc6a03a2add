//! Sells a plan on a chain: a quote, the payment, the claim, a new key to replace a lost one, and a top-up.
//!
//! ```text
//! cargo run -p metering-core --example sell_a_plan
//! ```
//!
//! Everything is in memory. For a real chain, use the reader of `metering-evm` instead of `MemoryChain`, and a store on
//! disk.

mod in_memory;
mod shop;

use std::sync::Arc;

use in_memory::{CHAIN_ID, MemoryChain, Wallet};
use metering_core::payments::TokenAmount;
use metering_core::wire::{ChainIdInput, ChallengeRequest, ClaimRequest, QuoteRequest, TopUpRequest, VerifyRequest};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (chain, customer) = (Arc::new(MemoryChain::default()), Wallet::of(7));
    let shop = shop::open(&chain).await?;
    let on_sale = shop.payments().plans().await?;
    let plan = on_sale.plans.first().ok_or("no plan is on sale")?;
    println!("{}: {} credits for {} {}", plan.label, plan.credits, plan.token_amount, plan.token_symbol);

    // A quote names the exact amount to pay, which identifies the payment.
    let (address, chain_id) = (Some(customer.address().to_string()), Some(ChainIdInput(CHAIN_ID)));
    let request = QuoteRequest {
        agent_name: Some("my-agent".to_owned()),
        plan_id: Some(plan.id.clone()),
        chain_id,
        token_symbol: Some(plan.token_symbol.clone()),
        payer_address: address.clone(),
        email: None,
    };
    let quote = shop.payments().quote(&request).await?;
    println!("pay {} {} to {}", quote.amount_human, quote.token_symbol, quote.recipient);
    let recipient = quote.recipient.parse()?;
    let payment = chain.pay(customer.address(), recipient, quote.amount_atomic.parse()?);

    // The claim creates the account. Its response has the account's key, which is shown only once.
    let (signup_nonce, tx_hash) = (Some(quote.signup_nonce.into()), Some(payment.to_string()));
    let claimed = shop.payments().claim(&ClaimRequest { signup_nonce, tx_hash, signature: None }).await?;
    println!("{} has {} credits", claimed.org_id, claimed.credit_balance);

    // If the key is lost, the wallet that paid can get a new one.
    let challenge = shop.recovery().challenge(&ChallengeRequest { address: address.clone() }).await?;
    let (nonce, signature) = (Some(challenge.nonce), Some(customer.sign(&challenge.message)));
    let rotated = shop.recovery().verify(&VerifyRequest { address, nonce, signature }).await?;
    let key = rotated.api_key.key();

    // A top-up buys the plan again, at its list price, without a quote.
    let price = TokenAmount::parse(&plan.token_amount)?.to_units(plan.token_decimals).ok_or("it is out of range")?;
    let payment = chain.pay(customer.address(), recipient, price);
    let (plan_id, tx_hash) = (Some(plan.id.clone()), Some(payment.to_string()));
    let topped_up =
        shop.payments().top_up(Some(key), &TopUpRequest { plan_id, chain_id, tx_hash, signature: None }).await?;
    println!("{} credits more: {}", topped_up.amount_added, topped_up.credit_balance);

    // Once its blocks are final, a payment can no longer be reversed.
    chain.grow(2);
    println!("{} payments are final", shop.payments().settle(CHAIN_ID).await?.finalized);
    shop.meter().drain().await;
    Ok(())
}
