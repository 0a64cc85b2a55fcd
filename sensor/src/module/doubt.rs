//! Debounce of errors in module files: a check may read a file while an editor or installer is writing it.
//!
//! Pure. Rules: a transient error is final when two checks in a row find the same one, or when a check on
//! command finds it; a file that keeps changing is waited for; an error of trust is final at once.
//! Not here: the checks (`desk`), the errors (`folder`).

use super::folder::Wrong;

/// What triggered a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The timer, or the end of a task.
    Usual,
    /// A command: the operator says that the files are complete.
    Ordered,
}

/// The transient error that the last check found, if it is not final yet.
#[derive(Debug, Default)]
pub(super) struct Doubt(Option<Wrong>);

impl Doubt {
    /// Takes in the error of a check; returns whether it is final.
    pub(super) fn is_settled(&mut self, wrong: &Wrong, look: Look) -> bool {
        let is_settled = !wrong.is_passing || look == Look::Ordered || self.0.as_ref() == Some(wrong);
        self.0 = (!is_settled).then(|| wrong.clone());
        is_settled
    }

    /// Clears the error after a check that found none.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// The error that is not final yet.
    pub(super) fn why(&self) -> Option<&str> {
        self.0.as_ref().map(|wrong| wrong.why.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_believed_the_second_time() {
        let wrong = |why: &str| Wrong { why: why.to_owned(), of: None, is_passing: true };
        let (half, less) = (wrong("half of it"), wrong("less of it"));
        let mut doubt = Doubt::default();
        assert!(!doubt.is_settled(&half, Look::Usual) && doubt.why() == Some("half of it"));
        assert!(!doubt.is_settled(&less, Look::Usual), "it changes still");
        assert!(doubt.is_settled(&less, Look::Usual) && doubt.why().is_none());
        assert!(!doubt.is_settled(&less, Look::Usual), "from the beginning");
        doubt.clear();
        assert!(!doubt.is_settled(&less, Look::Usual), "it was good in between");
        assert!(doubt.is_settled(&half, Look::Ordered));
        let others = Wrong { is_passing: false, ..half };
        assert!(doubt.is_settled(&others, Look::Usual), "whom nobody trusts is not waited for");
    }
}
