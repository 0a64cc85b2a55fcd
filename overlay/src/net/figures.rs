//! Counters of the overlay, for `sensor.metrics` and `daemon.info`.
//!
//! Rule: all of them only grow, except those marked as gauges.

use super::connection_transports::ConnectionTransports;
use std::sync::atomic::{AtomicU64, Ordering};
use tunnel::ladder::TransportKind;

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// The counters, shared by all tasks.
        #[derive(Debug, Default)]
        pub struct Figures {
            $($(#[$doc])* pub $name: Count,)+
        }

        impl Figures {
            /// Every counter with its name.
            #[must_use]
            pub fn counters(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get()),)+]
            }
        }
    };
}

figures!(
    /// Open connections (a gauge).
    connections,
    /// Peers that are ready: both sides have admitted each other (a gauge).
    guests,
    /// Connections that were established.
    connected_total,
    disconnected_total,
    /// Connections closed because no ping was answered for 13 s.
    silent_total,
    /// Failed dials.
    dials_failed_total,
    /// Inbound connections that failed, and hellos refused because there were too many connections.
    connections_refused_total,
    /// Hellos that this daemon refused.
    hellos_refused_total,
    /// Hellos of this daemon that a peer refused.
    hellos_lost_total,
    streams_total,
    /// Streams refused: no certificate, no permission, too many, or no valid question came.
    streams_refused_total,
    questions_total,
    /// Questions that failed or timed out.
    questions_failed_total,
    /// Proxies with which this daemon is registered (a gauge).
    registrations,
    /// Daemons that are registered with this proxy (a gauge).
    registered,
    /// Circuits between two others that this proxy carries (a gauge).
    circuits,
    /// Circuits that this proxy started to carry.
    circuits_total,
    /// Registrations and circuits that this proxy refused because of its limits.
    circuits_refused_total,
    /// Direct connections made by hole punching.
    punched_total,
    /// Attempts at hole punching that failed; the circuit is used on.
    punches_failed_total,
    /// Direct connections (a gauge).
    by_direct,
    /// Direct connections made by hole punching (a gauge).
    by_punched,
    /// Connections through a proxy, by a circuit (a gauge).
    by_circuit,
    /// Connections by WebSocket (a gauge).
    by_websocket,
    /// Connections through the site's own HTTP proxy (a gauge).
    by_connect,
    /// Connections by HTTPS requests and answers (a gauge).
    by_polling,
    /// Connections that TLS encrypts (a gauge).
    encrypted_by_tls,
    /// Connections that Noise encrypts (a gauge).
    encrypted_by_noise,
);

impl Figures {
    /// Set the gauges of the transports.
    pub(super) fn set_transports(&self, transports: &ConnectionTransports) {
        let gauges = [
            &self.by_direct,
            &self.by_punched,
            &self.by_circuit,
            &self.by_websocket,
            &self.by_connect,
            &self.by_polling,
        ];
        for (transport, gauge) in TransportKind::ALL.into_iter().zip(gauges) {
            gauge.set(transports.count(transport));
        }
    }
}

/// One counter or gauge.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
