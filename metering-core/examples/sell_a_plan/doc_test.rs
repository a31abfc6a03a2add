// What the doc tests of the crate include: the chain and the shop.

mod in_memory {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/in_memory.rs"));
}
mod shop {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/shop.rs"));
}
