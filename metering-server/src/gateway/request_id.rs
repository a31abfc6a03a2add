//! The id of a request, as its response has it: a charge gives the request another id than it had before.

use http::HeaderMap;
use metering_core::catalogue::ErrorShape;
use metering_core::charging::HoldId;

/// Have the id of a request, one of them in each response.
const ID_HEADERS: [&str; 2] = [ErrorShape::Own.request_id_header(), ErrorShape::Anthropic.request_id_header()];

/// The id in the headers of a response.
pub(super) fn id_in(headers: &HeaderMap) -> Option<HoldId> {
    ID_HEADERS.into_iter().find_map(|name| headers.get(name)?.to_str().ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use metering_core::SystemRandomness;

    use super::*;

    #[test]
    fn response_has_its_id_in_the_header_of_its_shape() {
        let id = HoldId::generate(&SystemRandomness);
        for shape in [ErrorShape::Own, ErrorShape::OpenAi, ErrorShape::Anthropic, ErrorShape::Problem] {
            let response = shape.finish(http::Response::new(String::new()), id);
            assert_eq!(id_in(response.headers()), Some(id), "{shape:?}");
        }
        assert_eq!(id_in(&HeaderMap::new()), None);
    }
}
