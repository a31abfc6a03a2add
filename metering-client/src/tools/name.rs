//! The names of route tools.

use metering_core::catalogue::Route;

/// The name of a route's tool: `bds_` and the path, with slashes and braces folded to `_`.
///
/// Other characters that agents' APIs do not accept in a name become `_` too. If several methods share a path
/// (`shared`), `GET` gets the plain name and the others get their method as a suffix.
pub(super) fn tool_name(route: &Route, shared: bool) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words = route.template.split(|c| !kept(c)).filter(|word| !word.is_empty());
    let method = (shared && &*route.method != "GET").then(|| route.method.to_ascii_lowercase());
    let mut name = "bds".to_owned();
    for word in words.chain(method.as_deref()) {
        name.push('_');
        name.push_str(word);
    }
    name
}

#[cfg(test)]
mod tests {
    use metering_core::Catalogue;

    use super::*;

    #[test]
    fn separators_fold_to_one_underscore() {
        // path, method, shared, name
        let table = [
            ("/mpp/snapshot/allTrades/{block_number}", "GET", false, "bds_mpp_snapshot_allTrades_block_number"),
            ("/mpp/ethPrice", "GET", true, "bds_mpp_ethPrice"),
            ("/mpp/ethPrice", "POST", true, "bds_mpp_ethPrice_post"),
            ("/mpp/ethPrice", "POST", false, "bds_mpp_ethPrice"),
            ("/v1.2/{a}/{b}/c-d", "GET", false, "bds_v1_2_a_b_c-d"),
            ("/_x/y__z_", "GET", false, "bds_x_y_z"),
            ("/a:b", "GET", false, "bds_a_b"),
        ];
        for (path, method, shared, name) in table {
            let params: Vec<_> = path
                .split('/')
                .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
                .map(|name| format!(r#"{{"name":"{name}","in":"path","type":"string","required":true}}"#))
                .collect();
            let text = format!(
                r#"{{"market":"M","version":1,"endpoints":[{{"path":"{path}","method":"{method}","metered":true,
                    "params":[{}]}}]}}"#,
                params.join(",")
            );
            let catalogue = Catalogue::from_json(&text).unwrap();
            assert_eq!(tool_name(&catalogue.routes()[0], shared), name, "{method} {path}");
        }
    }
}
