//! Events of the journal in their form on the way, and back in the form that joining takes.
//!
//! Pure.

use crate::journal::frame;
use log_filters::found::{self, Found};
use wire::report::{Authority, Keys, Naming, Record};

/// The form on the way of a journal's record.
#[must_use]
pub fn to_wire(record: frame::Record) -> Record {
    let frame::Record { found: Found { offset, number, content, keys }, call } = record;
    Record { offset, number, call, content, keys: keys.map(keys_to_wire) }
}

/// The form that joining takes.
#[must_use]
pub fn to_found(record: &Record) -> Found {
    Found {
        offset: record.offset,
        number: record.number,
        content: record.content.clone(),
        keys: record.keys.as_ref().map(keys_to_found),
    }
}

fn keys_to_wire(keys: found::Keys) -> Keys {
    let found::Keys { scope, names, parent, naming, authority } = keys;
    Keys {
        scope,
        names,
        parent,
        naming: match naming {
            found::Naming::Unique => Naming::Unique,
            found::Naming::Shared => Naming::Shared,
            found::Naming::Part => Naming::Part,
        },
        authority: match authority {
            found::Authority::Message => Authority::Message,
            found::Authority::Scheduler => Authority::Scheduler,
            found::Authority::Accounting => Authority::Accounting,
        },
    }
}

fn keys_to_found(keys: &Keys) -> found::Keys {
    found::Keys {
        scope: keys.scope.clone(),
        names: keys.names.clone(),
        parent: keys.parent.clone(),
        naming: match keys.naming {
            Naming::Unique => found::Naming::Unique,
            Naming::Shared => found::Naming::Shared,
            Naming::Part => found::Naming::Part,
        },
        authority: match keys.authority {
            Authority::Message => found::Authority::Message,
            Authority::Scheduler => found::Authority::Scheduler,
            Authority::Accounting => found::Authority::Accounting,
        },
    }
}
