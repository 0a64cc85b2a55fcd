//! Metric cache: metrics of objects that come and go (CPUs, disks, interfaces, mounts), built once for each.
//!
//! Pure. The kernel lists objects in a stable order, so each is first looked up at its last position; a sweep
//! without change compares names and allocates nothing.
//! Bound: at most [`ENTRIES_MAX`] objects of one kind; those listed after them are left out.

/// Limit on the objects of one kind: more disks, interfaces or mounts are not monitored individually. Each
/// costs about ten metrics.
pub const ENTRIES_MAX: usize = 4096;

/// Cached data of each object, in the order in which the kernel lists them.
#[derive(Debug)]
pub struct MetricCache<T> {
    entries: Vec<(Box<[u8]>, T)>,
    at: usize,
}

impl<T> Default for MetricCache<T> {
    fn default() -> MetricCache<T> {
        MetricCache { entries: Vec::new(), at: 0 }
    }
}

impl<T> MetricCache<T> {
    /// Starts a listing.
    pub fn begin(&mut self) {
        self.at = 0;
    }

    /// Returns the cached data of the next object of the listing; builds it if the object is new. `None` if
    /// there are too many objects.
    pub fn next(&mut self, name: &[u8], build: impl FnOnce() -> T) -> Option<&mut T> {
        let later = self.entries[self.at..].iter().position(|(known, _)| **known == *name);
        match later {
            Some(0) => {}
            Some(further) => self.entries[self.at..=self.at + further].rotate_right(1),
            None if self.at == ENTRIES_MAX => return None,
            None => self.entries.insert(self.at, (name.into(), build())),
        }
        self.at += 1;
        Some(&mut self.entries[self.at - 1].1)
    }

    /// Ends the listing: objects that were not listed are forgotten.
    pub fn end(&mut self) {
        self.entries.truncate(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists these names and returns those that had to be built.
    fn list(metric_cache: &mut MetricCache<String>, names: &[&str]) -> Vec<String> {
        let mut built = Vec::new();
        metric_cache.begin();
        for name in names {
            let cached = metric_cache.next(name.as_bytes(), || {
                built.push((*name).to_owned());
                (*name).to_owned()
            });
            assert_eq!(cached.map(|cached| cached.clone()).as_deref(), Some(*name));
        }
        metric_cache.end();
        built
    }

    #[test]
    fn only_what_is_new_is_built() {
        let mut metric_cache = MetricCache::default();
        assert_eq!(list(&mut metric_cache, &["a", "b", "c"]), ["a", "b", "c"]);
        assert!(list(&mut metric_cache, &["a", "b", "c"]).is_empty());
        assert_eq!(list(&mut metric_cache, &["a", "x", "b", "c"]), ["x"]);
        assert!(list(&mut metric_cache, &["c", "a", "b"]).is_empty(), "another order builds nothing");
        assert_eq!(list(&mut metric_cache, &["x"]), ["x"], "what went is forgotten");
        assert_eq!(list(&mut metric_cache, &["a"]), ["a"]);
    }

    #[test]
    fn too_many_are_left_out() {
        let mut metric_cache = MetricCache::default();
        for n in 0..ENTRIES_MAX {
            assert!(metric_cache.next(n.to_string().as_bytes(), || ()).is_some());
        }
        assert!(metric_cache.next(b"one more", || ()).is_none());
    }
}
