//! Payments with requests: the offers of a 402, and the payment options of a route.
//!
//! Two conventions are in use for operations, and `x-payment-info` is both: `offers` is that of MPP
//! (draft-payment-discovery), and `protocols` and `price` that of x402scan. Prices are advice; those of a 402 count.

use metering_core::catalogue::Route;
use metering_pay::offers::{Offer, Offers};
use metering_pay::wire::x402::PaymentRequiredV1;
use serde_json::{Value, json};
use utoipa::PartialSchema;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{OpenApi, PathItem, RefOr};

/// The schema of what a 402 has in addition to an error. Nothing in it is required: plans are for callers with a key,
/// and offers for services that make them.
pub(super) const WAYS_TO_PAY: &str = "WaysToPay";

/// The names of tokens (EIP-712) that are a dollar each: only for these is a price in dollars known.
const DOLLARS: [&str; 3] = ["USD Coin", "USDC", "Tether USD"];

/// Adds the schema [`WAYS_TO_PAY`] to a document that has the plans.
pub(super) fn add_ways_to_pay(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    let plans = components.schemas.get("PlansDocument").cloned();
    let mut ways_to_pay =
        ObjectBuilder::new().description(Some("What can be paid, as far as this process knows.")).build();
    for schema in [plans, Some(PaymentRequiredV1::schema())].into_iter().flatten() {
        if let RefOr::T(Schema::Object(object)) = schema {
            ways_to_pay.properties.extend(object.properties);
        }
    }
    components.schemas.insert(WAYS_TO_PAY.to_owned(), RefOr::T(Schema::Object(ways_to_pay)));
}

/// The header with the offers of a 402.
pub(super) fn offers_header() -> Header {
    header("What can be paid with the same request, for clients of x402 version 2: base64 of JSON")
}

/// The header with the challenges of a 402.
pub(super) fn challenges_header() -> Header {
    header("What can be paid with the same request, for clients of MPP: a line `Payment ...` for each offer")
}

/// The header with the receipt of a payment.
pub(super) fn receipt_header() -> Header {
    header("The outcome of the payment that came with the request, for clients of x402 version 2: base64 of JSON")
}

/// The header with the receipt of a payment in MPP.
pub(super) fn mpp_receipt_header() -> Header {
    header("The payment that came with the request, for clients of MPP: base64url of JSON")
}

/// The header with the signed receipt of the charge.
pub(super) fn signed_receipt_header() -> Header {
    header("A signed statement of the request's charge, for clients and routes that require one")
}

fn header(description: &str) -> Header {
    let text = ObjectBuilder::new().schema_type(Type::String);
    HeaderBuilder::new().description(Some(description)).schema(Some(text)).build()
}

/// Adds the payment offers to each metered route that can be paid with one.
pub(super) fn add<'r>(
    document: &mut OpenApi,
    routes: impl IntoIterator<Item = &'r Route>,
    offers: &Offers,
    protocols: &[&str],
) {
    for route in routes.into_iter().filter(|route| route.metered) {
        let item = document.paths.paths.get_mut(&*route.template);
        let offers = offers.covering(route.price(0));
        if let Some(operation) = item.and_then(|item| operation(item, &route.method))
            && !offers.is_empty()
        {
            let info = payment_info(route, &offers, protocols);
            operation.extensions.get_or_insert_default().insert("x-payment-info".to_owned(), info);
        }
    }
}

/// Adds what kind of service this is.
pub(super) fn add_service(document: &mut OpenApi) {
    let extensions = document.extensions.get_or_insert_default();
    let mut service = json!({"docs": {"homepage": "/metering", "apiReference": "/docs"}});
    if let Some(groups) = extensions.get("x-groups") {
        service["categories"] = groups.clone();
    }
    extensions.insert("x-service-info".to_owned(), service);
}

fn operation<'i>(item: &'i mut PathItem, method: &str) -> Option<&'i mut Operation> {
    match method {
        "GET" => item.get.as_mut(),
        "POST" => item.post.as_mut(),
        "PUT" => item.put.as_mut(),
        "DELETE" => item.delete.as_mut(),
        "PATCH" => item.patch.as_mut(),
        "OPTIONS" => item.options.as_mut(),
        "HEAD" => item.head.as_mut(),
        "TRACE" => item.trace.as_mut(),
        _ => None,
    }
}

