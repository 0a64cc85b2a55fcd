# The other programs that visperf is measured beside: Debian's packages, unpacked into a folder of their own.
#
# Sourced after measure.sh. rsyslog and syslog-ng refuse to be installed together, and none of them should
# become a service of this machine: so the packages are downloaded and unpacked under $PEERS, with what they
# need and the machine lacks. A program that is installed anyway is used as it is.

PEERS=${VISPERF_PEERS:-${CARGO_TARGET_DIR:-$ROOT/target}/peers}

# fetch_peer PACKAGE: $PEERS/PACKAGE/root holds it, or this fails.
fetch_peer() {
    local package=$1 folder=$PEERS/$1 archive
    [ -e "$folder/complete" ] && return
    mkdir -p "$folder/archives/partial" "$folder/root"
    apt-get install -y -qq --no-install-recommends --download-only --reinstall \
        -o APT::Sandbox::User=root -o "Dir::Cache::archives=$folder/archives" "$package" >"$folder/apt.log" 2>&1 ||
        { cat "$folder/apt.log" >&2; return 1; }
    for archive in "$folder"/archives/*.deb; do
        dpkg-deb -x "$archive" "$folder/root" || return 1
    done
    touch "$folder/complete"
}

# peer_program PACKAGE PROGRAM: sets PEER_ROOT ("" where it is installed), PROGRAM and PEER_LIBRARIES.
peer_program() {
    local found
    PEER_ROOT="" PEER_LIBRARIES=""
    PROGRAM=$(command -v "$2" || true)
    [ -n "$PROGRAM" ] && return
    [ -e "$PEERS/$1/complete" ] || return 1
    PEER_ROOT=$PEERS/$1/root
    for found in "$PEER_ROOT"/usr/sbin/"$2" "$PEER_ROOT"/usr/bin/"$2"; do
        [ -x "$found" ] && PROGRAM=$found
    done
    [ -n "$PROGRAM" ] || return 1
    PEER_LIBRARIES=$(find "$PEER_ROOT" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
}

# peer_folder FILE: the folder of the peer's module of this name.
peer_folder() {
    find "$PEER_ROOT" -name "$1" -printf '%h\n' | head -n 1
}

# start_peer NAME ARGUMENTS...: the program that peer_program found.
start_peer() {
    local name=$1
    shift
    start "$name" env LD_LIBRARY_PATH="$PEER_LIBRARIES" "$PROGRAM" "$@"
}
