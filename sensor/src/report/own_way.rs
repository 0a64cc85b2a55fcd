//! The way of a sensor to itself: where it represents its domain, its own report comes like any other's, without
//! a network.

use super::link::Way;
use crate::representative::admit::NOBODY;
use crate::representative::office::Handle;
use crate::representative::visit::Visit;
use tokio::io::DuplexStream;
use wire::credential::Serial;
use wire::id::{HostName, PeerKey};

/// Bytes that may be between the two ends: as on a fast line.
const BETWEEN_LEN_BYTES: usize = 64 << 10;

/// A stream from this sensor to itself, which its office serves under this name.
#[must_use]
pub fn own_stream(office: &Handle, peer: PeerKey, host: HostName) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(BETWEEN_LEN_BYTES);
    // No other certificate takes the host from the one that represents the domain.
    let serial = Serial(u64::MAX);
    office.receive(Visit { peer, serial, host, stream: Box::new(theirs) });
    ours
}

/// The way of a sensor that is in no domain of several: it always leads to itself.
pub struct OwnWay {
    /// Its office.
    pub office: Handle,
    /// Its host.
    pub host: HostName,
}

impl Way for OwnWay {
    type Stream = DuplexStream;

    async fn open(&mut self) -> DuplexStream {
        self.office.opened().await;
        own_stream(&self.office, NOBODY, self.host.clone())
    }

    async fn moved(&mut self) {
        self.office.closed().await;
    }
}
