//! Owners of files: which path reads which file, so that no file is read through two paths.
//!
//! A file may have several followed names: a hard link, a name it got by rotation, the old and the new one
//! while it is being renamed. Rule: the path under which it was found first continues to read it as long as
//! any of its names is followed; the other paths defer to that.
//! Not here: copies, which are other files ([`super::search`]); names that are never followed
//! ([`super::path_set`]).

use super::follow::same_file;
use super::track::Track;
use crate::journal::frame::Identity;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files that are read, by device and inode; an inode may be used again, so there may be several.
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

    /// This track owns the files it reads.
    pub(super) fn add(&mut self, track: &Track) {
        for identity in track.identities() {
            let files = self.0.entry((identity.device, identity.inode)).or_default();
            files.push((*identity, track.path().to_owned()));
        }
    }

    /// Another path through which this file is read.
    pub(super) fn other(&self, identity: &Identity, path: &Path) -> Option<&Path> {
        let files = self.0.get(&(identity.device, identity.inode))?;
        let mut others = files.iter().filter(|(owned, owner)| same_file(owned, identity) && owner != path);
        others.next().map(|(_, owner)| owner.as_path())
    }
}
