//! Flipped bits: every flipped bit in a signed value is refused; no bytes make the checks panic.

use crate::admission::leaves::leave;
use crate::admission::records::record;
use crate::admission::rig::{NOW, Parts, at, domain, key};
use overlay::identity::admission::Gate;
use overlay::identity::certificate::verify;
use overlay::identity::record::{open_leave, open_record, state, take_leave};
use overlay::identity::refused::Refused;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::token;
use overlay::identity::trust::Trust;
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeSet;
use wire::credential::{Chain, Denial, Statement};
use wire::replication::Farewell;

/// Checks that `accept` refuses `value` with any bit of its encoding flipped, and accepts it unchanged.
pub(crate) fn check_bits<T: Serialize + DeserializeOwned, V>(
    value: &T,
    accept: impl Fn(&T) -> Result<V, Refused>,
) {
    let whole = postcard::to_stdvec(value).expect("encodes");
    accept(&postcard::from_bytes(&whole).expect("decodes")).expect("the whole passes");
    for bit in 0..whole.len() * 8 {
        let mut bad = whole.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        // Trailing bytes are refused by the frame.
        if let Ok((value, [])) = postcard::take_from_bytes::<T>(&bad) {
            assert!(accept(&value).is_err(), "bit {bit} of {}", whole.len() * 8);
        }
    }
}

fn seen(chain: &Chain, parts: &Parts) -> Result<(), Refused> {
    verify(chain, parts.peer(), NOW, &RevocationLists::default(), &parts.trust()).map(|_| ())
}

#[test]
fn any_flipped_bit_of_a_chain_is_refused() {
    let parts = Parts::good();
    check_bits(&parts.chain(), |chain| seen(chain, &parts));
    let by_root = parts.by_root();
    check_bits(&by_root.chain(), |chain| seen(chain, &by_root));
}

#[test]
fn any_flipped_bit_of_a_list_of_denied_is_refused() {
    let parts = Parts::good();
    let take = |denial: &Denial| RevocationLists::default().take(denial, &parts.trust());
    check_bits(&parts.denial_by_root(3, &[key(9).peer()], NOW), take);
    check_bits(&parts.denial_by_issuer(3, &[key(9).peer()], NOW), take);
}

#[test]
fn any_flipped_bit_of_a_statement_is_refused() {
    let parts = Parts::good();
    let trust = Trust::of_directory([(domain("alpha"), parts.root.peer())].into());
    let statement = state(&record(&parts), &parts.member, &parts.chain()).expect("fits");
    check_bits(&statement, |statement: &Statement| {
        open_record(statement, &trust, &RevocationLists::default(), NOW)
    });
    // Nor once the chain is cached as valid.
    let gate = std::cell::RefCell::new(Gate::new(trust, RevocationLists::default(), BTreeSet::new()));
    let open =
        |statement: &Statement| gate.borrow_mut().handle_statement(parts.peer(), statement, NOW, at(1));
    open(&statement).expect("good");
    check_bits(&statement, open);
}

#[test]
fn any_flipped_bit_of_a_leave_is_refused() {
    let parts = Parts::good();
    let trust = Trust::of_directory([(domain("alpha"), parts.root.peer())].into());
    let farewell = take_leave(&leave(&parts), &parts.member, &parts.chain()).expect("fits");
    check_bits(&farewell, |farewell: &Farewell| {
        open_leave(farewell, &trust, &RevocationLists::default(), NOW)
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn several_changed_bytes_of_a_chain_are_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..6),
    ) {
        let parts = Parts::good();
        let whole = postcard::to_stdvec(&parts.chain()).expect("encodes");
        let mut bad = whole.clone();
        for (at, change) in changes {
            bad[at.index(whole.len())] ^= change;
        }
        prop_assume!(bad != whole);
        if let Ok((chain, [])) = postcard::take_from_bytes::<Chain>(&bad) {
            prop_assert!(seen(&chain, &parts).is_err());
        }
    }

    #[test]
    fn any_bytes_are_refused_in_words(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let parts = Parts::good();
        if let Ok(chain) = postcard::from_bytes::<Chain>(&bytes) {
            prop_assert!(seen(&chain, &parts).is_err());
        }
        if let Ok(denial) = postcard::from_bytes::<Denial>(&bytes) {
            prop_assert!(RevocationLists::default().take(&denial, &parts.trust()).is_err());
        }
    }

    #[test]
    fn any_text_is_no_token(text in "(visperf1-)?\\PC{0,200}") {
        prop_assert!(token::parse(&text).is_err());
    }
}
