# Short names for what the project is worked on with. Nothing needs `just`: every recipe is one plain command.

# List the recipes
default:
    @just --list

# Run the service on its defaults
run *arguments:
    cargo run --release --bin metering-server -- {{ arguments }}

# Administer a store
admin *arguments:
    cargo run --release --bin metering -- admin {{ arguments }}

# Every check there is; what continuous integration runs
test:
    ./test.sh

# Format the code
format:
    cargo fmt --all

# The lints
lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings

# The documentation of the crates
doc:
    cargo doc --workspace --no-deps --all-features --open

# The benchmark; see docs/performance.md
bench *arguments:
    cargo build --workspace --release
    cargo run --release --package metering-tests --bin bench -- {{ arguments }}

# Chaos campaigns: faults under load, then a check that no confirmed charge is lost; `just chaos --list`
chaos *arguments="--all":
    cargo build --workspace --release
    cargo run --release --package metering-tests --bin chaos -- {{ arguments }}

# Fuzz one parser of untrusted input; needs cargo-fuzz and a C++ compiler. Targets: fuzz/fuzz_targets
fuzz target seconds="120":
    mkdir -p fuzz/corpus/{{ target }}
    cd fuzz && RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir . --sanitizer none {{ target }} corpus/{{ target }} seeds/{{ target }} -- -max_total_time={{ seconds }} -max_len=4096

# Schemathesis against the OpenAPI document of a running server; needs Python 3.11 or newer
schemathesis *arguments:
    cargo build --workspace --all-features --bin metering-server --bin metering
    python3 tests/openapi/run.py {{ arguments }}

# Mutation testing of the code that decides about money; needs cargo-mutants, and takes an hour or so
mutants *arguments:
    cargo mutants {{ arguments }}

# Licences, sources and who may depend on what
deny:
    cargo deny check bans licenses sources
