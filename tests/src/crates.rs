//! Crate table: the crates of the workspace, and which of them each may use.
//!
//! Rule: this table alone defines the dependencies; the architecture test checks every manifest against it,
//! and a program is out of date if a crate in its row is newer. Not here: third-party libraries.

/// Every crate, and the crates of the workspace that it may use.
pub const TABLE: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("log-filters", &["wire"]),
    ("call-store", &["wire", "log-filters"]),
    ("tunnel", &["wire"]),
    ("daemon", &[]),
    ("store", &["wire", "daemon"]),
    ("history-files", &["wire", "store"]),
    ("overlay", &["wire", "tunnel", "daemon"]),
    ("rpc", &["wire"]),
    ("client", &["wire", "tunnel"]),
    ("sensor", &["wire", "log-filters", "call-store", "store", "rpc", "daemon"]),
    ("directory", &["wire", "call-store", "overlay", "rpc", "daemon"]),
    ("proxy", &["wire", "tunnel", "overlay", "rpc", "daemon"]),
    (
        "visperf",
        &[
            "wire",
            "log-filters",
            "history-files",
            "tunnel",
            "overlay",
            "rpc",
            "client",
            "daemon",
            "sensor",
            "directory",
            "proxy",
        ],
    ),
    ("viewer", &["wire", "log-filters", "overlay", "client"]),
    (
        "system-tests",
        &[
            "wire",
            "store",
            "call-store",
            "history-files",
            "log-filters",
            "tunnel",
            "overlay",
            "rpc",
            "client",
            "daemon",
            "sensor",
            "directory",
            "proxy",
            "visperf",
            "viewer",
        ],
    ),
];

/// The crates that make up the package of this name: itself, those it may use, and, recursively, those that
/// they use.
#[must_use]
pub fn made_of(package: &str) -> Vec<&'static str> {
    let mut made: Vec<&'static str> = Vec::new();
    let mut waiting = vec![package];
    while let Some((name, used)) = waiting.pop().and_then(|next| TABLE.iter().find(|(name, _)| *name == next))
    {
        if !made.contains(name) {
            made.push(name);
            waiting.extend(*used);
        }
    }
    made
}
