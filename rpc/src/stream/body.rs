//! Response body of a stream: event by event until the client or the daemon closes it.
//!
//! Not here: the choice of the next event (`table`), the client's progress (`backpressure`).

use super::Follows;
use super::backpressure::Backpressure;
use super::event::{self, Event};
use super::table::{Next, Place};
use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The stream was closed while an event was being sent: the connection is closed at once, without the rest of
/// it.
#[derive(Debug, thiserror::Error)]
#[error("the stream was closed")]
pub(crate) struct Gone;

/// Stream of one client; dropping it ends it.
pub(crate) struct Following {
    follows: Arc<Follows>,
    place: Place,
    pipe: Arc<Backpressure>,
    /// Bytes sent before the first event.
    first: Option<Bytes>,
    /// Event that the client has not read completely yet: while it is here it counts as held.
    in_hand: Option<Arc<Event>>,
    is_over: bool,
}

impl Following {
    pub(crate) fn new(follows: Arc<Follows>, place: Place, pipe: Arc<Backpressure>) -> Following {
        pipe.begin();
        let first = Some(event::retry(place.follower));
        Following { follows, place, pipe, first, in_hand: None, is_over: false }
    }

    fn poll_next(&mut self, context: &Context<'_>) -> Poll<Option<Result<Bytes, Gone>>> {
        if let Some(bytes) = self.first.take() {
            self.pipe.fill(bytes.len());
            return Poll::Ready(Some(Ok(bytes)));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        let is_clear = self.pipe.is_clear();
        if is_clear {
            self.in_hand = None;
        }
        let bytes = match self.follows.next(self.place, is_clear, context.waker()) {
            Next::Nothing => return Poll::Pending,
            Next::Comment => event::COMMENT,
            Next::Event(event, skipped) => {
                let (own, shared) = event.bytes(skipped);
                self.in_hand = Some(event);
                match own {
                    None => shared,
                    Some(own) => {
                        self.first = Some(shared);
                        own
                    }
                }
            }
            Next::End(last) => {
                self.is_over = true;
                match last {
                    Some(_) if !is_clear => return Poll::Ready(Some(Err(Gone))),
                    Some(last) => last,
                    None => return Poll::Ready(None),
                }
            }
        };
        self.pipe.fill(bytes.len());
        Poll::Ready(Some(Ok(bytes)))
    }
}

impl Body for Following {
    type Data = Bytes;
    type Error = Gone;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Gone>>> {
        self.get_mut().poll_next(context).map(|next| next.map(|it| it.map(Frame::data)))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.follows.leave(self.place, self.pipe.is_cut());
    }
}
