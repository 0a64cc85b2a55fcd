//! The moment when the issuer's host clock was last right, in `STATE/domain/clock`.
//!
//! Not here: what follows for the clock now (`issuer_clock`).

use super::{DomainFiles, Error};
use crate::identity::issuer_clock::{self, Anchor, Clocks};
use crate::identity::peer_clocks::Members;
use crate::identity::refused::Refused;
use crate::identity::safe_file;
use wire::time::{Moment, Time};
use wire::version;

impl DomainFiles {
    /// Check that this host's clock may be used for signing, as far as `members` and this host know. To be
    /// called before anything is signed.
    ///
    /// # Errors
    /// [`Refused::IssuerClock`] if it may not, or if the files cannot be used.
    pub fn check_clock(&self, now: Time, at: Moment, members: Members) -> Result<(), Error> {
        let open = self.load(self.lock()?)?;
        let (boot, anchor) = (crate::clock::boot(), self.anchor()?);
        let clocks = Clocks { now, at, boot: boot.as_deref() };
        let next = issuer_clock::check(clocks, anchor.as_ref(), open.store.newest_signed(), members)?;
        if let Some(next) = next {
            safe_file::replace_framed(&self.path("clock"), version::CLOCK, &next)?;
        }
        Ok(())
    }

    /// Store that the operator confirmed this host's clock.
    ///
    /// # Errors
    /// If no domain is here, or the files cannot be used.
    pub fn confirm_clock(&self, now: Time, at: Moment) -> Result<(), Error> {
        let _open = self.open(now)?;
        let boot = crate::clock::boot();
        let anchor = Anchor::confirmed(Clocks { now, at, boot: boot.as_deref() }).ok_or(Error::NoBoot)?;
        Ok(safe_file::replace_framed(&self.path("clock"), version::CLOCK, &anchor)?)
    }

    fn anchor(&self) -> Result<Option<Anchor>, Error> {
        Ok(safe_file::read_framed(&self.path("clock"), version::CLOCK)?)
    }

    /// The time that the clock should show, if this host alone finds that it shows another. This is enough
    /// for the delegation, which is renewed half a year before it expires.
    pub(super) fn plausible_clock(&self, now: Time) -> Result<Option<Time>, Error> {
        let (boot, anchor) = (crate::clock::boot(), self.anchor()?);
        let clocks = Clocks { now, at: crate::clock::now(), boot: boot.as_deref() };
        match issuer_clock::check(clocks, anchor.as_ref(), None, Members::Unknown) {
            Err(Refused::IssuerClock { expected, .. }) => Ok(Some(expected)),
            Ok(_) | Err(_) => Ok(None),
        }
    }
}