fn payment_info(route: &Route, offers: &Offers, protocols: &[&str]) -> Value {
    let offer = |offer: &Offer| {
        json!({
            "intent": "charge",
            "method": "evm",
            "amount": offer.amount.to_string(),
            "currency": offer.asset.domain.contract.to_checksummed(),
            "description": format!(
                "Buys {} credits on {}; the request costs {}, and the rest stays on the account",
                offer.credits,
                offer.network(),
                route.price(0),
            ),
        })
    };
    let mut info = json!({"offers": offers.iter().map(offer).collect::<Vec<_>>(), "protocols": protocols});
    if let Some(cheapest) = offers.iter().next().filter(|offer| DOLLARS.contains(&&*offer.asset.domain.name)) {
        let amount = cheapest.amount.to_human(cheapest.asset.decimals);
        info["price"] = json!({"mode": "fixed", "currency": "USD", "amount": amount});
    }
    info
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;
    use metering_core::chains::TokenDomain;
    use metering_core::payments::TokenAmount;
    use metering_pay::offers::Asset;

    use super::*;
    use crate::api::openapi::document;

    fn offer(token: &str, amount: &str) -> Offer {
        let contract = "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().unwrap();
        let domain = TokenDomain { name: token.to_owned(), version: "2".to_owned(), chain_id: 84_532, contract };
        let pay_to = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C".parse().unwrap();
        let amount = TokenAmount::parse(amount).unwrap();
        Offer::new(Asset { domain, decimals: 6 }, pay_to, amount, 1.into()).unwrap()
    }

    fn described(token: &str) -> Value {
        let text = r#"{"market":"M","version":1,"endpoints":[
            {"path":"/x","method":"GET","metered":true,"price":"0.02","group":"Prices"},
            {"path":"/x","method":"POST","metered":true,"price":"0.2"},
            {"path":"/free","method":"GET","metered":false}]}"#;
        let catalogue = Catalogue::from_json(text).unwrap();
        let offers = Offers::new(vec![offer(token, "0.05"), offer(token, "0.5")]);
        let mut document = document(&catalogue);
        add(&mut document, catalogue.routes(), &offers, &["x402", "mpp"]);
        add_service(&mut document);
        serde_json::to_value(document).unwrap()
    }

    #[test]
    fn routes_say_what_they_can_be_paid_with() {
        let document = described("USDC");
        let usdc = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
        let get = &document["paths"]["/x"]["get"]["x-payment-info"];
        let text = "Buys 0.05 credits on eip155:84532; the request costs 0.02, and the rest stays on the account";
        let first =
            json!({"intent": "charge", "method": "evm", "amount": "50000", "currency": usdc, "description": text});
        assert_eq!((&get["offers"][0], &get["offers"][1]["amount"]), (&first, &json!("500000")));
        assert_eq!(get["price"], json!({"mode": "fixed", "currency": "USD", "amount": "0.05"}));
        assert_eq!(get["protocols"], json!(["x402", "mpp"]));
        // Amounts that do not cover the price are not offered.
        let post = &document["paths"]["/x"]["post"]["x-payment-info"];
        assert_eq!(post["offers"].as_array().map(Vec::len), Some(1));
        assert_eq!((&post["offers"][0]["amount"], &post["price"]["amount"]), (&json!("500000"), &json!("0.5")));
        assert_eq!(document["paths"]["/free"]["get"].get("x-payment-info"), None);
        assert_eq!(document["paths"]["/credits/balance"]["get"].get("x-payment-info"), None);
        assert_eq!(document["x-service-info"]["categories"], json!(["Prices"]));
    }

    #[test]
    fn a_price_in_dollars_is_named_only_for_dollars() {
        let document = described("Euro Coin");
        let info = &document["paths"]["/x"]["get"]["x-payment-info"];
        assert_eq!((info.get("price"), info["offers"][0]["amount"].as_str()), (None, Some("50000")));
    }

    #[test]
    fn metered_responses_name_the_headers_of_payments() {
        let document = described("USDC");
        let responses = &document["paths"]["/x"]["get"]["responses"];
        for (status, header) in [
            ("200", "PAYMENT-RESPONSE"),
            ("200", "Payment-Receipt"),
            ("402", "PAYMENT-REQUIRED"),
            ("402", "WWW-Authenticate"),
        ] {
            assert_eq!(responses[status]["headers"][header]["schema"]["type"], "string", "{status}");
        }
        let free = &document["paths"]["/free"]["get"]["responses"]["200"];
        assert_eq!(free.get("headers"), None);
    }
}
