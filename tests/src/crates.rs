//! The crates of the workspace, and which of them each may use.
//!
//! Rule: what is built of what is written here alone; the architecture's test holds every manifest to it, and a program
//! counts as old when a crate of its row is newer. Not here: libraries of others.

/// Every crate, and the crates of the workspace which it may use.
pub const TABLE: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("log-filters", &["wire"]),
    ("tunnel", &["wire"]),
    ("overlay", &["wire", "tunnel"]),
    ("rpc", &["wire"]),
    ("daemon", &[]),
    ("sensor", &["wire", "log-filters", "overlay", "rpc", "daemon"]),
    ("directory", &["wire", "overlay", "rpc", "daemon"]),
    ("proxy", &["wire", "tunnel", "overlay", "rpc", "daemon"]),
    (
        "visperf",
        &["wire", "log-filters", "tunnel", "overlay", "rpc", "daemon", "sensor", "directory", "proxy"],
    ),
    ("viewer", &["wire", "log-filters", "tunnel", "overlay"]),
    (
        "system-tests",
        &[
            "wire",
            "log-filters",
            "tunnel",
            "overlay",
            "rpc",
            "daemon",
            "sensor",
            "directory",
            "proxy",
            "visperf",
            "viewer",
        ],
    ),
];

/// The crates of which the package of this name is made: itself and those it may use.
#[must_use]
pub fn made_of(package: &str) -> Vec<&'static str> {
    let row = TABLE.iter().find(|(name, _)| *name == package);
    row.into_iter().flat_map(|(name, used)| std::iter::once(name).chain(*used)).copied().collect()
}
