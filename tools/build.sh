# tools/build.sh - what dev, tools/fuzz and tools/lint share; sourced at the top of the tree.

# Shows what a command says only when it fails.
quietly() {
    log=$(mktemp)
    "$@" >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; return 1; }
    rm -f "$log"
}

# Makes or refreshes a build directory: configure DIR [MESON_OPTION...]. The include roots are made
# before every build, since a header added to a room needs its link.
configure() {
    dir=$1
    shift
    [ -f "$dir/build.ninja" ] || quietly meson setup "$dir" "$@"
    tools/roots "$dir"
    quietly ninja -C "$dir" build.ninja
}

# A build directory that was configured before the packages of the tests were installed lacks their
# targets: reconfigure_for DIR TARGET
reconfigure_for() {
    ninja -C "$1" -t query "$2" >/dev/null 2>&1 ||
        { quietly meson setup --reconfigure "$1" && build "$1"; }
}

# build DIR [TARGET...]
build() {
    if [ -t 1 ]; then ninja -C "$@"; else ninja --quiet -C "$@"; fi
}
