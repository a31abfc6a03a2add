# Recipes for daily tasks. `just` is optional: each recipe only runs plain commands.

# List the recipes
default:
    @just --list

# Run the service with default settings
run *arguments:
    cargo run --release --bin metering-server -- {{ arguments }}

# Run the service as a debug build, which compiles faster
dev *arguments:
    cargo run --bin metering-server -- {{ arguments }}

# Run the command-line client, such as `just client balance`
client *arguments:
    cargo run --release --bin metering -- {{ arguments }}

# Administer a store
admin *arguments:
    cargo run --release --bin metering -- admin {{ arguments }}

# Type-check everything: the fastest feedback
check:
    cargo check --workspace --all-targets --all-features

# Build everything, as the end-to-end tests need it
build:
    cargo build --workspace --all-targets --all-features

# Run all checks, as continuous integration does
test:
    ./test.sh

# Test one crate, such as `just test-crate metering-core` or `just test-crate metering-sqlite refunds`
test-crate crate *filter:
    cargo test --package {{ crate }} --all-features {{ filter }}

# Run the end-to-end tests, or those whose name contains the filter, such as `just e2e pages::`
e2e *filter: build
    cargo test --package metering-tests --test e2e --all-features {{ filter }}

# Run before each commit: format, lints, the tests of core
quick: format lint
    cargo test --package metering-core --all-features

# Format the code
format:
    cargo fmt --all

# Run the lints
lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings

# Build and open the API documentation
doc:
    cargo doc --workspace --no-deps --all-features --open

# Check that the API documentation builds without warnings
doc-check:
    RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --all-features

# Take the screenshots of docs/pages.md again; needs Node.js and Chromium
screens: build
    TESTS_SCREENS=1 cargo test --package metering-tests --test e2e --all-features pages::

# Run the benchmark; see docs/performance.md
bench *arguments:
    cargo build --workspace --release
    cargo run --release --package metering-tests --bin bench -- {{ arguments }}

# Calculate and simulate a cluster of groups; see docs/scaling.md
cluster-model *arguments:
    cargo run --locked --release --package metering-tests --bin cluster-model -- {{ arguments }}

# Run chaos campaigns: inject faults under load, then check that no confirmed charge is lost; `just chaos --list`
chaos *arguments="--all":
    cargo build --workspace --release
    cargo run --release --package metering-tests --bin chaos -- {{ arguments }}

# Fuzz one parser of untrusted input; needs cargo-fuzz and a C++ compiler; targets are in fuzz/fuzz_targets
fuzz target seconds="120":
    mkdir -p fuzz/corpus/{{ target }}
    cd fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir . --sanitizer none {{ target }} corpus/{{ target }} seeds/{{ target }} -- -max_total_time={{ seconds }} -max_len=4096

# Run Schemathesis against the OpenAPI document of a running server; needs Python 3.11 or newer
schemathesis *arguments:
    cargo build --workspace --all-features --bin metering-server --bin metering
    python3 tests/openapi/run.py {{ arguments }}

# Run mutation tests of the code that handles money; needs cargo-mutants, takes about an hour
mutants *arguments:
    cargo mutants {{ arguments }}

# Compare the public API of the library crates with docs/public-api; --write updates the listing
public-api *arguments:
    cargo run --locked --package metering-tests --bin public-api -- {{ arguments }}

# Build the Debian package, optimised; needs cargo-deb
deb *arguments:
    deploy/debian/build {{ arguments }}

# Check licences, sources and crate boundaries of dependencies
deny:
    cargo deny check bans licenses sources

# Check dependencies for known vulnerabilities; needs the network
advisories:
    cargo deny check advisories
