//! What the overlay counts of itself, for `sensor.metrics` and `daemon.info`.
//!
//! Rule: all only grow, but for the gauges so named.

use super::rungs::Rungs;
use std::sync::atomic::{AtomicU64, Ordering};
use tunnel::ladder::Rung;

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Counts that many tasks add to.
        #[derive(Debug, Default)]
        pub struct Figures {
            $($(#[$doc])* pub $name: Count,)+
        }

        impl Figures {
            /// Every figure with its name.
            #[must_use]
            pub fn told(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get()),)+]
            }
        }
    };
}

figures!(
    /// Connections that stand (a gauge).
    connections,
    /// Peers that showed a certificate (a gauge).
    guests,
    /// Connections that came to stand.
    connected_total,
    /// Connections that ended.
    disconnected_total,
    /// Connections closed because nothing was answered for 13 s: two pings were missed.
    silent_total,
    /// Attempts to reach a daemon that failed.
    dials_failed_total,
    /// Connections refused because there were too many.
    connections_refused_total,
    /// Hellos refused, by us.
    hellos_refused_total,
    /// Hellos of ours that were refused.
    hellos_lost_total,
    /// Streams that peers opened.
    streams_total,
    /// Streams refused: no certificate, no right, too many, or what came was no question.
    streams_refused_total,
    /// Questions answered.
    questions_total,
    /// Questions that failed or ran out of time.
    questions_failed_total,
    /// Proxies with which this daemon is registered (a gauge).
    registrations,
    /// Daemons that are registered with this proxy (a gauge).
    registered,
    /// Circuits between two others that this proxy carries (a gauge).
    circuits,
    /// Circuits that it began to carry.
    circuits_total,
    /// Registrations and circuits that it refused: too many.
    circuits_refused_total,
    /// Direct connections that were made beside a circuit, both ends dialling at one moment.
    punched_total,
    /// Tries of that which came to nothing; the circuit goes on.
    punches_failed_total,
    /// Connections that are made directly (a gauge).
    by_direct,
    /// The same, both ends dialling at one moment through what stands before them (a gauge).
    by_punched,
    /// Through a proxy, by a circuit (a gauge).
    by_circuit,
    /// By a WebSocket (a gauge).
    by_websocket,
    /// Through the site's own HTTP proxy (a gauge).
    by_connect,
    /// By requests and answers of HTTPS (a gauge).
    by_polling,
    /// Connections that TLS encrypts (a gauge).
    encrypted_by_tls,
    /// Connections that Noise encrypts (a gauge).
    encrypted_by_noise,
);

impl Figures {
    /// By which rungs connections are made now.
    pub(super) fn set_rungs(&self, rungs: &Rungs) {
        let gauges = [
            &self.by_direct,
            &self.by_punched,
            &self.by_circuit,
            &self.by_websocket,
            &self.by_connect,
            &self.by_polling,
        ];
        for (rung, gauge) in Rung::ALL.into_iter().zip(gauges) {
            gauge.set(rungs.count(rung));
        }
    }
}

/// One count.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One fewer.
    pub(super) fn subtract(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Now so many.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// How many.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
