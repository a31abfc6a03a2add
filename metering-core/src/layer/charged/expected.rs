//! Requests that are served before their charge is decided.

use std::sync::Arc;

use http::Response;
use tokio::sync::Mutex;

use super::{Charged, Shared, State};
use crate::catalogue::Route;
use crate::charging::ExpectedCharge;
use crate::charging::charge::Decision;
use crate::charging::meter::MeterError;
use crate::error::Error;
use crate::layer::late_refusal::LateRefusal;
use crate::layer::money::Money;
use crate::service::metering::Service;
use crate::trace;
use crate::wire::MeteredHeaders;

impl Charged {
    pub(in crate::layer) fn expected(
        service: &Arc<Service>,
        charge: ExpectedCharge,
        route: &Route,
        late: Option<LateRefusal>,
    ) -> Self {
        Self {
            account: charge.account().clone(),
            amount: charge.amount(),
            balance: None,
            route_template: Arc::clone(&route.template),
            usage_price: None,
            shared: Arc::new(Shared {
                service: Arc::clone(service),
                free_statuses: route.free_statuses.clone(),
                span: trace::current(),
                state: Mutex::new(State {
                    money: Money::Expected(charge),
                    rate: None,
                    errors: route.errors,
                    settlement: None,
                    headers: None,
                    payment: None,
                    refund: Ok(()),
                    slot: None,
                    late: late.map(Box::new),
                    receipt: None,
                }),
            }),
        }
    }
}

impl State {
    /// The response to a request whose charge failed, or was refused after the request was started.
    pub(super) fn failed<R: From<String>>(&self, service: &Service, error: &Error) -> Response<R> {
        match &self.late {
            Some(late) => late.response(service, error),
            None => error.to_response(),
        }
    }

    /// Waits until the charge is decided. All charge headers of a response come from its receipt. The future may be
    /// dropped, and another one awaited.
    pub(super) async fn decided(&mut self, service: &Service) {
        if let Money::Expected(charge) = &mut self.money {
            let decision = charge.await;
            self.take_decision(decision);
        }
        if let Money::Refused(refusal) = &self.money {
            let error = service.refused(refusal.clone()).await;
            self.money = Money::Failed(error);
        }
    }

    fn take_decision(&mut self, decision: Result<Decision, MeterError>) {
        self.money = match decision {
            Ok(Decision::Accepted(mut receipt)) => {
                self.slot = receipt.slot.take();
                self.rate = Some(receipt.rate);
                self.settlement = receipt.settlement();
                self.headers = Some(MeteredHeaders::of(&receipt));
                if let Some(wanted) = &mut self.receipt {
                    wanted.charges(&receipt);
                }
                Money::Charged(receipt.into())
            }
            Ok(Decision::Refused(refusal)) => Money::Refused(refusal),
            Err(error) => Money::Failed(error.into()),
        };
    }
}
