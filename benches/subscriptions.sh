#!/usr/bin/env bash
# One user's subscriptions against another's: figures without the attack, and under it. As root, on a machine at rest.
#
#   benches/subscriptions.sh [SECONDS]      30 of each
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-30}
[ "$(id -u)" = 0 ] || { echo 'it takes root, to act as two other users' >&2; exit 1; }
visperf=${VISPERF:-target/release/visperf}
[ -x "$visperf" ] || cargo build --release --package visperf
folder=$(mktemp -d)
chmod 755 "$folder"
cp benches/subscriptions.py "$folder/"
"$visperf" sensor --state "$folder/state" --listen 127.0.0.1:0 --socket "$folder/s.sock" 2> "$folder/log" &
sensor=$!
trap 'kill "$sensor"; wait "$sensor" || true; rm -rf "$folder"' EXIT
until [ -S "$folder/s.sock" ]; do sleep 0.1; done
sleep 3
as() { setpriv --reuid "$1" --regid "$1" --clear-groups /usr/bin/python3 "$folder/subscriptions.py" "$folder/s.sock" "${@:2}"; }
echo '== at rest'
as 65533 measure "$seconds" 120
echo '== beside the attack of another user'
as 65534 attack $((seconds + 10)) &
attacker=$!
sleep 5
as 65533 measure "$seconds" 120
wait "$attacker"
