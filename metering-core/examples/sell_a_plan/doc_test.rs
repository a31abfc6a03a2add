// The shared part of the crate's doc tests: the chain, the shop, and a customer who wants to buy.

mod in_memory {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/in_memory.rs"));
}
mod shop {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/shop.rs"));

    /// The shop, a customer, and a quote for its plan.
    pub(crate) async fn quoted(
        chain: &Arc<MemoryChain>,
    ) -> Result<(Service, super::in_memory::Wallet, metering_core::wire::QuoteResponse), Box<dyn std::error::Error>> {
        let (shop, customer) = (open(chain).await?, super::in_memory::Wallet::of(7));
        let request = serde_json::from_value(serde_json::json!({
            "agent_name": "my-agent", "plan_id": "starter", "chain_id": CHAIN_ID, "token_symbol": "USDC",
            "payer_address": customer.address(),
        }))?;
        let quote = shop.payments().quote(&request).await?;
        Ok((shop, customer, quote))
    }
}
