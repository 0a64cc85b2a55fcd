//! Dependency rules: the table of crates, and the libraries that only certain crates may use.
//!
//! Rule: what `system_tests::crates` does not allow is forbidden; a new crate must be entered there, with a
//! reason in `docs/decisions/`. Not here: dependencies of tests, which are not restricted.

use super::assert_none;
use super::manifests::{Member, members};
use system_tests::crates::TABLE;

/// Libraries, by the start of their names, and the only crates that may name them.
const KEPT: &[(&str, &[&str])] = &[
    ("libp2p", &["overlay"]),
    ("egui", &["viewer"]),
    ("eframe", &["viewer"]),
    ("pco", &["store"]),
    ("sqlx", &["call-store"]),
    ("parquet", &["history-files"]),
    ("object_store", &["history-files"]),
    ("zstd", &["sensor"]),
    ("axum", &["rpc"]),
    ("tower", &["rpc"]),
    ("dxr", &["rpc"]),
    ("quick-xml", &["rpc"]),
    ("xmlrpc", &["visperf", "system-tests"]),
];

/// Packages whose folder has a different name.
const FOLDERS: &[(&str, &str)] = &[("tests", "system-tests")];

fn problems(members: &[Member]) -> Vec<String> {
    let mut problems = Vec::new();
    for member in members {
        let name = &member.name;
        let folder = FOLDERS.iter().find(|(folder, _)| *folder == member.folder);
        let expected = folder.map_or(member.folder.as_str(), |(_, package)| package);
        if name != expected {
            problems.push(format!("{}: expected a package called {expected}, found {name}", member.folder));
        }
        if !member.has_workspace_lints {
            problems.push(format!("{name}: expected `workspace = true` in [lints]"));
        }
        let Some((_, allowed)) = TABLE.iter().find(|(known, _)| known == name) else {
            problems.push(format!("{name}: not in the table of crates"));
            continue;
        };
        for dependency in &member.dependencies {
            let ours = TABLE.iter().any(|(known, _)| known == dependency);
            if ours && !allowed.contains(&dependency.as_str()) {
                problems.push(format!("{name} may not depend on {dependency}"));
            }
            let kept = KEPT.iter().filter(|(library, _)| dependency.starts_with(library));
            for (library, by) in kept.filter(|(_, by)| !by.contains(&name.as_str())) {
                problems
                    .push(format!("{name} may not name {dependency}: {library} is for {}", by.join(", ")));
            }
        }
    }
    problems
}

#[test]
fn every_crate_depends_only_on_what_the_table_allows() {
    let members = members();
    assert!(members.len() >= 8, "found only {} members", members.len());
    assert_none(&problems(&members));
}

#[test]
fn what_the_table_forbids_is_found() {
    let check = |folder: &str, name: &str, dependencies: &str, expected: &[&str]| {
        let text = format!(
            "[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n[dependencies]\n{dependencies}"
        );
        assert_eq!(problems(&[Member::parse(folder, &text)]), expected, "{text}");
    };
    check("sensor", "sensor", "wire.workspace = true\ntokio.workspace = true", &[]);
    check("sensor", "sensor", "directory.workspace = true", &["sensor may not depend on directory"]);
    check("wire", "wire", "[target.'cfg(unix)'.dependencies]\nrpc = \"1\"", &["wire may not depend on rpc"]);
    check(
        "sensor",
        "sensor",
        "net = { package = \"libp2p-tcp\", version = \"1\" }",
        &["sensor may not name libp2p-tcp: libp2p is for overlay"],
    );
    check("daemon", "daemon", "axum = \"1\"", &["daemon may not name axum: axum is for rpc"]);
    check("common", "common", "", &["common: not in the table of crates"]);
    check(
        "wire",
        "cable",
        "",
        &["wire: expected a package called wire, found cable", "cable: not in the table of crates"],
    );
    let bare = Member::parse("wire", "[package]\nname = \"wire\"");
    assert_eq!(problems(&[bare]), ["wire: expected `workspace = true` in [lints]"]);
}

#[test]
fn the_table_has_no_circle() {
    // Each crate uses only crates above it in the table, so there is no cycle.
    for (at, (name, allowed)) in TABLE.iter().enumerate() {
        for used in *allowed {
            assert!(TABLE[..at].iter().any(|(known, _)| known == used), "{name} uses {used}");
        }
    }
}
