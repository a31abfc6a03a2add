//! Open quotes of the other service: opened here too, so that payments during the move still buy an account.

use metering_core::FullStore;
use metering_core::payments::Quote;
use metering_core::store::QuoteOpened;
use metering_import::{ImportFinding, ImportFindingKind};

use super::report::Report;
use crate::failure::Failure;

/// Opens quotes, after the accounts were imported: a wallet that has one by now needs none. Without a store, it counts
/// them.
pub(super) async fn open(
    store: Option<&dyn FullStore>,
    quotes: Vec<Result<Quote, ImportFinding>>,
    report: &mut Report,
) -> Result<(), Failure> {
    for quote in quotes {
        let quote = match quote {
            Ok(quote) => quote,
            Err(refused) => {
                report.oddities(vec![refused]);
                continue;
            }
        };
        let Some(store) = store else {
            report.quote_opened();
            continue;
        };
        if store.quote(&quote.nonce).await?.is_some() {
            report.quote_already_there();
            continue;
        }
        let subject = format!("quote for {} of {}", quote.plan_id, quote.payer.to_checksummed());
        let reason = match store.open_quote(quote).await? {
            QuoteOpened::Opened => {
                report.quote_opened();
                continue;
            }
            QuoteOpened::EmailTaken => "an account has its email address",
            QuoteOpened::PayerTaken => "the wallet has an account by now, and its payment tops that up",
            QuoteOpened::AmountTaken => "a newer quote of the wallet has the same amount",
            QuoteOpened::TooManyTopUps => "there are too many quotes",
        };
        let detail = format!("{reason}; it was not imported");
        report.oddities(vec![ImportFinding::new(subject, ImportFindingKind::QuoteRefused, detail)]);
    }
    Ok(())
}
