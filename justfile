# Recipes for daily tasks. `just` is optional: each recipe only runs plain commands.

# List the recipes
default:
    @just --list

# Run the service with default settings
run *arguments:
    cargo run --release --bin metering-server -- {{ arguments }}

# Administer a store
admin *arguments:
    cargo run --release --bin metering -- admin {{ arguments }}

# Run all checks, as continuous integration does
test:
    ./test.sh

# Format the code
format:
    cargo fmt --all

# Run the lints
lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings

# Build and open the API documentation
doc:
    cargo doc --workspace --no-deps --all-features --open

# Run the benchmark; see docs/performance.md
bench *arguments:
    cargo build --workspace --release
    cargo run --release --package metering-tests --bin bench -- {{ arguments }}

# Run chaos campaigns: inject faults under load, then check that no confirmed charge is lost; `just chaos --list`
chaos *arguments="--all":
    cargo build --workspace --release
    cargo run --release --package metering-tests --bin chaos -- {{ arguments }}

# Fuzz one parser of untrusted input; needs cargo-fuzz and a C++ compiler; targets are in fuzz/fuzz_targets
fuzz target seconds="120":
    mkdir -p fuzz/corpus/{{ target }}
    cd fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir . --sanitizer none {{ target }} corpus/{{ target }} seeds/{{ target }} -- -max_total_time={{ seconds }} -max_len=4096

# Run mutation tests of the code that handles money; needs cargo-mutants, takes about an hour
mutants *arguments:
    cargo mutants {{ arguments }}

# Check licences, sources and crate boundaries of dependencies
deny:
    cargo deny check bans licenses sources
