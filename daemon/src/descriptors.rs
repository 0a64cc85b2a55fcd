//! Limit of open files and connections of this process, raised at the start as far as allowed.
//!
//! Rule: the soft limit is raised to the hard limit (getrlimit(2)), once, at the start; only programs that
//! wait by select(2) need a low limit, and no daemon does. Not here: the share of each part.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raise the limit as far as allowed. Returns the new limit; `u64::MAX` if there is none.
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
