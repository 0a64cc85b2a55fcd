//! `sensor.control`: an operator's signed order to a process of this host.
//!
//! Rule: the call itself proves nothing and needs to prove nothing; the order does. It is obeyed, and the process's user named, where
//! that may block.
//! Not here: what is believed and obeyed (`control`).

use super::declared;
use crate::control::desk::{Done, Handle};
use crate::control::refusal::Refusal;
use crate::process::details::Users;
use rpc::apart::Apart;
use rpc::fault::{self, Fault};
use rpc::method::{Declaration, Method};
use rpc::params::{Parameter, Type};
use rpc::value::{Name, Value};

/// Longest order taken, in bytes: one signed under the longest names has below 5,000.
const ORDER_LEN_MAX_BYTES: usize = 16 << 10;

/// Orders looked at or waited for at a time; others wait for their turn, in the order in which they came. Each has a thread.
const IN_WORK_MAX: usize = 4;

/// The method.
#[must_use]
pub fn method(desk: &Handle) -> Method {
    let (desk, apart) = (desk.clone(), Apart::new("obeying an order", IN_WORK_MAX));
    declared::sensor_control().handler(move |params| {
        let (desk, apart) = (desk.clone(), apart.clone());
        async move {
            let text = params.need_text("order")?.to_owned();
            if text.len() > ORDER_LEN_MAX_BYTES {
                let found = text.len();
                return Err(Fault::invalid_params(format!(
                    "order: expected at most {ORDER_LEN_MAX_BYTES} bytes, found {found}"
                )));
            }
            // With the user's name, which may be asked of a server.
            apart
                .run(move || desk.obey(&text).map(|done| shown(&done)).map_err(|refusal| refused(&refusal)))
                .await
        }
    })
}

pub(super) fn declaration() -> Declaration {
    Declaration::new("sensor.control", "signal or renice a process of this sensor's host, by an operator's signed order")
        .signed()
        .details(
            "The order names domain, host, process and what to do, holds 30 s, and is obeyed once, if an operator of the \
             domain signed it and [sensor.control] of the sensor's configuration lists the process's user. `visperf kill` \
             and `visperf renice` make it.",
        )
        .parameter(Parameter::new("order", Type::Text, "the order, signed, as one line").required())
}

fn shown(done: &Done) -> Value {
    let key = done.order.process;
    let mut members: Vec<(Name, Value)> = vec![
        ("order".into(), Value::Text(done.order.nonce.to_string())),
        ("host".into(), Value::Text(done.order.host.to_string())),
        ("pid".into(), Value::UInt(key.pid.into())),
        ("start_ns".into(), Value::UInt(key.start_ns)),
        ("name".into(), Value::Text(done.name.clone())),
        ("uid".into(), Value::UInt(done.uid.into())),
        ("act".into(), Value::Text(done.order.act.to_string())),
    ];
    if let Some(user) = Users::default().name(done.uid) {
        members.push(("user".into(), Value::Text(user.to_owned())));
    }
    members.extend(done.has_ended.map(|ended| (Name::Borrowed("ended"), Value::Bool(ended))));
    Value::Struct(members)
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
