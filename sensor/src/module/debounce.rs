//! Debounce of errors in module files: a check may read a file while an editor or installer is writing it.
//!
//! Pure. Rules: a transient error is final when two checks in a row find the same one, or when a check on
//! command finds it; a file that keeps changing is waited for; an error of trust is final at once.
//! Not here: the checks (`worker`), the errors (`folder`).

use super::folder::FileError;

/// What triggered a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckTrigger {
    /// The timer, or the end of a task.
    Timer,
    /// A command: the operator says that the files are complete.
    Command,
}

/// The transient error that the last check found, if it is not final yet.
#[derive(Debug, Default)]
pub(super) struct Debounce(Option<FileError>);

impl Debounce {
    /// Takes in the error of a check; returns whether it is final.
    pub(super) fn is_settled(&mut self, wrong: &FileError, trigger: CheckTrigger) -> bool {
        let is_settled =
            !wrong.is_passing || trigger == CheckTrigger::Command || self.0.as_ref() == Some(wrong);
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
        let wrong = |why: &str| FileError { why: why.to_owned(), of: None, is_passing: true };
        let (half, less) = (wrong("half of it"), wrong("less of it"));
        let mut debounce = Debounce::default();
        assert!(!debounce.is_settled(&half, CheckTrigger::Timer) && debounce.why() == Some("half of it"));
        assert!(!debounce.is_settled(&less, CheckTrigger::Timer), "it changes still");
        assert!(debounce.is_settled(&less, CheckTrigger::Timer) && debounce.why().is_none());
        assert!(!debounce.is_settled(&less, CheckTrigger::Timer), "from the beginning");
        debounce.clear();
        assert!(!debounce.is_settled(&less, CheckTrigger::Timer), "it was good in between");
        assert!(debounce.is_settled(&half, CheckTrigger::Command));
        let others = FileError { is_passing: false, ..half };
        assert!(debounce.is_settled(&others, CheckTrigger::Timer), "an untrusted file is not waited for");
    }
}
