//! The crates of the workspace, and which of them each may use.
//!
//! Rule: what is built of what is written here alone; the architecture's test holds every manifest to it, and a program
//! counts as old when a crate of its row is newer. Not here: libraries of others.

/// Every crate, and the crates of the workspace which it may use.
pub const TABLE: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("log-filters", &["wire"]),
    ("tunnel", &["wire"]),
    ("daemon", &[]),
    ("overlay", &["wire", "tunnel", "daemon"]),
    ("rpc", &["wire"]),
    ("client", &["wire", "tunnel"]),
    ("sensor", &["wire", "log-filters", "rpc", "daemon"]),
    ("directory", &["wire", "overlay", "rpc", "daemon"]),
    ("proxy", &["wire", "tunnel", "overlay", "rpc", "daemon"]),
    (
        "visperf",
        &[
            "wire",
            "log-filters",
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

/// The crates of which the package of this name is made: itself, those it may use, and those that they use.
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
