//! Questions of the query interface that other daemons hand on, answered as a client's would be.
//!
//! Rule: who asks is looked at for each question; only methods that read, or that believe a signature alone, are called; a question runs no longer
//! than its asker waits.
//! Not here: handing questions on (`elsewhere`), the methods themselves.

use overlay::gatekeeper::Gatekeeper;
use overlay::identity::admission::Action;
use overlay::net::event_loop::Question as Asked;
use overlay::net::handle::Answer as Reply;
use rpc::dispatch::Dispatcher;
use rpc::elsewhere::Caller;
use rpc::fault::{self, Fault};
use rpc::packed;
use rpc::value::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::query::{Answer, Question};

/// Questions in work at a time; a peer waits for its turn beyond them. As many as four proxies hand on, and a third of what
/// the dispatcher takes.
const IN_WORK_MAX: usize = 512;

/// Answer questions until `shutdown`.
pub(crate) async fn serve(
    mut questions: mpsc::Receiver<Asked>,
    dispatcher: Arc<Dispatcher>,
    gate: Arc<Gatekeeper>,
    shutdown: CancellationToken,
) {
    let mut in_work = JoinSet::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = in_work.join_next() => {}
            asked = questions.recv(), if in_work.len() < IN_WORK_MAX => match asked {
                None => break,
                Some(asked) => {
                    let (dispatcher, gate) = (Arc::clone(&dispatcher), Arc::clone(&gate));
                    in_work.spawn(answer(asked, dispatcher, gate));
                }
            },
        }
    }
}

async fn answer(asked: Asked, dispatcher: Arc<Dispatcher>, gate: Arc<Gatekeeper>) {
    let Asked { peer, principal, body, reply, .. } = asked;
    let refused = match principal {
        None => Some("show a certificate first".to_owned()),
        Some(principal) => gate.check(&principal, Action::Read).err().map(|refused| refused.to_string()),
    };
    let made = match refused {
        Some(reason) => Reply::Refused(reason),
        None => {
            let result = run(&dispatcher, peer, &body).await;
            Reply::Done(
                postcard::to_stdvec(&told(result)).expect("an answer has no part that cannot be written"),
            )
        }
    };
    // The peer may have gone.
    let _ = reply.send(made);
}

async fn run(dispatcher: &Dispatcher, peer: wire::id::PeerKey, body: &[u8]) -> Result<Value, Fault> {
    let unreadable = |what: &dyn std::fmt::Display| {
        Fault::new(fault::INVALID_REQUEST, format!("a question handed on: {what}"))
    };
    let question: Question = postcard::from_bytes(body).map_err(|error| unreadable(&error))?;
    let params = packed::read(&question.params).map_err(|error| unreadable(&error))?;
    let Value::Struct(params) = params else { return Err(unreadable(&"its parameters are no structure")) };
    let caller = Caller {
        peer: Some(peer),
        hops_left: question.hops_left,
        time_left: Duration::from_millis(question.time_left_ms.into()),
    };
    dispatcher.call_for(&caller, &question.method, params).await
}

fn told(result: Result<Value, Fault>) -> Answer {
    match result {
        Ok(value) => {
            let mut bytes = Vec::new();
            packed::write(&value, &mut bytes);
            Answer::Done(bytes)
        }
        Err(fault) => Answer::Fault { code: fault.code, message: fault.message.into_owned() },
    }
}
