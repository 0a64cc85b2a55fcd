//! Whether what is wrong with a file is believed: a look may meet it while somebody writes it.
//!
//! Pure. Rules: what may pass is believed when two looks find the very same, or one that somebody ordered; a file that goes on
//! changing is waited for; what others may have written is believed at once.
//! Not here: the looks (`desk`), what is wrong (`folder`).

use super::folder::Wrong;

/// Why it is looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// As it is done again and again.
    Usual,
    /// Somebody says that the files are as they are to be.
    Ordered,
}

/// What the looks before found wrong, if that was not believed yet.
#[derive(Debug, Default)]
pub(super) struct Doubt(Option<Wrong>);

impl Doubt {
    /// A look finds this wrong; whether it is believed.
    pub(super) fn is_settled(&mut self, wrong: &Wrong, look: Look) -> bool {
        let is_settled = !wrong.is_passing || look == Look::Ordered || self.0.as_ref() == Some(wrong);
        self.0 = (!is_settled).then(|| wrong.clone());
        is_settled
    }

    /// A look finds nothing wrong.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// What is doubted.
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
