//! A request that one of several upstreams serves: the version for that upstream, and its price there.

use http::request::Parts;

use super::Charged;
use crate::catalogue::Renamed;
use crate::layer::incoming::{drop_body_headers, set_target};
use crate::layer::money::Money;

impl Charged {
    /// The request for this upstream, if it has another name for the model: the head, and the body if that names the
    /// model. `None` if it is the same as for any other.
    #[must_use]
    pub fn request_for(&self, upstream: &str, head: &Parts, body: &[u8]) -> Option<(Parts, Option<Vec<u8>>)> {
        let price = self.usage_price.as_ref()?;
        let renamed = price.renamed(upstream, &self.route_template, head.uri.path(), body)?;
        let mut head = head.clone();
        match renamed {
            Renamed::Body(body) => {
                drop_body_headers(&mut head.headers);
                Some((head, Some(body)))
            }
            Renamed::Path(path) => {
                let target = match head.uri.query() {
                    Some(query) => [path.as_str(), "?", query].concat(),
                    None => path,
                };
                set_target(&mut head.uri, target).then_some((head, None))
            }
        }
    }

    /// Notes which upstream served the request, to be stored when its hold is settled. From then on this clone has the
    /// price at that upstream. Call it before the cost is captured.
    pub async fn served_by(&mut self, upstream: &str) {
        if let Some(price) = &self.usage_price {
            self.usage_price = Some(price.at(upstream));
        }
        if let Money::Held(guard) = &mut self.shared.state.lock().await.money {
            guard.served_by(upstream.into());
        }
    }
}
