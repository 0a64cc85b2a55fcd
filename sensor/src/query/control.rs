//! `sensor.control`: an operator's signed command to a process of this host.
//!
//! Rule: the caller needs no authentication, because the command itself is signed. The command is executed,
//! and the name of the process's user looked up, where that may block.
//! Not here: verification and execution (`control`).

use crate::control::refusal::Refusal;
use crate::control::worker::{ExecutedCommand, Handle};
use crate::process::details::Users;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use wire::api::control::{ControlAnswer, ControlParams};
use wire::fault;

/// Longest accepted command, in bytes: one signed under the longest names has less than 5,000.
const ORDER_LEN_MAX_BYTES: usize = 16 << 10;

/// Most commands handled or waited for at the same time; others wait in the order of their arrival. Each
/// takes a thread.
const IN_WORK_MAX: usize = 4;

/// Creates the method.
#[must_use]
pub fn method(worker: &Handle) -> Method {
    let (worker, pool) = (worker.clone(), BlockingPool::new("obeying an order", IN_WORK_MAX));
    typed::method(move |_, ControlParams { order }| {
        let (worker, pool) = (worker.clone(), pool.clone());
        async move {
            if order.len() > ORDER_LEN_MAX_BYTES {
                let found = order.len();
                return Err(Fault::invalid_params(format!(
                    "order: expected at most {ORDER_LEN_MAX_BYTES} bytes, found {found}"
                )));
            }
            // Includes the lookup of the user's name, which may query a server.
            pool.run(move || {
                worker.execute(&order).map(|done| to_api(&done)).map_err(|refusal| refused(&refusal))
            })
            .await
        }
    })
}

fn to_api(done: &ExecutedCommand) -> ControlAnswer {
    let key = done.order.process;
    ControlAnswer {
        order: done.order.nonce.to_string(),
        host: done.order.host.to_string(),
        pid: key.pid,
        start_ns: key.start_ns,
        name: done.name.clone(),
        uid: done.uid,
        user: Users::default().name(done.uid).map(ToOwned::to_owned),
        act: done.order.act.to_string(),
        ended: done.has_ended,
    }
}

fn refused(refusal: &Refusal) -> Fault {
    let code = match refusal {
        Refusal::Off | Refusal::Disbelieved(_) | Refusal::Untouchable { .. } | Refusal::User { .. } => {
            fault::REFUSED
        }
        Refusal::TooMany { .. } => fault::BUSY,
        Refusal::Gone { .. } | Refusal::Recycled { .. } | Refusal::Ended { .. } => fault::NOT_FOUND,
        Refusal::System { .. } | Refusal::NoTrail(_) => fault::SYSTEM,
    };
    Fault::new(code, refusal.to_string())
}
