//! Lists the shipped filters, so that a filter is added by putting its file into `filters/`.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("filters");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("filters/ is part of the crate")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut code =
        String::from("/// Name and text of every shipped filter.\nconst SHIPPED: &[(&str, &str)] = &[\n");
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.file_name().expect("a file").to_string_lossy();
        writeln!(code, "    ({name:?}, include_str!({:?})),", file.display().to_string())
            .expect("to a string");
    }
    code.push_str("];\n");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("shipped.rs"), code).expect("OUT_DIR is writable");
}
