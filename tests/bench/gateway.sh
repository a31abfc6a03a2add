#!/usr/bin/env bash
# Compares the gateway with nginx as a plain proxy, in one run; both forward to the same nginx.
#
#   tests/bench/gateway.sh SERVER [SERVER...]
#
# SERVER is a metering-server program; with several, they take turns. Needs nginx, wrk,
# curl and python3. METERING is the metering program that creates the accounts (default: target/debug/metering). ROUNDS, SECONDS_EACH, KEYS and CONNECTIONS change
# the defaults. Prints the requests per second of each round, then the medians and their ratio to nginx.
set -euo pipefail

rounds=${ROUNDS:-3} seconds=${SECONDS_EACH:-4} keys=${KEYS:-300} connections=${CONNECTIONS:-64 256}
metering=${METERING:-$(dirname "${BASH_SOURCE[0]}")/../../target/debug/metering}
[ $# -gt 0 ] || { sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
for tool in nginx wrk curl python3 "$metering" "$@"; do
  command -v "$tool" >/dev/null || { echo "gateway.sh: $tool is missing" >&2; exit 2; }
done

folder=$(mktemp -d)
server=
nginx=
end() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$nginx" ] || kill "$nginx" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap end EXIT

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
upstream=127.0.0.1:$(free_port) proxy=127.0.0.1:$(free_port) gateway=127.0.0.1:$(free_port)

cat > "$folder/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $folder/nginx.pid; error_log $folder/nginx.log;
events { worker_connections 8192; }
http {
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path $folder/body; proxy_temp_path $folder/proxy; fastcgi_temp_path $folder/fastcgi;
  uwsgi_temp_path $folder/uwsgi; scgi_temp_path $folder/scgi;
  upstream upstream { server $upstream; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen $upstream backlog=4096;
    location / { default_type application/json; return 200 '{"price":"1234.567890","block":24036000,"at":"2026-11-22T12:00:00Z"}'; }
  }
  server {
    listen $proxy backlog=4096;
    location / { proxy_pass http://upstream; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
CONF
cat > "$folder/routes.json" <<'JSON'
{"market": "bench", "version": 1, "endpoints": [
  {"path": "/v/charged", "method": "GET", "metered": true}, {"path": "/v/free", "method": "GET", "metered": false}]}
JSON
cat > "$folder/keys.lua" <<LUA
local requests, next = {}, 0
init = function()
  for key in io.lines("$folder/keys") do
    requests[#requests + 1] = wrk.format("GET", nil, { ["Authorization"] = "Bearer " .. key })
  end
end
request = function() next = next % #requests + 1; return requests[next] end
LUA
for i in $(seq "$keys"); do
  "$metering" admin account create --data "$folder/data" --agent-name "a$i" --credits 100000 --rpm 0 --rpd 0 --json
done 2>/dev/null | grep -o 'sk_live_[A-Za-z0-9]*' > "$folder/keys"
[ "$(wc -l < "$folder/keys")" = "$keys" ] || { echo "gateway.sh: could not create the accounts" >&2; exit 1; }

nginx -c "$folder/nginx.conf" &
nginx=$!

wait_for() {
  for _ in $(seq 100); do curl -s -o /dev/null "$1" && return; sleep 0.1; done
  echo "gateway.sh: nothing answers at $1" >&2
  exit 1
}

# measure LABEL CONNECTIONS URL [WRK OPTIONS]: a response that is not 2xx ends the run.
measure() {
  local label=$1 connections=$2 url=$3 output rate
  shift 3
  output=$(wrk -t1 -c"$connections" -d"${seconds}s" "$@" "$url")
  ! grep -E 'Non-2xx|Socket errors' <<< "$output" >&2 || { echo "gateway.sh: $label: bad responses" >&2; exit 1; }
  rate=$(awk '/Requests\/sec/ { print int($2) }' <<< "$output")
  printf '%s\t%s\t%s\n' "$label" "$connections" "$rate" | tee -a "$folder/rates"
}

wait_for "http://$proxy/v/free"
for _ in $(seq "$rounds"); do
  for count in $connections; do
    measure nginx "$count" "http://$proxy/v/free"
    for program in "$@"; do
      rm -rf "$folder/run" && cp -r "$folder/data" "$folder/run"
      "$program" --data "$folder/run" --listen "$gateway" --upstream "http://$upstream" \
        --catalogue "$folder/routes.json" > "$folder/server.log" 2>&1 &
      server=$!
      wait_for "http://$gateway/health"
      measure "$(basename "$program") not metered" "$count" "http://$gateway/v/free"
      measure "$(basename "$program") charged" "$count" "http://$gateway/v/charged" -s "$folder/keys.lua"
      kill "$server" && wait "$server" 2>/dev/null || true
      server=
    done
  done
done

echo
echo "Medians of $rounds rounds, and their ratio to nginx:"
sort -t "$(printf '\t')" -k1,1 -k2,2n -k3,3n "$folder/rates" | awk -F '\t' '
  { key = $1 "\t" $2; rates[key, ++seen[key]] = $3; if (seen[key] == 1) order[++keys] = key }
  END {
    for (i = 1; i <= keys; i++) median[order[i]] = rates[order[i], int((seen[order[i]] + 1) / 2)]
    for (i = 1; i <= keys; i++) {
      split(order[i], part, "\t")
      printf "%-32s %4d connections  %7d  %.2f\n", part[1], part[2], median[order[i]], median[order[i]] / median["nginx\t" part[2]]
    }
  }'
