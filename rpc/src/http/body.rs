//! Reads the body of a request, within its limits.
//!
//! Invariant: bodies larger than [`Limits::small_body_bytes`] share one budget for the whole server, so that
//! many connections cannot each hold the largest body.
//! Not here: its deadline (`guarded_stream`), its content (`codec`).

use crate::codec::xmlrpc;
use crate::fault::Fault;
use crate::http::answer::refusal_fault;
use crate::http::framing::Refusal;
use crate::limits::Limits;
use axum::body::HttpBody as _;
use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::header::CONTENT_ENCODING;
use std::error::Error;
use std::io;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wire::fault;

/// Unit of the budget: a semaphore cannot count 64 MiB in single bytes.
const UNIT_BYTES: usize = 1 << 10;

/// Budget of large bodies.
pub(crate) struct Bodies {
    body_bytes: usize,
    small_body_bytes: usize,
    budget: Arc<Semaphore>,
}

/// A body with its share of the budget.
pub(crate) struct BufferedBody {
    pub(crate) bytes: Bytes,
    _budget: Option<OwnedSemaphorePermit>,
}

impl Bodies {
    pub(crate) fn new(limits: &Limits) -> Bodies {
        Bodies {
            body_bytes: limits.body_bytes,
            small_body_bytes: limits.small_body_bytes,
            budget: Arc::new(Semaphore::new(limits.large_bodies_bytes / UNIT_BYTES)),
        }
    }

    /// Read the whole body.
    pub(crate) async fn read(&self, request: Request) -> Result<BufferedBody, Fault> {
        if let Some(encoding) = request.headers().get(CONTENT_ENCODING)
            && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
        {
            return Err(Fault::new(
                fault::TRANSPORT,
                "expected a body without Content-Encoding, found one; send it uncompressed",
            ));
        }
        let mut body = request.into_body();
        let announced = body.size_hint().lower();
        if announced > self.body_bytes as u64 {
            return Err(xmlrpc::too_large(self.body_bytes));
        }
        let announced = usize::try_from(announced).unwrap_or(self.body_bytes);
        let mut budget = self.charge(announced)?;
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| cut_short(&error))?;
            let Ok(data) = frame.into_data() else { continue };
            if first.is_empty() && rest.is_empty() {
                first = data;
                continue;
            }
            if rest.is_empty() {
                rest.reserve(announced.max(first.len() + data.len()));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            if rest.len() + data.len() > self.body_bytes {
                return Err(xmlrpc::too_large(self.body_bytes));
            }
            if budget.is_none() && rest.len() + data.len() > self.small_body_bytes {
                budget = self.charge(self.body_bytes)?;
            }
            rest.extend_from_slice(&data);
        }
        let bytes = if rest.is_empty() { first } else { rest.freeze() };
        Ok(BufferedBody { bytes, _budget: budget })
    }

    fn charge(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, Fault> {
        if bytes <= self.small_body_bytes {
            return Ok(None);
        }
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let busy =
            |_| Fault::new(fault::BUSY, "expected fewer large requests at a time; send this one again later");
        self.budget.clone().try_acquire_many_owned(units).map(Some).map_err(busy)
    }
}

/// Why a body is incomplete: the framing refused it, or its sender is gone.
fn cut_short(error: &(dyn Error + 'static)) -> Fault {
    let causes = std::iter::successors(Some(error), |error| Error::source(*error));
    let refusal = causes
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .find_map(|cause| cause.get_ref()?.downcast_ref::<Refusal>());
    refusal.map_or_else(
        || Fault::new(fault::TRANSPORT, "expected as many bytes of body as announced, found fewer"),
        |refusal| refusal_fault(*refusal),
    )
}
