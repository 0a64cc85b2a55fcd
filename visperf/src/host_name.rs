//! Name of this host, as the system reports it: the default where no configuration names one.
//!
//! Not here: the name in a membership (`serve::member`).

/// This host's name, as the system reports it.
pub(crate) fn own() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
