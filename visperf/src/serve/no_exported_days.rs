//! Exported days, in a program that is built without Parquet: configured ones are named in the daemon's health.
//!
//! Not here: reading them (`exported_days`).

use super::info::Sources;
use sensor::run::Sensor;
use tokio_util::sync::CancellationToken;

/// There are none.
pub(crate) struct Days;

/// Says in the daemon's health that exported days are configured and cannot be read.
pub(crate) fn open(sensor: &Sensor, sources: &mut Sources) -> Option<Days> {
    if sensor.config().exported.is_some() {
        let text = "exported days ([sensor.history] exported) cannot be read: this program is built without the feature export";
        sources.health.push(Box::new(|| vec![text.to_owned()]));
    }
    None
}

impl Days {
    /// Ends at once.
    pub(crate) async fn run(self, _shutdown: CancellationToken) {}
}
