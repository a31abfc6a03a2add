//! Names of metered operations; generators derive function names from them.

use std::collections::BTreeSet;

use metering_core::catalogue::Route;

/// The operation id of a route: its method and path in snake case, with `by` before path parameters, such as
/// `get_mpp_eth_price_by_block_number`. Only letters, digits and underscores, so that it is an identifier everywhere.
///
/// If two routes would have the same id, the later one gets a number. `taken` gets the id.
pub(super) fn operation_id(route: &Route, taken: &mut BTreeSet<String>) -> String {
    let mut words = vec![route.method.to_ascii_lowercase()];
    let mut in_params = false;
    for segment in route.template.split('/') {
        let is_param = segment.starts_with('{');
        if is_param && !in_params {
            words.push("by".to_owned());
        }
        in_params = is_param;
        words.extend(snake_case(segment));
    }
    let plain = words.join("_");
    let numbered = (2..).map(|number| format!("{plain}_{number}"));
    let id = std::iter::once(plain.clone()).chain(numbered).find(|id| !taken.contains(id)).expect("numbers do not end");
    taken.insert(id.clone());
    id
}

/// The words of a path segment, in lower case: split at other characters than letters and digits, and before capitals.
fn snake_case(segment: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = None;
    for c in segment.chars() {
        if c.is_ascii_alphanumeric() {
            let starts = before.is_none_or(|before: char| {
                !before.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && !before.is_ascii_uppercase())
            });
            if starts {
                words.push(String::new());
            }
            words.last_mut().expect("a word was begun").push(c.to_ascii_lowercase());
        }
        before = Some(c);
    }
    words
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;

    use super::*;

    #[test]
    fn ids_are_snake_case_and_unique() {
        // method, path, parameters, id
        let table = [
            ("GET", "/mpp/ethPrice", "", "get_mpp_eth_price"),
            ("POST", "/mpp/ethPrice", "", "post_mpp_eth_price"),
            ("GET", "/mpp/ethPrice/{block_number}", "block_number", "get_mpp_eth_price_by_block_number"),
            ("GET", "/v1.2/{poolId}/{b}/c-d", "poolId b", "get_v1_2_by_pool_id_b_c_d"),
            ("GET", "/NFTs/allURLs", "", "get_nfts_all_urls"),
            ("GET", "/a/b-c", "", "get_a_b_c"),
            ("GET", "/a/b_c", "", "get_a_b_c_2"),
            ("GET", "/a/b.c", "", "get_a_b_c_3"),
        ];
        let route = |(method, path, params, _): &(&str, &str, &str, &str)| {
            let params: Vec<_> = params.split_whitespace().collect();
            let params: Vec<_> =
                params.iter().map(|name| format!(r#"{{"name":"{name}","in":"path","type":"string"}}"#)).collect();
            format!(r#"{{"path":"{path}","method":"{method}","metered":true,"params":[{}]}}"#, params.join(","))
        };
        let routes: Vec<_> = table.iter().map(route).collect();
        let text = format!(r#"{{"market":"M","version":1,"endpoints":[{}]}}"#, routes.join(","));
        let catalogue = Catalogue::from_json(&text).unwrap();
        let mut taken = BTreeSet::new();
        for (route, (.., id)) in catalogue.routes().iter().zip(table) {
            assert_eq!(operation_id(route, &mut taken), id, "{}", route.template);
        }
    }
}
