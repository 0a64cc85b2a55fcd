//! Several hosts or domains asked at the same time: one that is away takes until the timeout.
//!
//! Not here: what is asked (the commands).

use crate::client::Client;
use crate::client::target::Target;

/// How many are asked at the same time.
const AT_ONCE: usize = 8;

/// Asks for each name, several at a time; returns the answers in the order of the names.
pub(crate) fn ask_each<T: Send>(
    target: &Target,
    names: &[String],
    ask: impl Fn(&mut Client, &str) -> T + Sync,
) -> Vec<(String, T)> {
    let of_thread = names.len().div_ceil(AT_ONCE).max(1);
    std::thread::scope(|scope| {
        let ask = &ask;
        let some = |names: &[String]| {
            let mut client = Client::new(target);
            names.iter().map(|name| (name.clone(), ask(&mut client, name))).collect::<Vec<_>>()
        };
        let threads: Vec<_> = names.chunks(of_thread).map(|names| scope.spawn(move || some(names))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}
