#!/usr/bin/env bash
# What the way through a proxy costs, beside ssh -L, stunnel and rathole with its Noise transport in the same run on the
# same path: times of small questions, bytes a second on one stream and on 32, processor time of all that takes part.
#
# tunnel.sh [SECONDS] [bytes|questions] [ROUNDS]   (1, for each figure of a round; both; 5)
#
# Each round measures every way once, one after the other; what is shown is the median of the rounds.
# First bytes alone, by each rung on which a daemon inside holds its connection to a proxy, and through a proxy to another
# daemon; then questions of HTTP to an ordinary sensor: itself, at the door of an ordinary proxy, through the other
# programs. rathole is not in Debian: `cargo install rathole --no-default-features --features server,client,noise`;
# RATHOLE says where it is. What is missing is left out, and named.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/site.sh"
require_visperf

SPAN=${1:-1} PART=${2:-all} ROUNDS=${3:-5}
RATHOLE=${RATHOLE:-$(command -v rathole || true)}
TUNNEL=${VISPERF_TUNNEL:-$(proxy_bench tunnel)}
# Several processes pass bytes to each other here: all cores are theirs.
taskset -cp "0-$((CORES - 1))" $$ >/dev/null

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>>"$WORK/tried"; }

# start_ssh TO: FORWARDED is a port that leads to TO through sshd; CARRIERS are the processes that carry.
start_ssh() {
    local to=$1 port
    port=$(free_port) FORWARDED=$(free_port)
    mkdir -p "$WORK/ssh" /run/sshd
    [ -e "$WORK/ssh/host" ] || ssh-keygen -q -t ed25519 -N '' -f "$WORK/ssh/host"
    cp "$WORK/ssh/host.pub" "$WORK/ssh/authorized"
    printf 'Port %s\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n' \
        "$port" "$WORK/ssh/host" "$WORK/ssh/authorized" >"$WORK/ssh/config"
    run sshd /usr/sbin/sshd -D -e -f "$WORK/ssh/config"
    local server=$PID
    await 20 answers "$port" || die "sshd does not answer: $(cat "$WORK/sshd.err")"
    run ssh ssh -N -F none -i "$WORK/ssh/host" -p "$port" -L "127.0.0.1:$FORWARDED:$to" -o StrictHostKeyChecking=no \
        -o UserKnownHostsFile="$WORK/ssh/known" -o BatchMode=yes 127.0.0.1
    local client=$PID
    await 20 answers "$FORWARDED" || die "ssh does not answer: $(cat "$WORK/ssh.err")"
    CARRIERS="$client $(pgrep -P "$server" | tr '\n' ' ')"
    for server in $(pgrep -P "$server"); do CARRIERS+=" $(pgrep -P "$server" | tr '\n' ' ' || true)"; done
}

start_stunnel() {
    local to=$1 port
    port=$(free_port) FORWARDED=$(free_port)
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
        -keyout "$WORK/stunnel.key" -out "$WORK/stunnel.crt" 2>"$WORK/openssl.err"
    printf 'foreground = yes\npid =\n[there]\naccept = 127.0.0.1:%s\nconnect = %s\ncert = %s\nkey = %s\n' \
        "$port" "$to" "$WORK/stunnel.crt" "$WORK/stunnel.key" >"$WORK/there.conf"
    printf 'foreground = yes\npid =\n[here]\nclient = yes\naccept = 127.0.0.1:%s\nconnect = 127.0.0.1:%s\nCAfile = %s\nverifyChain = yes\n' \
        "$FORWARDED" "$port" "$WORK/stunnel.crt" >"$WORK/here.conf"
    run stunnel-there stunnel4 "$WORK/there.conf"
    CARRIERS=$PID
    await 20 answers "$port" || die "stunnel does not answer: $(cat "$WORK/stunnel-there.err")"
    run stunnel-here stunnel4 "$WORK/here.conf"
    CARRIERS+=" $PID"
    await 20 answers "$FORWARDED" || die "stunnel does not answer: $(cat "$WORK/stunnel-here.err")"
}

