//! Kernel and host names of `uname(2)`, as the labels of a metric whose value is 1.
//!
//! Rule: read at every sweep, since a host may be renamed; the metric is built again only after a change.

use crate::sample::collector::{Collector, Error, Now};
use crate::sample::table::{Rows, metric};
use rustix::system::Uname as Names;
use std::ffi::CStr;
use std::sync::Arc;
use wire::sample::{Metric, Semantics};

/// Collector of `uname(2)`. Only the host and domain names can change while the host runs, so only they are
/// compared.
#[derive(Debug, Default)]
pub struct Uname {
    last: Option<(Vec<u8>, Arc<Metric>)>,
}

impl Collector for Uname {
    fn name(&self) -> &'static str {
        "uname"
    }

    fn collect(&mut self, _now: Now, out: &mut Rows) -> Result<(), Error> {
        let names = rustix::system::uname();
        let changing = [names.nodename(), names.domainname()];
        let same = |last: &[u8]| last.split(|b| *b == 0).eq(changing.iter().map(|name| name.to_bytes()));
        if !self.last.as_ref().is_some_and(|(last, _)| same(last)) {
            let last = changing.map(CStr::to_bytes).join(&0);
            self.last = Some((last, identity(&names)));
        }
        let (_, metric) = self.last.as_ref().expect("just set");
        out.push_whole(metric, 1);
        Ok(())
    }
}

fn identity(names: &Names) -> Arc<Metric> {
    let labels = [
        ("sysname", names.sysname()),
        ("release", names.release()),
        ("version", names.version()),
        ("machine", names.machine()),
        ("nodename", names.nodename()),
        ("domainname", names.domainname()),
    ]
    .map(|(label, name)| (label, name.to_string_lossy()));
    let labels: Vec<(&str, &str)> = labels.iter().map(|(label, name)| (*label, &**name)).collect();
    metric("node_uname_info", "", Semantics::Gauge, &labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metric_is_built_once() {
        let (mut uname, mut rows) = (Uname::default(), Rows::default());
        let mut sweep = || {
            uname.collect(Now::default(), &mut rows).expect("always there");
            rows.finish(wire::time::Time::default())
        };
        let (first, second) = (sweep(), sweep());
        assert!(Arc::ptr_eq(&first.metrics()[0], &second.metrics()[0]));
        let label = |name: &str| first.metrics()[0].labels.iter().find(|(known, _)| known == name).cloned();
        assert_eq!(label("sysname").expect("known").1, "Linux");
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux");
        assert_eq!(label("nodename").expect("known").1, host.trim());
    }
}
