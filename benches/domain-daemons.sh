# Daemons of one domain on loopback: ordinary sensors, each with a log, a configuration and a state folder of its own.
#
# Sourced after measure.sh. STATES is the folder of their state folders; the first daemon is `head`, which creates
# the domain and represents it.

STATES=$WORK

# config_of NAME PORT: its configuration, with a log of its own, and what SENSOR and TAILS add; PORT is its overlay's.
config_of() {
    : >"$WORK/$1.log"
    printf '[sensor]\nzone = "UTC"\n%s\n[[sensor.tail]]\npath = "%s"\nfilter = "slurmctld"\n%s\n[overlay]\nlisten = "127.0.0.1:%s"\n' \
        "${SENSOR:-}" "$WORK/$1.log" "${TAILS:-}" "$2" >"$WORK/$1.toml"
}

# start_daemon NAME [COMMAND...]: the sensor of this name, by a command such as taskset; PID is its number.
start_daemon() {
    local name=$1
    shift
    "$@" "$VISPERF" sensor --config "$WORK/$name.toml" --state "$STATES/$name" --listen 127.0.0.1:0 >"$WORK/$name.out" 2>&1 </dev/null &
    PID=$!
    STARTED+=("$PID")
    await 30 test -s "$STATES/$name/listen" || die "$name wrote no address: $(tail -n 5 "$WORK/$name.out")"
}

# start_head [COMMAND...]: create the domain and start its first daemon; HEAD answers queries, HEAD_PORT is its
# overlay's, HEAD_PID its number.
start_head() {
    HEAD_PORT=$(free_port)
    config_of head "$HEAD_PORT"
    "$VISPERF" domain create BENCH --host head --state "$STATES/head" >"$WORK/create.out" 2>&1 || die "$(cat "$WORK/create.out")"
    start_daemon head "$@"
    HEAD_PID=$PID
    HEAD=$(sensor_address "$STATES/head")
}

# join_domain NAME [COMMAND...]: a token of the head's for it, and its daemon, by a command such as unshare.
join_domain() {
    local token name=$1
    config_of "$1" "$(free_port)"
    token=$("$VISPERF" token create --state "$STATES/head" --address "127.0.0.1:$HEAD_PORT" 2>"$WORK/token.out" | grep -o 'visperf1-[^ ]*')
    "$VISPERF" join "$token" --host "$1" --state "$STATES/$1" >"$WORK/join.out" 2>&1 || die "$(cat "$WORK/join.out")"
    shift
    start_daemon "$name" "$@"
}

# hosts_live COUNT: whether so many hosts report to the head.
hosts_live() {
    local found
    found=$(curl -sf "http://$HEAD/api/v1/domain.hosts" | python3 -c 'import json, sys; print(sum(host["state"] == "live" and "sensor" in host for host in json.load(sys.stdin)["hosts"]))') || return 1
    [ "$found" -eq "$1" ]
}
