//! How many files and connections this process may have open: as many as it is allowed, not as few as it was given.
//!
//! Rule: what was given is raised to what is allowed (getrlimit(2)), once, at the start; programs that wait by select(2)
//! need less, and no daemon does. Not here: how many of them each part takes.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raise the limit as far as it may be; how many there may be then. `u64::MAX` where there is no limit.
pub fn raise() -> u64 {
    let given = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: given.maximum, maximum: given.maximum };
    if given.current != given.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, "the limit of open files stays as it was given");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_is_taken() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise(), before.maximum.unwrap_or(u64::MAX));
        assert_eq!(getrlimit(Resource::Nofile).maximum, before.maximum);
    }
}
