//! Archive of a sensor: calls other daemons of the domain as any query is called, and runs with the daemon.
//!
//! Not here: what is copied (`sensor::archive`), where a query goes (`forward`).

use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::dispatch::method::Answer;
use sensor::archive::Peers;
use std::sync::Arc;
use std::time::Duration;
use wire::id::HostName;

/// Daemons of the domain, by the dispatcher of this one.
pub(crate) struct OwnDomain(pub(crate) Arc<Dispatcher>);

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
