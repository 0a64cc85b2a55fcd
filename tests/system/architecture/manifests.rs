//! Manifests of the workspace: its members and their dependencies.
//!
//! Rule: they are parsed as TOML, never by cargo, so that the check needs no registry and no lock.
//! Not here: which dependencies are allowed (`dependencies`).

use super::Text;
use system_tests::program;
use toml::{Table, Value};

/// A member of the workspace.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) folder: String,
    pub(super) name: String,
    /// Packages that the built program consists of: dependencies of any target, and build dependencies.
    pub(super) dependencies: Vec<String>,
    pub(super) has_workspace_lints: bool,
    /// Program that a plain `cargo run` starts, if the package states one.
    pub(super) default_run: Option<String>,
}

impl Member {
    pub(super) fn parse(folder: &str, manifest: &str) -> Member {
        let manifest: Table = manifest.parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        let mut dependencies = Vec::new();
        let mut tables = vec![&manifest];
        if let Some(targets) = manifest.get("target").and_then(Value::as_table) {
            tables.extend(targets.values().filter_map(Value::as_table));
        }
        for table in tables {
            for section in ["dependencies", "build-dependencies"] {
                let Some(listed) = table.get(section).and_then(Value::as_table) else { continue };
                dependencies.extend(listed.iter().map(|(key, value)| package(key, value)));
            }
        }
        let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        let has_workspace_lints = lints.and_then(Value::as_bool) == Some(true);
        let default_run =
            manifest["package"].get("default-run").and_then(Value::as_str).map(ToOwned::to_owned);
        Member { folder: folder.to_owned(), name, dependencies, has_workspace_lints, default_run }
    }
}

/// Package of a dependency key, which may rename it.
fn package(key: &str, value: &Value) -> String {
    value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned()
}

/// Members listed in the root manifest.
pub(super) fn members() -> Vec<Member> {
    let root = program::workspace();
    let manifest: Table = std::fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    let folders = manifest["workspace"]["members"].as_array().unwrap();
    let member = |folder: &Value| {
        let folder = folder.as_str().unwrap();
        let path = format!("{folder}/Cargo.toml");
        let text = Text::new(&path, std::fs::read_to_string(root.join(&path)).unwrap());
        Member::parse(folder, &text.text)
    };
    folders.iter().map(member).collect()
}

#[test]
fn dependencies_of_every_kind_of_table_are_read() {
    let manifest = r#"
        [package]
        name = "a"
        [lints]
        workspace = true
        [dependencies]
        b.workspace = true
        renamed = { package = "c", version = "1" }
        [build-dependencies]
        d = "1"
        [dev-dependencies]
        ours = "1"
        [target.'cfg(unix)'.dependencies]
        e = "1"
    "#;
    let member = Member::parse("a", manifest);
    assert_eq!(member.dependencies, ["b", "c", "d", "e"]);
    assert!(member.has_workspace_lints);
}

/// Several packages have programs: without this the first command of the README would be ambiguous.
#[test]
fn a_plain_cargo_run_is_visperf() {
    let named: Vec<String> = members().into_iter().filter_map(|member| member.default_run).collect();
    assert_eq!(named, ["visperf"], "default-run of the packages");
}
