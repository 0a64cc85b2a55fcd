//! Owner of a port in use: the process that listens on it, as far as `/proc` shows it to this user.
//!
//! Shell: it reads `/proc`. Rule: a message is only extended; if no owner is found, it stays unchanged.
//! Not here: listening, and what fails there (`rpc::http::server`, `overlay::net`).

use crate::harmless::clean;
use std::fs;
use std::path::Path;

/// State of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// Extend a message that reports an address in use by the process that has the port.
pub(crate) fn explained(message: &str) -> String {
    let port = message.contains("in use").then(|| port_in(message)).flatten();
    match port.and_then(owner) {
        Some((pid, name)) => {
            format!("{message}\nport {} is used by {} (process {pid})", port.unwrap_or(0), clean(&name))
        }
        None => message.to_owned(),
    }
}

/// The port of the address in `cannot listen on ADDRESS: …`; multiaddresses are also accepted.
fn port_in(message: &str) -> Option<u16> {
    let (_, after) = message.split_once("cannot listen on ")?;
    let word = after.split_whitespace().next()?.trim_end_matches([':', ';', ',']);
    let last = word.rsplit([':', '/']).next()?;
    last.parse().ok()
}

/// Process id and name of a process that listens on this port.
fn owner(port: u16) -> Option<(u32, String)> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let sockets: Vec<String> = tables.iter().flat_map(|table| inodes(table, port)).collect();
    if sockets.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find_map(|pid| {
        let folder = Path::new("/proc").join(pid.to_string());
        let mut descriptors = fs::read_dir(folder.join("fd")).ok()?.flatten();
        let has_it = descriptors.any(|descriptor| {
            let target = fs::read_link(descriptor.path()).unwrap_or_default();
            sockets.iter().any(|socket| target.as_os_str() == socket.as_str())
        });
        let name = fs::read_to_string(folder.join("comm")).ok().filter(|_| has_it)?;
        Some((pid, name.trim_end().to_owned()))
    })
}

/// Listening sockets on this port, in the form of the links in `/proc/PID/fd`.
fn inodes(table: &str, port: u16) -> Vec<String> {
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is_it = fields.get(3) == Some(&LISTENING) && u16::from_str_radix(local, 16) == Ok(port);
        is_it.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]"))).flatten()
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_listens_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let message = format!(
            "error: cannot listen on {address}: Address already in use (os error 98); choose another"
        );
        let text = explained(&message);
        let expected = format!("\nport {} is used by ", address.port());
        assert!(text.starts_with(&message) && text.contains(&expected), "{text}");
        assert!(text.ends_with(&format!(" (process {})", std::process::id())), "{text}");
        drop(listener);
        assert_eq!(explained(&message), message, "it is free again");
        assert_eq!(explained("error: the key is in use"), "error: the key is in use");
    }

    #[test]
    fn ports_are_read_of_messages_and_of_the_table() {
        let check =
            |message: &str, expected: Option<u16>| assert_eq!(port_in(message), expected, "{message}");
        check("cannot listen on 127.0.0.1:7317: Address already in use", Some(7317));
        check("cannot listen on [::1]:7317: Address already in use", Some(7317));
        check("cannot listen on /ip4/0.0.0.0/tcp/7318: in use", Some(7318));
        check("cannot listen on it", None);
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1C95 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 55 1 0\n   \
                     1: 0100007F:1C95 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 66 1 0\n";
        assert_eq!(inodes(table, 7317), ["socket:[55]"]);
        assert_eq!(inodes(table, 7318), [""; 0]);
    }
}
