//! What a command that goes on until Ctrl-C makes of an error: it waits, asks for the same anew, or ends.
//!
//! Pure. Rule: what was reached once is come back to, whatever lies between, however long; it ends only by what no waiting mends: who
//! may not, a method that is not there, parameters that none can mean, an answer that is none of ours. Somebody who was never
//! there is not waited for.
//! Not here: how long is waited, and what is told meanwhile (the commands).

use super::Error;
use rpc::fault;

/// Faults that pass by themselves, also where nothing was answered yet.
const PASSING: [i32; 3] = [fault::TIMEOUT, fault::BUSY, fault::UNAVAILABLE];

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// The same is asked again, after a pause.
    Wait,
    /// Who answers knows nothing of what was begun: it was another, or forgot. It is begun anew.
    Anew,
    /// It ends.
    End,
}

/// What follows from `error`, where somebody answered before or not.
pub(crate) fn course(error: &Error, was_reached: bool) -> Course {
    match error {
        Error::Lost { .. } => Course::Wait,
        Error::Unreachable(_) if was_reached => Course::Wait,
        Error::Unreachable(_) | Error::Answer { .. } | Error::Mistake(_) => Course::End,
        Error::Fault { code, .. } => of_fault(*code, was_reached),
    }
}

/// The same of a fault by its code.
pub(crate) fn of_fault(code: i64, was_reached: bool) -> Course {
    let code = i32::try_from(code).unwrap_or_default();
    if PASSING.contains(&code) {
        Course::Wait
    } else if fault::is_final(code) || !was_reached {
        Course::End
    } else if code == fault::NOT_FOUND {
        Course::Anew
    } else {
        Course::Wait
    }
}

/// What an error says in a line.
pub(crate) fn first_line(error: &Error) -> String {
    let text = match error {
        Error::Fault { message, .. } => message.clone(),
        Error::Unreachable(_) | Error::Mistake(_) | Error::Lost { .. } | Error::Answer { .. } => {
            error.to_string()
        }
    };
    text.lines().next().unwrap_or_default().trim_end_matches("; tried:").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reached_is_waited_for_and_only_what_no_waiting_mends_ends_it() {
        let fault = |code: i32| Error::Fault { code: code.into(), message: "x".to_owned() };
        let lost = Error::Lost { address: "a:1".to_owned(), what: "it broke".to_owned() };
        let unreachable = Error::Unreachable("no daemon could be reached; tried:\n  a:1".to_owned());
        let answer = Error::Answer { address: "a:1".to_owned(), found: "SSH".to_owned() };
        let check = |error: &Error, at_first: Course, later: Course| {
            assert_eq!((course(error, false), course(error, true)), (at_first, later), "{error}");
        };
        check(&lost, Course::Wait, Course::Wait);
        check(&unreachable, Course::End, Course::Wait);
        check(&answer, Course::End, Course::End);
        check(&fault(fault::UNAVAILABLE), Course::Wait, Course::Wait);
        check(&fault(fault::TIMEOUT), Course::Wait, Course::Wait);
        check(&fault(fault::BUSY), Course::Wait, Course::Wait);
        // Another represents the domain by now; or it has none for a moment.
        check(&fault(fault::NOT_FOUND), Course::End, Course::Anew);
        check(&fault(fault::INTERNAL), Course::End, Course::Wait);
        for code in [fault::FORBIDDEN, fault::REFUSED, fault::INVALID_PARAMS, fault::METHOD_NOT_FOUND] {
            check(&fault(code), Course::End, Course::End);
        }
        assert_eq!(first_line(&unreachable), "no daemon could be reached");
    }
}
