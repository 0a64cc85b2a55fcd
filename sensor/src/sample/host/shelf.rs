//! Metric cache: metrics of objects that come and go (CPUs, disks, interfaces, mounts), built once for each.
//!
//! Pure. The kernel lists objects in a stable order, so each is first looked up at its last position; a sweep
//! without change compares names and allocates nothing.
//! Bound: at most [`THINGS_MAX`] objects of one kind; those listed after them are left out.

/// Limit on the objects of one kind: more disks, interfaces or mounts are not monitored individually. Each
/// costs about ten metrics.
pub const THINGS_MAX: usize = 4096;

/// Cached data of each object, in the order in which the kernel lists them.
#[derive(Debug)]
pub struct Shelf<T> {
    things: Vec<(Box<[u8]>, T)>,
    at: usize,
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { things: Vec::new(), at: 0 }
    }
}

impl<T> Shelf<T> {
    /// Starts a listing.
    pub fn begin(&mut self) {
        self.at = 0;
    }

    /// Returns the cached data of the next object of the listing; builds it if the object is new. `None` if
    /// there are too many objects.
    pub fn next(&mut self, name: &[u8], build: impl FnOnce() -> T) -> Option<&mut T> {
        let later = self.things[self.at..].iter().position(|(known, _)| **known == *name);
        match later {
            Some(0) => {}
            Some(further) => self.things[self.at..=self.at + further].rotate_right(1),
            None if self.at == THINGS_MAX => return None,
            None => self.things.insert(self.at, (name.into(), build())),
        }
        self.at += 1;
        Some(&mut self.things[self.at - 1].1)
    }

    /// Ends the listing: objects that were not listed are forgotten.
    pub fn end(&mut self) {
        self.things.truncate(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists these names and returns those that had to be built.
    fn list(shelf: &mut Shelf<String>, names: &[&str]) -> Vec<String> {
        let mut built = Vec::new();
        shelf.begin();
        for name in names {
            let kept = shelf.next(name.as_bytes(), || {
                built.push((*name).to_owned());
                (*name).to_owned()
            });
            assert_eq!(kept.map(|kept| kept.clone()).as_deref(), Some(*name));
        }
        shelf.end();
        built
    }

    #[test]
    fn only_what_is_new_is_built() {
        let mut shelf = Shelf::default();
        assert_eq!(list(&mut shelf, &["a", "b", "c"]), ["a", "b", "c"]);
        assert!(list(&mut shelf, &["a", "b", "c"]).is_empty());
        assert_eq!(list(&mut shelf, &["a", "x", "b", "c"]), ["x"]);
        assert!(list(&mut shelf, &["c", "a", "b"]).is_empty(), "another order builds nothing");
        assert_eq!(list(&mut shelf, &["x"]), ["x"], "what went is forgotten");
        assert_eq!(list(&mut shelf, &["a"]), ["a"]);
    }

    #[test]
    fn too_many_are_left_out() {
        let mut shelf = Shelf::default();
        for n in 0..THINGS_MAX {
            assert!(shelf.next(n.to_string().as_bytes(), || ()).is_some());
        }
        assert!(shelf.next(b"one more", || ()).is_none());
    }
}
