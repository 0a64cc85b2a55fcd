//! HTTP upgrades at the proxy's listener: daemons inside a firewall that allows only web traffic connect here
//! to the overlay.
//!
//! Rule: no authentication here. The peers authenticate to the overlay, by Noise inside the tunnel and by
//! their certificate.
//! Not here: the table of tunnels (`overlay::net::https_stream::tunnels`), HTTP (`rpc`).

use overlay::net::https_stream::tunnels::{FIRST_BYTE, Tunnels, UPGRADE_BEGINS};
use rpc::http::upgrade::{Duplex, Upgrade, UpgradeAnswer, UpgradeRequest, Work};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;

/// Forwards tunnel requests of the listener to the overlay.
pub struct TunnelUpgrade(Arc<Tunnels>);

impl TunnelUpgrade {
    #[must_use]
    pub fn new(tunnels: Arc<Tunnels>) -> TunnelUpgrade {
        TunnelUpgrade(tunnels)
    }
}

impl Upgrade for TunnelUpgrade {
    fn takes_plain(&self, byte: u8) -> bool {
        byte == FIRST_BYTE
    }

    fn take_plain(&self, stream: TcpStream, source: SocketAddr) -> Work<'_, ()> {
        Box::pin(self.0.take_plain(stream, source))
    }

    fn upgrade(&self) -> &'static [u8] {
        UPGRADE_BEGINS
    }

    fn take_upgrade(&self, stream: Box<dyn Duplex>, source: SocketAddr) -> Work<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.0.take_web_socket(stream, source).await {
                tracing::debug!(%source, %error, "a tunnel's path ended");
            }
        })
    }

    fn path(&self) -> &'static str {
        overlay::net::https_stream::PATH
    }

    fn ask<'a>(&'a self, asked: UpgradeRequest<'a>) -> Work<'a, UpgradeAnswer> {
        Box::pin(async move {
            let UpgradeRequest { is_post, path, query, body, source } = asked;
            let answer = self.0.ask((is_post, path, query), body, source).await;
            UpgradeAnswer { status: answer.status, body: answer.body }
        })
    }
}
