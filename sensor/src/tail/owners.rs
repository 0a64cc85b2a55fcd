//! Which file is read through which path, so that no file is read through two.
//!
//! A file may have several names that the globs mean: a hard link, a name it was given by rotation, the old
//! and the new one while it is being renamed. Rule: the path under which it was found first goes on reading
//! it, as long as it has any name that is meant; the others stand aside.
//! Not here: copies, which are other files ([`super::search`]); names that are never meant
//! ([`super::path_set`]).

use super::follow::same_file;
use super::track::Track;
use crate::journal::frame::Identity;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files that are read, by device and inode; an inode may have had several lives.
#[derive(Debug, Default)]
pub(super) struct Owners(BTreeMap<(u64, u64), Vec<(Identity, PathBuf)>>);

impl Owners {
    /// The owners as of now.
    pub(super) fn of(tracks: &BTreeMap<PathBuf, Track>) -> Owners {
        let mut owners = Owners::default();
        for track in tracks.values() {
            owners.add(track);
        }
        owners
    }

    /// What this track reads is its own.
    pub(super) fn add(&mut self, track: &Track) {
        for source in &track.sources {
            let identity = source.identity;
            let lives = self.0.entry((identity.device, identity.inode)).or_default();
            lives.push((identity, track.path.clone()));
        }
    }

    /// Another path through which this file is read.
    pub(super) fn other(&self, identity: &Identity, path: &Path) -> Option<&Path> {
        let lives = self.0.get(&(identity.device, identity.inode))?;
        let mut others = lives.iter().filter(|(owned, owner)| same_file(owned, identity) && owner != path);
        others.next().map(|(_, owner)| owner.as_path())
    }
}
