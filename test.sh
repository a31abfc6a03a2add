#!/usr/bin/env bash
# Installs what the tests need and runs every check. Works from any directory, in a fresh clone, without a terminal.
# With CI=true it also installs a missing cargo-deny. CARGO_TARGET_DIR sets the build directory.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$root"
exec </dev/null

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
# Make the path absolute, because programs are also started from it.
case $CARGO_TARGET_DIR in /*) ;; *) CARGO_TARGET_DIR=$root/$CARGO_TARGET_DIR ;; esac
# The service's own environment variables would change what is tested.
for name in "${!METERING_@}"; do unset "$name"; done

# Disk space that a full build needs, in MiB. A CI build is used once, so it skips incremental state, which is half.
mib_to_build=7000
if [ "${CI:-}" = true ]; then
  export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}
  mib_to_build=4000
fi

cargo_deny_version=0.20.2
cargo_deb_version=3.8.0
# With less free space than this, in MiB, a failure report mentions the disk: compilers, browsers and databases often
# report a full disk in misleading ways.
mib_to_go_on=500
started=$SECONDS
step=setup
passed=()
skipped=()

# Free space on the build disk, in MiB.
mib_left() {
  mkdir -p "$CARGO_TARGET_DIR" && df -Pk "$CARGO_TARGET_DIR" | awk 'NR == 2 { print int($4 / 1024) }'
}

finish() {
  local code=$?
  if [ "$code" -eq 0 ]; then
    echo
    echo "test.sh: all passed in $((SECONDS - started)) s: ${passed[*]}${skipped[*]:+; skipped: ${skipped[*]}}"
  else
    echo
    echo "test.sh: FAILED at: $step (exit code $code); passed before: ${passed[*]:-nothing}"
    local left
    left=$(mib_left)
    [ "$left" -ge "$mib_to_go_on" ] || echo "test.sh: only $left MiB are left on the disk of $CARGO_TARGET_DIR"
  fi
}
trap finish EXIT

fail() {
  echo "test.sh: $*" >&2
  exit 1
}

# run NAME COMMAND...: runs one check.
run() {
  step=$1
  shift
  echo
  echo "== $step: $*"
  local begun=$SECONDS
  "$@"
  passed+=("$step")
  echo "== $step: passed in $((SECONDS - begun)) s"
}

# Tools that cargo installs stay in the target directory.
deny() {
  if [ -x "$CARGO_TARGET_DIR/tools/bin/cargo-deny" ]; then
    PATH="$CARGO_TARGET_DIR/tools/bin:$PATH" cargo deny "$@"
  else
    cargo deny "$@"
  fi
}

have_deny() {
  [ -x "$CARGO_TARGET_DIR/tools/bin/cargo-deny" ] || cargo deny --version >/dev/null 2>&1
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

# Tests against a real chain start a node and a wallet from npm, pinned by tests/chain/package-lock.json.
chain_packages() {
  (cd tests/chain && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error)
}

have_node() {
  command -v npm >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node, 10) >= 20 ? 0 : 1)' 2>/dev/null
}

# packages_missing FOLDER: succeeds if its npm packages are missing or older than its lock file, which npm writes last.
packages_missing() {
  local installed=$1/node_modules/.package-lock.json
  [ ! -f "$installed" ] || [ "$1/package-lock.json" -nt "$installed" ]
}

# Tests of the pages drive a real browser, Debian's Chromium.
browser_packages() {
  (cd tests/browser && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error)
}

# Tests of the MCP server use the official clients: TypeScript's from npm, and Python's in a virtual environment.
mcp_packages() {
  (cd tests/mcp && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error)
}

# Tests of the OpenAPI document generate clients from it, in TypeScript and Python. Those of LLM routes use OpenAI's
# clients in both languages, and webhooks are verified with the official libraries of Standard Webhooks; both are
# installed here too.
clients_packages() {
  (cd tests/clients && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error)
}

# Requests are paid with the published clients of x402, in JavaScript and Python, and with its own facilitator.
x402_packages() {
  (cd tests/x402 && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error)
}

# Those of MPP need other versions of the same packages.
mpp_packages() {
  (cd tests/x402/mpp && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error)
}

mcp_venv=$CARGO_TARGET_DIR/tools/mcp-venv
clients_venv=$CARGO_TARGET_DIR/tools/clients-venv
# Tests of LLM routes have LiteLLM as their upstream.
llm_venv=$CARGO_TARGET_DIR/tools/llm-venv
mail_venv=$CARGO_TARGET_DIR/tools/mail-venv
x402_venv=$CARGO_TARGET_DIR/tools/x402-venv
mpp_venv=$CARGO_TARGET_DIR/tools/mpp-venv
spelling_venv=$CARGO_TARGET_DIR/tools/spelling-venv
# Tests behind proxies run Envoy from its Python package.
proxies_venv=$CARGO_TARGET_DIR/tools/proxies-venv
# Tests of the continuous backup run Litestream from its Python package.
litestream_venv=$CARGO_TARGET_DIR/tools/litestream-venv

# venv_packages VENV FOLDER: a virtual environment with what FOLDER/requirements.txt lists, which must be complete.
# pip does not resolve dependencies itself: if one asks for extras of a listed package, it would want the newest version,
# and refuse it because it is not listed.
venv_packages() {
  rm -rf "$1" && python3 -m venv "$1" &&
    "$1/bin/pip" install --quiet --disable-pip-version-check --no-input --only-binary :all: --require-hashes --no-deps \
      -r "$2/requirements.txt" &&
    "$1/bin/pip" check --disable-pip-version-check &&
    # Copied last, so that an interrupted installation is repeated.
    cp "$2/requirements.txt" "$1/installed.txt"
}

# venv_outdated VENV FOLDER: whether it is missing, or older than FOLDER/requirements.txt.
venv_outdated() {
  ! cmp -s "$2/requirements.txt" "$1/installed.txt"
}

have_python() {
  python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

install_python() {
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv
}

have_chromium() {
  command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1
}

install_chromium() {
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-inter
}

# Tests with several nodes start a real PostgreSQL (Debian's package) with its own data and port.
have_postgres() {
  have psql && { compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || have postgres; }
}

# Prevents the package from creating and starting a cluster.
install_postgres() {
  apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-common &&
    sed -i 's/^#*[[:space:]]*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql
}

# Installs packages of servers without starting the servers: the tests start their own. See invoke-rc.d(8).
install_stopped() {
  local policy=/usr/sbin/policy-rc.d status=0
  if [ -e "$policy" ]; then
    policy=
  else
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" || return
  fi
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } ||
    status=$?
  [ -z "$policy" ] || rm -f "$policy"
  return "$status"
}

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

# missing NAME PROGRAMS WHAT: what happens without them: an error in CI; else the tests learn it from a variable.
missing() {
  local name=$1 programs=$2 what=$3
  [ "${CI:-}" != true ] || fail "not installed, and apt-get cannot install it: $programs; needed: $what"
  export "METERING_TESTS_SKIP_${name^^}=1"
  skipped+=("$name")
  echo
  echo "== $name: skipped: $what, because one of these is not installed: $programs"
}

# debian NAME "PROGRAM..." WHAT PACKAGE...: has servers from Debian's packages.
debian() {
  local name=$1 programs=$2 what=$3
  shift 3
  # shellcheck disable=SC2086 # words
  if ! have $programs && can_install; then
    run "install-$name" install_stopped "$@"
  fi
  # shellcheck disable=SC2086 # words
  have $programs || missing "$name" "$programs" "$what"
}

if have_node; then
  if packages_missing tests/chain; then
    run chain-packages chain_packages
  fi
elif [ "${CI:-}" = true ]; then
  fail "Node.js 20 or newer with npm is not installed; the tests against a real chain need it"
else
  # The tests read this variable; each reports that it is skipped.
  export METERING_TESTS_SKIP_CHAIN=1
  skipped+=(chain)
  echo
  echo "== chain: the tests against a real chain are skipped, because Node.js 20 or newer with npm is not installed"
fi

if ! have_chromium && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  run install-chromium install_chromium
fi
if have_node && have_chromium; then
  if packages_missing tests/browser; then
    run browser-packages browser_packages
  fi
elif [ "${CI:-}" = true ]; then
  fail "Chromium is not installed, and apt-get cannot install it; the tests of the pages need it"
else
  export METERING_TESTS_SKIP_BROWSER=1
  skipped+=(browser)
  echo
  echo "== browser: the tests of the pages are skipped, because Chromium, or Node.js 20 or newer, is not installed"
fi

if ! have_python && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  run install-python install_python
fi
if have_node && have_python; then
  if packages_missing tests/mcp; then
    run mcp-packages mcp_packages
  fi
  if venv_outdated "$mcp_venv" tests/mcp; then
    run mcp-venv venv_packages "$mcp_venv" tests/mcp
  fi
elif [ "${CI:-}" = true ]; then
  fail "Python 3.11 or newer with venv, or Node.js 20 or newer, is not installed; the tests with MCP clients need both"
else
  export METERING_TESTS_SKIP_MCP=1
  skipped+=(mcp)
  echo
  echo "== mcp: the tests with MCP clients are skipped, because Python 3.11 or newer with venv, or Node.js 20 or newer," \
    "is not installed"
fi

if have_python; then
  if venv_outdated "$mail_venv" tests/mail; then
    run mail-venv venv_packages "$mail_venv" tests/mail
  fi
elif [ "${CI:-}" = true ]; then
  fail "Python 3.11 or newer with venv is not installed; the tests that send mail need it"
else
  export METERING_TESTS_SKIP_MAIL=1
  skipped+=(mail)
  echo
  echo "== mail: the tests that send mail are skipped, because Python 3.11 or newer with venv is not installed"
fi

if have_node && have_python; then
  if packages_missing tests/clients; then
    run clients-packages clients_packages
  fi
  if venv_outdated "$clients_venv" tests/clients; then
    run clients-venv venv_packages "$clients_venv" tests/clients
  fi
elif [ "${CI:-}" = true ]; then
  fail "Python 3.11 or newer with venv, or Node.js 20 or newer, is not installed; the tests with generated clients and of webhooks need both"
else
  export METERING_TESTS_SKIP_CLIENTS=1
  skipped+=(clients)
  echo
  echo "== clients: the tests with generated clients and of webhooks are skipped, because Python 3.11 or newer with venv," \
    "or Node.js 20 or newer, is not installed"
fi

if have_node && have_python; then
  if packages_missing tests/x402; then
    run x402-packages x402_packages
  fi
  if venv_outdated "$x402_venv" tests/x402; then
    run x402-venv venv_packages "$x402_venv" tests/x402
  fi
  if packages_missing tests/x402/mpp; then
    run mpp-packages mpp_packages
  fi
  if venv_outdated "$mpp_venv" tests/x402/mpp; then
    run mpp-venv venv_packages "$mpp_venv" tests/x402/mpp
  fi
elif [ "${CI:-}" = true ]; then
  fail "Python 3.11 or newer with venv, or Node.js 20 or newer, is not installed; the tests with clients of x402 and MPP need both"
else
  export METERING_TESTS_SKIP_X402=1
  skipped+=(x402)
  echo
  echo "== x402: the tests with clients of x402 are skipped, because Python 3.11 or newer with venv, or Node.js 20 or newer," \
    "is not installed"
fi

if have_node && have_python; then
  if venv_outdated "$llm_venv" tests/llm; then
    run llm-venv venv_packages "$llm_venv" tests/llm
  fi
elif [ "${CI:-}" = true ]; then
  fail "Python 3.11 or newer with venv, or Node.js 20 or newer, is not installed; the tests of LLM routes need both"
else
  export METERING_TESTS_SKIP_LLM=1
  skipped+=(llm)
  echo
  echo "== llm: the tests of LLM routes are skipped, because Python 3.11 or newer with venv, or Node.js 20 or newer," \
    "is not installed"
fi

if ! have_postgres && can_install; then
  run install-postgres install_postgres
fi
have_postgres || missing postgres PostgreSQL "the tests on PostgreSQL"
debian pgbouncer pgbouncer "the tests behind a pooler" pgbouncer
# Tests behind proxies start real ones (Debian's packages, and Envoy from PyPI).
debian proxies "nginx haproxy caddy" "the tests behind proxies" nginx-light haproxy caddy
if ! have_python; then
  missing proxies "Python 3.11 or newer with venv" "the tests behind proxies"
elif venv_outdated "$proxies_venv" tests/proxies; then
  run proxies-venv venv_packages "$proxies_venv" tests/proxies
fi
if ! have_python; then
  missing litestream "Python 3.11 or newer with venv" "the tests of the continuous backup by Litestream"
elif venv_outdated "$litestream_venv" tests/litestream; then
  run litestream-venv venv_packages "$litestream_venv" tests/litestream
fi
debian patroni "patroni etcd haproxy" "the tests of failovers by Patroni" patroni etcd-server haproxy
debian prometheus "prometheus promtool" "the tests of the alert rules" prometheus
debian yardsticks "nginx redis-server redis-benchmark wrk" "the benchmark's comparisons" nginx-light redis-server redis-tools wrk

# Tests of the packages need a Debian root, made once: that of the oldest release that the package supports, with what the
# package and the image need, so that the tests download nothing.
debian_root=$CARGO_TARGET_DIR/tools/debian-root.tar
make_debian_root() {
  # Renamed last, so that an interrupted attempt is repeated.
  mmdebstrap --quiet --format=tar --variant=minbase --include=ca-certificates,curl,systemd-standalone-sysusers bookworm \
    "$debian_root.partial" &&
    mv "$debian_root.partial" "$debian_root"
}

# The test of the service boots a Debian with systemd, which conflicts with systemd-standalone-sysusers.
systemd_root=$CARGO_TARGET_DIR/tools/systemd-root.tar
make_systemd_root() {
  mmdebstrap --quiet --format=tar --variant=minbase --include=ca-certificates,curl,dbus,init-system-helpers,procps,systemd-sysv \
    bookworm "$systemd_root.partial" &&
    mv "$systemd_root.partial" "$systemd_root"
}

have_cargo_deb() {
  [ -x "$CARGO_TARGET_DIR/tools/bin/cargo-deb" ] || have cargo-deb
}

packages_need="mmdebstrap systemd-analyze dpkg-deb dpkg-shlibdeps buildah docker-compose"
if [ "$(id -u)" != 0 ]; then
  missing packages "root's rights (chroot)" "the tests of the packages"
else
  debian packages "$packages_need" "the tests of the packages" mmdebstrap systemd dpkg-dev \
    buildah docker-compose
  if ! have_cargo_deb && [ "${CI:-}" = true ]; then
    run install-cargo-deb cargo install cargo-deb --locked --version "$cargo_deb_version" --root "$CARGO_TARGET_DIR/tools"
  fi
  # shellcheck disable=SC2086 # words
  if ! have_cargo_deb; then
    missing packages "cargo-deb (cargo install cargo-deb --locked)" "the tests of the packages"
  elif have $packages_need && [ ! -f "$debian_root" ]; then
    run debian-root make_debian_root
  fi
fi

systemd_needs="systemd-nspawn mmdebstrap unshare nsenter setpriv"
if [ "$(id -u)" != 0 ]; then
  missing systemd "root's rights (mounts, control groups)" "the test of the service under systemd"
elif ! unshare --mount --propagation private mount -t cgroup2 none /sys/fs/cgroup; then
  # Nothing that could be installed changes this: a sandbox keeps even root from booting a system.
  export METERING_TESTS_SKIP_SYSTEMD=1
  skipped+=(systemd)
  echo
  echo "== systemd: skipped: the test of the service under systemd, because control groups (cgroup2) cannot be mounted here"
else
  debian systemd "$systemd_needs" "the test of the service under systemd" systemd-container mmdebstrap util-linux
  # shellcheck disable=SC2086 # words
  if have $systemd_needs && [ ! -f "$systemd_root" ]; then
    run systemd-root make_systemd_root
  fi
fi

if have_python; then
  if venv_outdated "$spelling_venv" tests/spelling; then
    run spelling-venv venv_packages "$spelling_venv" tests/spelling
  fi
  run spelling "$spelling_venv/bin/typos"
elif [ "${CI:-}" = true ]; then
  fail "Python 3.11 or newer with venv is not installed, and cannot be with apt-get; the spelling check needs it"
else
  skipped+=(spelling)
  echo
  echo "== spelling: skipped, because Python 3.11 or newer with venv is not installed"
fi

if have prometheus promtool; then
  run alert-rules promtool check rules deploy/prometheus/metering.rules.yml
  run alert-config promtool check config --syntax-only deploy/prometheus/prometheus.yml
  run alert-tests promtool test rules deploy/prometheus/tests/metering.test.yml
fi
run format cargo fmt --all --check
run clippy cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
# metering-core must build alone, without the features that other crates turn on.
run core-alone cargo check --locked -p metering-core
run doc env RUSTDOCFLAGS=-Dwarnings cargo doc --locked --workspace --no-deps --all-features
# The end-to-end tests start the programs and examples built here.
run build cargo build --locked --workspace --all-targets --all-features
# Compares the public API of the library crates with its listing in docs/public-api.
run public-api "$CARGO_TARGET_DIR/debug/public-api"
run test cargo test --locked --workspace --all-features
# Shows only that the benchmark works, not how fast anything is.
run bench-smoke "$CARGO_TARGET_DIR/debug/bench" --quick

# A short run of each chaos campaign, without and with its planted bug; `just chaos` runs them for longer.
run chaos-smoke "$CARGO_TARGET_DIR/debug/chaos" --smoke

if ! have_deny && [ "${CI:-}" = true ]; then
  run install-cargo-deny cargo install cargo-deny --locked --version "$cargo_deny_version" --root "$CARGO_TARGET_DIR/tools"
fi
if have_deny; then
  # Advisories need a database from the network, and change independently of this code: run `cargo deny check
  # advisories` yourself.
  run deny deny check bans licenses sources
else
  skipped+=(deny)
  echo
  echo "== deny: skipped, because cargo-deny is not installed. To install it: cargo install cargo-deny --locked"
fi
