//! Purity: a file that calls itself pure names no runtime, file, socket, process or clock.
//!
//! Rule: `wire` and `log-filters` are pure as a whole; elsewhere a file is pure if its head comment contains
//! `Pure`. Addresses of `std::net` are values and allowed. Not here: which crates it may depend on
//! (`dependencies`).

use super::{Text, assert_none, code, texts};

/// Names that pure code may not use.
const FORBIDDEN: &[&str] = &[
    "tokio",
    "std::fs",
    "std::process",
    "std::thread",
    "std::env",
    "std::os::unix::net",
    "std::os::unix::fs",
    "fs::File",
    "File::open",
    "File::create",
    "Command::new",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "rustix",
    "libc",
    "getrandom",
];

/// Types of `std::net` that are values and not sockets.
const ADDRESSES: &[&str] =
    &["IpAddr", "Ipv4Addr", "Ipv6Addr", "SocketAddr", "SocketAddrV4", "SocketAddrV6", "AddrParseError"];

/// Crates that are pure as a whole.
const PURE_CRATES: &[&str] = &["wire/src/", "log-filters/src/"];

fn is_pure(file: &Text) -> bool {
    let doc = file.text.lines().take_while(|line| line.starts_with("//!"));
    let says =
        doc.flat_map(|line| line.split(|char: char| !char.is_alphanumeric())).any(|word| word == "Pure");
    says || PURE_CRATES.iter().any(|folder| file.path.starts_with(folder))
}

fn problems(files: &[Text]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| is_pure(file)) {
        for (at, line) in code::code(code::without_tests(&file.text)).lines().enumerate() {
            let named = FORBIDDEN.iter().find(|name| code::names(line, name));
            if let Some(named) = named.copied().or_else(|| socket(line)) {
                problems.push(format!("{}:{}: a pure file names {named}", file.path, at + 1));
            }
        }
    }
    problems
}

/// `std::net`, if more than addresses is imported from it.
fn socket(line: &str) -> Option<&'static str> {
    let (_, taken) = line.split_once("std::net")?;
    let words = taken.trim_start_matches("::").split(';').next().unwrap_or("");
    let words = words.trim_start().trim_start_matches('{').split('}').next().unwrap_or("");
    let fits = |word: &str| ADDRESSES.contains(&word.trim().split("::").next().unwrap_or(""));
    let one = |word: &str| {
        fits(word.trim().split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or(""))
    };
    let all = if taken.starts_with("::{") { words.split(',').all(fits) } else { one(words) };
    (!all).then_some("std::net")
}

#[test]
fn pure_files_name_no_runtime_file_socket_or_clock() {
    let files: Vec<_> = texts(".rs").into_iter().filter(|file| file.path.contains("/src/")).collect();
    let pure = files.iter().filter(|file| is_pure(file)).count();
    assert!(pure >= 20, "found only {pure} pure files of {}", files.len());
    assert_none(&problems(&files));
}

#[test]
fn what_is_not_pure_is_found() {
    let check = |path: &str, text: &str, expected: usize| {
        assert_eq!(problems(&[Text::new(path, text)]).len(), expected, "{path}: {text}");
    };
    let body = "use std::fs::File;\nfn a() { std::time::Instant::now(); }\n";
    check("sensor/src/a.rs", &format!("//! Opens files.\n{body}"), 0);
    check("sensor/src/a.rs", &format!("//! A core.\n//!\n//! Pure: no files.\n{body}"), 2);
    check("wire/src/a.rs", &format!("//! A type.\n{body}"), 2);
    check("wire/src/a.rs", "//! A type.\n// std::fs\nconst A: &str = \"tokio\";\n", 0);
    check("wire/src/a.rs", "//! A type.\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n", 0);
    check("wire/src/a.rs", "use std::net::{IpAddr, SocketAddr};\n", 0);
    check("wire/src/a.rs", "fn a(b: std::net::IpAddr) {}\n", 0);
    check("wire/src/a.rs", "use std::net::{IpAddr, TcpStream};\n", 1);
    check("wire/src/a.rs", "use std::net::TcpStream;\n", 1);
    check("wire/src/a.rs", "use std::net;\n", 1);
}
