# A site on loopback: a domain, a directory and a proxy, each the ordinary program with a state folder of its own.
#
# Sourced after measure.sh.

# proxy_bench NAME: where the built program of this benchmark of the proxy's is.
proxy_bench() {
    (cd "$ROOT" && cargo bench -q --no-run --message-format=json -p proxy --bench "$1") |
        python3 -c 'import json, sys; print(next(built["executable"] for built in map(json.loads, sys.stdin) if built.get("executable") and built["target"]["name"] == sys.argv[1]))' "$1"
}

# run NAME COMMAND...: in the background; PID is its number, its words are in $WORK/NAME.out.
run() {
    local name=$1
    shift
    : >"$WORK/$name.out"
    "$@" >"$WORK/$name.out" 2>"$WORK/$name.err" </dev/null &
    PID=$!
    STARTED+=("$PID")
}

# said NAME: the first line of what it says, when it says something.
said() {
    await 20 test -s "$WORK/$1.out" || die "$1 says nothing: $(cat "$WORK/$1.err")"
    head -n 1 "$WORK/$1.out"
}

# start_site ACCOUNTS: a domain of one host with the events of the recorded log, a directory, and a proxy with so many
# accounts, NAME:SECRET in ACCOUNTS with commas between. HEAD and PROXY are the processes, TO the sensor's listener, DOOR the
# port of the proxy's door, CERTIFICATE its file.
start_site() {
    local overlay directory door key
    overlay=$(free_port) directory=$(free_port) door=$(free_port)
    "$VISPERF" domain create BENCH --host head --state "$WORK/head" >"$WORK/create.out" 2>&1 || die "$(cat "$WORK/create.out")"
    "$VISPERF" key --state "$WORK/proxy" >"$WORK/proxy.key"
    "$VISPERF" domain certify "$(cat "$WORK/proxy.key")" --host proxy --role viewer --state "$WORK/head" >"$WORK/proxy.cert" 2>"$WORK/certify.err"
    "$VISPERF" join "$WORK/proxy.cert" --state "$WORK/proxy" >"$WORK/join.out" 2>&1
    key=$("$VISPERF" key --state "$WORK/directory")
    printf '[directory.domains]\nBENCH = "%s"\n[overlay]\nlisten = "127.0.0.1:%s"\n' \
        "$(grep -o '12D3Koo[A-Za-z0-9]*' "$WORK/create.out" | head -n 1)" "$directory" >"$WORK/directory.toml"
    run directory "$VISPERF" directory --config "$WORK/directory.toml" --state "$WORK/directory" --listen 127.0.0.1:0
    printf '[overlay]\nlisten = "127.0.0.1:%s"\ndirectories = ["%s@127.0.0.1:%s"]\n[proxy]\nlisten = "127.0.0.1:%s"\nnames = ["localhost"]\ntls = true\n' \
        "$overlay" "$key" "$directory" "$door" >"$WORK/proxy.toml"
    ACCOUNTS=
    for number in $(seq "$1"); do
        ACCOUNTS+="user$number:$("$VISPERF" account add "user$number" --domain BENCH --json --state "$WORK/proxy" |
            python3 -c 'import json, sys; print(json.load(sys.stdin)["secret"])'),"
    done
    run proxy "$VISPERF" proxy --config "$WORK/proxy.toml" --state "$WORK/proxy" --listen 127.0.0.1:0
    PROXY=$PID OVERLAY=$overlay DIRECTORY=$key@127.0.0.1:$directory DOOR=$door CERTIFICATE=$WORK/proxy/proxy/certificate.pem
    printf '[sensor]\nzone = "UTC"\nfirst_start = "beginning"\n[[sensor.tail]]\npath = "%s"\nfilter = "slurmctld"\n[overlay]\nlisten = "127.0.0.1:%s"\ndirectories = ["%s@127.0.0.1:%s"]\nvia = ["%s@127.0.0.1:%s"]\n' \
        "$RECORDED" "$(free_port)" "$key" "$directory" "$(cat "$WORK/proxy.key")" "$overlay" >"$WORK/head.toml"
    run head "$VISPERF" sensor --config "$WORK/head.toml" --state "$WORK/head" --listen 127.0.0.1:0
    HEAD=$PID
    await 30 test -s "$WORK/head/listen" || die "the sensor wrote no address: $(cat "$WORK/head.err")"
    TO=$(sensor_address "$WORK/head")
    await 30 held || die 'the sensor holds no events'
    await 60 seen || die "the proxy does not reach the sensor: $(cat "$WORK/proxy.err" "$WORK/head.err")"
}

held() { curl -sf "http://$TO/api/v1/sensor.events?limit=100" | grep -q job_end; }

seen() {
    local first=${ACCOUNTS%%,*}
    curl -sf --digest --user "$first" --cacert "$CERTIFICATE" "https://localhost:$DOOR/d/BENCH/head/api/v1/sensor.metrics?name=node_load1" >"$WORK/seen"
}
