//! Transport of a sensor to itself: where it represents its domain, its own report takes the path of any
//! other report, without a network.

use super::link::Route;
use crate::representative::admit::NO_PEER;
use crate::representative::service::Handle;
use crate::representative::session::Session;
use tokio::io::DuplexStream;
use wire::credential::Serial;
use wire::id::{HostName, PeerKey};

/// Capacity between the two ends, in each direction: as on a fast line.
const BETWEEN_LEN_BYTES: usize = 64 << 10;

/// Opens a stream from this sensor to its own representative service, which serves it under this key and host
/// name.
#[must_use]
pub fn own_stream(service: &Handle, peer: PeerKey, host: HostName) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(BETWEEN_LEN_BYTES);
    // The highest serial number: no other certificate can take the host from the sensor that represents the
    // domain.
    let serial = Serial(u64::MAX);
    service.receive(Session { peer, serial, host, stream: Box::new(theirs) });
    ours
}

/// Transport of a sensor that is in no domain with others: it always leads to itself.
pub struct OwnRoute {
    pub service: Handle,
    pub host: HostName,
}

impl Route for OwnRoute {
    type Stream = DuplexStream;

    async fn open(&mut self) -> DuplexStream {
        self.service.wait_open().await;
        own_stream(&self.service, NO_PEER, self.host.clone())
    }

    async fn moved(&mut self) {
        self.service.closed().await;
    }
}