start_rathole() {
    local to=$1 port keys
    port=$(free_port) FORWARDED=$(free_port)
    keys=$("$RATHOLE" --genkey)
    local private public
    private=$(awk '/Private/ { getline; print }' <<<"$keys") public=$(awk '/Public/ { getline; print }' <<<"$keys")
    printf '[server]\nbind_addr = "127.0.0.1:%s"\ndefault_token = "bench"\n[server.transport]\ntype = "noise"\n[server.transport.noise]\nlocal_private_key = "%s"\n[server.services.bench]\nbind_addr = "127.0.0.1:%s"\n' \
        "$port" "$private" "$FORWARDED" >"$WORK/rathole-server.toml"
    printf '[client]\nremote_addr = "127.0.0.1:%s"\ndefault_token = "bench"\n[client.transport]\ntype = "noise"\n[client.transport.noise]\nremote_public_key = "%s"\n[client.services.bench]\nlocal_addr = "%s"\n' \
        "$port" "$public" "$to" >"$WORK/rathole-client.toml"
    run rathole-server "$RATHOLE" --server "$WORK/rathole-server.toml"
    CARRIERS=$PID
    await 20 answers "$port" || die "rathole does not answer: $(cat "$WORK/rathole-server.out")"
    run rathole-client "$RATHOLE" --client "$WORK/rathole-client.toml"
    CARRIERS+=" $PID"
    await 20 answers "$FORWARDED" || die "rathole does not answer: $(cat "$WORK/rathole-client.out")"
    sleep 1
}

stop_all() {
    local pid
    for pid in $1; do
        kill "$pid" 2>>"$WORK/tried" || true
    done
}

head_line() {
    printf '\n%s, medians of %s rounds of %s s for each figure, load %s\n' "$1" "$ROUNDS" "$SPAN" "$(machine_load)"
    printf '%-26s %8s %8s %9s %9s %9s %9s %9s %9s\n' "way" "p50 us" "p99 us" "MB/s of 1" "CPU s/GB" "MB/s of 32" "CPU s/GB" "p50 added" "MB/s : 1"
}

# show FILE: medians of each row, what they add to the first row's time, and the bytes a second of each as a part of the second row's.
show() {
    medians "$1" | awk -F'\t' 'NR == 1 { base = $2 } NR == 2 { own = $4 } {
        printf "%-26s %8.0f %8.0f %9.0f %9.2f %9.0f %9.2f %9.0f %9.2f\n", $1, $2, $3, $4, $5, $6, $7, $2 - base, (own ? $4 / own : 0) }'
}

# one_rung NAME WALL: as a proxy asks a daemon inside that came by that rung.
one_rung() {
    [ -p "$WORK/said-$2" ] || mkfifo "$WORK/said-$2"
    "$TUNNEL" gate "$1" "$2" "$SPAN" <"$WORK/said-$2" >"$WORK/gate.out" 2>"$WORK/gate.err" &
    local gate=$!
    STARTED+=("$gate")
    exec 4>"$WORK/said-$2"
    # shellcheck disable=SC2046  # key, door, overlay
    set -- $(said gate)
    run inside "$TUNNEL" inside "$1" "$2"
    echo "$PID" >&4
    exec 4>&-
    wait "$gate" || die "$(cat "$WORK/gate.err")"
    tail -n 1 "$WORK/gate.out" >>"$WORK/bytes"
    stop "$PID"
}

circuit() {
    local gate inside key door overlay
    run gate "$TUNNEL" gate - none
    gate=$PID
    read -r key door overlay <<<"$(said gate)"
    run inside "$TUNNEL" inside "$key" "$door"
    inside=$PID
    "$TUNNEL" circuit "visperf, through a proxy" "$(said inside)" "$key@$overlay" "$SPAN" "$gate" "$inside" >>"$WORK/bytes"
    stop "$inside"
    stop "$gate"
}

