//! Archive of a sensor: calls other daemons of the domain as any query is called, and runs with the daemon.
//!
//! Not here: what is copied (`sensor::archive`), where a query goes (`forward`).

use daemon::shutdown::Tasks;
use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::dispatch::method::Answer;
use sensor::archive::{Archive, Peers};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::id::HostName;

/// Run the archive of a sensor, which may have joined no domain.
pub(crate) fn spawn(
    tasks: &mut Tasks,
    archive: Archive,
    (dispatcher, has_joined): (&Arc<Dispatcher>, bool),
    shutdown: &CancellationToken,
) {
    if !has_joined {
        archive.note_alone();
    }
    let peers = Arc::new(OwnDomain(Arc::clone(dispatcher)));
    tasks.spawn_sure("archive", archive.run(peers, shutdown.clone()));
}

/// Daemons of the domain, by the dispatcher of this one.
struct OwnDomain(Arc<Dispatcher>);

impl Peers for OwnDomain {
    fn call(
        &self,
        host: Option<&HostName>,
        method: &'static str,
        mut params: Vec<(Name, Value)>,
        time: Duration,
    ) -> Answer {
        params.extend(host.map(|host| (Name::Borrowed("host"), Value::from(host.as_str()))));
        let dispatcher = Arc::clone(&self.0);
        Box::pin(async move { dispatcher.call_for(&Caller::trusted(time), method, params).await })
    }
}