# start_visitor: FORWARDED leads to the sensor as programs ask through `visperf tunnel`, which the proxy cannot read.
start_visitor() {
    local first=${ACCOUNTS%%,*}
    FORWARDED=$(free_port)
    (umask 077 && printf '%s\n' "${first#*:}" >"$WORK/secret")
    VISPERF_KNOWN_DOMAINS=$WORK/known run visitor "$VISPERF" tunnel --listen "127.0.0.1:$FORWARDED" \
        --via "$(cat "$WORK/proxy.key")@127.0.0.1:$DOOR/d/BENCH/head" --account "${first%%:*}" --secret "$WORK/secret"
    CARRIERS=$PID
    await 30 answers "$FORWARDED" || die "visperf tunnel does not answer: $(cat "$WORK/visitor.err")"
}

# add NAME: the way that was just started, which FORWARDED leads to and CARRIERS carry.
add() { WAYS+=("$1|$FORWARDED|$CARRIERS"); }

start_peers() {
    start_ssh "$TO" && add 'ssh -L'
    if command -v stunnel4 >/dev/null; then
        start_stunnel "$TO" && add stunnel
    else
        echo 'stunnel4 is not there and left out' >&2
    fi
    if [ -n "$RATHOLE" ]; then
        start_rathole "$TO" && add 'rathole, noise'
    else
        echo 'rathole is not there and left out' >&2
    fi
}

# each COMMAND...: with NAME, FORWARDED and CARRIERS of every way.
each() {
    local way
    for way in "${WAYS[@]}"; do
        IFS='|' read -r NAME FORWARDED CARRIERS <<<"$way"
        "$@"
    done
}

rounds() { for _ in $(seq "$ROUNDS"); do "$@"; done; }

bytes_of_way() {
    # shellcheck disable=SC2086  # several numbers
    "$TUNNEL" tcp "$NAME" "127.0.0.1:$FORWARDED" "$SPAN" "$TARGET" $CARRIERS >>"$WORK/bytes"
}

bytes_round() {
    "$TUNNEL" tcp 'TCP alone' "$TO" "$SPAN" "$TARGET" >>"$WORK/bytes"
    one_rung 'visperf, direct' none
    one_rung 'visperf, WebSocket' tls
    one_rung 'visperf, polling' web
    circuit
    each bytes_of_way
}

bytes() {
    run target "$TUNNEL" target
    TARGET=$PID TO=$(said target) WAYS=()
    start_peers
    rounds bytes_round
    head_line 'bytes'
    show "$WORK/bytes"
    each stop_carriers
}

stop_carriers() { stop_all "$CARRIERS"; }

questions_of_way() {
    # shellcheck disable=SC2086  # several numbers
    "$TUNNEL" http "$NAME" "127.0.0.1:$FORWARDED" "$SMALL" "$LARGE" "$SPAN" "$HEAD" $CARRIERS >>"$WORK/questions"
}

questions_round() {
    "$TUNNEL" http 'the sensor itself' "$TO" "$SMALL" "$LARGE" "$SPAN" "$HEAD" >>"$WORK/questions"
    ACCOUNTS=$ACCOUNTS CERTIFICATE=$CERTIFICATE "$TUNNEL" http "visperf, a proxy's door" "127.0.0.1:$DOOR" "/d/BENCH/head$SMALL" \
        "/d/BENCH/head$LARGE" "$SPAN" "$HEAD" "$PROXY" >>"$WORK/questions"
    each questions_of_way
}

questions() {
    SMALL='/api/v1/sensor.metrics?name=node_load1' LARGE='/api/v1/sensor.events?limit=1000' WAYS=()
    start_site 4
    echo "answers: $(curl -sf "http://$TO$SMALL" | wc -c) bytes and $(curl -sf "http://$TO$LARGE" | wc -c) bytes"
    start_visitor && add "visperf, a visitor"
    start_peers
    rounds questions_round
    head_line 'questions to a sensor'
    show "$WORK/questions"
}

machine
[ "$PART" = questions ] || bytes
[ "$PART" = bytes ] || questions
