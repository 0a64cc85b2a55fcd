//! `sensor.recordings`, `sensor.record`, `sensor.recording` and `sensor.recording_file`: the flight recorder asked and ordered.
//!
//! Rule: an answer holds a bounded number of samples or bytes and says where to go on; files are read where that may block.
//! Not here: the recorder (`recorder`), samples as values (`samples`).

use super::declared;
use super::samples::{self, Samples, Wanted};
use super::shape;
use crate::recorder::desk::{Handle, Order, Refusal};
use crate::recorder::store::{self, Kept};
use crate::recorder::trigger::{Count, Trigger};
use rpc::apart::Apart;
use rpc::fault::Fault;
use rpc::method::{Declaration, Method};
use rpc::params::{Parameter, Params, Type};
use rpc::value::{Name, Value};
use std::os::unix::fs::FileExt;
use std::time::Duration;
use wire::query::Viewer;
use wire::recording::Recording;

/// Longest part of a file in one answer, in bytes: within what an answer may be, written as text.
const PART_LEN_MAX_BYTES: i64 = 1 << 20;
/// Recordings read at a time.
const AT_ONCE_MAX: usize = 4;
/// Longest note of an order, in bytes.
const NOTE_LEN_MAX_BYTES: usize = 1000;

/// The methods; without a recorder they say so.
#[must_use]
pub fn methods(recorder: Option<Handle>) -> [Method; 4] {
    let (listed, ordered, read) = (recorder.clone(), recorder.clone(), recorder.clone());
    let apart = Apart::new("reading the recording", AT_ONCE_MAX);
    let of_file = apart.clone();
    [
        declared::sensor_recordings().handler_now(move |_| Ok(list(listed.as_ref()))),
        declared::sensor_record().handler(move |params| {
            let recorder = ordered.clone();
            async move { record(needed(recorder.as_ref())?, &params).await }
        }),
        declared::sensor_recording().handler_for(move |caller, params| {
            let (recorder, apart, viewer) = (read.clone(), apart.clone(), caller.viewer);
            async move { recording(needed(recorder.as_ref())?.clone(), &apart, params, viewer).await }
        }),
        declared::sensor_recording_file().handler_for(move |caller, params| {
            let (recorder, apart, viewer) = (recorder.clone(), of_file.clone(), caller.viewer);
            async move {
                may_fetch(viewer)?;
                file(needed(recorder.as_ref())?.clone(), &apart, params).await
            }
        }),
    ]
}

pub(super) fn list_declaration() -> Declaration {
    Declaration::new("sensor.recordings", "the recordings of this sensor's host, the newest first, and the flight recorder")
        .reading()
        .details(
            "A recording holds every process of the host at the full rate around something that happened. reaches_back \
             is how many seconds of them are in memory now.",
        )
}

pub(super) fn record_declaration() -> Declaration {
    let span = |name, help| Parameter::new(name, Type::Span, help);
    Declaration::new(
        "sensor.record",
        "record all processes of this daemon's host, from before now to after now",
    )
    .parameter(span("before_s", "so long before now, as far as memory reaches back").default(30.0))
    .parameter(span("after_s", "so long after now").default(10.0))
    .parameter(Parameter::new("note", Type::Text, "why, to be found again by it"))
}

pub(super) fn recording_declaration() -> Declaration {
    samples::parameters(
        Declaration::new("sensor.recording", "the samples of a recording: each process in each sweep")
            .reading()
            .parameter(Parameter::new("id", Type::Text, "which, as sensor.recordings tells").required()),
    )
}

pub(super) fn file_declaration() -> Declaration {
    Declaration::new("sensor.recording_file", "a recording's file, part by part; for root and operators")
        .reading()
        .parameter(Parameter::new("id", Type::Text, "which, as sensor.recordings tells").required())
        .parameter(
            Parameter::new("offset", Type::Whole { min: 0, max: i64::MAX }, "from this byte on").default(0),
        )
        .parameter(
            Parameter::new("limit", Type::Whole { min: 1, max: PART_LEN_MAX_BYTES }, "at most so many bytes")
                .default(PART_LEN_MAX_BYTES),
        )
}

pub(super) fn needed(recorder: Option<&Handle>) -> Result<&Handle, Fault> {
    recorder.ok_or_else(|| {
        Fault::unavailable(
            "this sensor has no flight recorder; its configuration says on = false in [sensor.recorder]",
        )
    })
}

fn list(recorder: Option<&Handle>) -> Value {
    let Some(recorder) = recorder else {
        let nothing = Value::Array(Vec::new());
        return Value::object([
            ("recordings", nothing.clone()),
            ("on", Value::Bool(false)),
            ("triggers", nothing),
        ]);
    };
    let reach = recorder.ring().reach();
    let (kept, deleted) = recorder.store(|store| {
        let kept: Vec<Value> = store.list().rev().map(shown).collect();
        (kept, store.deleted_total())
    });
    let back = Duration::from_nanos(reach.to_ns - reach.from_ns);
    let mut members: Vec<(Name, Value)> = vec![
        ("recordings".into(), Value::Array(kept)),
        ("on".into(), Value::Bool(true)),
        ("reaches_back".into(), Value::Double(back.as_secs_f64())),
        ("bytes".into(), Value::UInt(reach.bytes as u64)),
        ("sweeps".into(), Value::UInt(reach.sweeps)),
        ("squeezed".into(), Value::UInt(reach.squeezed_total)),
        ("deleted".into(), Value::UInt(deleted)),
        ("triggers".into(), Value::array(recorder.triggers().iter().map(trigger))),
    ];
    members.extend(recorder.trouble().map(|trouble| (Name::Borrowed("trouble"), Value::Text(trouble))));
    Value::Struct(members)
}

fn trigger((trigger, count): &(Trigger, Count)) -> Value {
    Value::object([
        ("name", Value::Text(trigger.name.to_string())),
        ("on", Value::Text(trigger.on.as_str().to_owned())),
        ("fired", Value::UInt(count.fired_total)),
        ("suppressed", Value::UInt(count.suppressed_total)),
        ("late", Value::UInt(count.late_total)),
        ("refused", Value::UInt(count.refused_total)),
    ])
}

/// A recording in the list.
fn shown(kept: &Kept) -> Value {
    let header = &kept.header;
    let text = |text: &str| Value::Text(text.to_owned());
    Value::object([
        ("id", text(&header.id)),
        ("state", text(kept.end.map_or("recording", |end| end.as_str()))),
        ("trigger", text(&header.cause.trigger)),
        ("note", text(&header.cause.note)),
        ("call", text(&header.cause.call)),
        ("event", text(&header.cause.event)),
        ("time", shape::time(header.time(header.at_ns))),
        ("from", shape::time(header.time(header.from_ns))),
        ("to", shape::time(header.time(header.to_ns))),
        ("hz", Value::Double(header.hz)),
        ("source", text(&header.source)),
        ("host", text(header.host.as_str())),
        ("size", Value::UInt(kept.len_bytes)),
    ])
}

async fn record(recorder: &Handle, params: &Params) -> Result<Value, Fault> {
    let reach = recorder.reach();
    let span = |name: &str| -> Result<Duration, Fault> {
        let secs = params.number(name)?.unwrap_or(0.0);
        match (0.0..=reach.as_secs_f64()).contains(&secs) {
            true => Ok(Duration::from_secs_f64(secs)),
            false => Err(Fault::invalid_params(format!(
                "{name}: expected 0 to {} seconds, which is what the recorder keeps in memory, found {secs}",
                reach.as_secs_f64()
            ))),
        }
    };
    let note = params.text("note")?.unwrap_or_default();
    if note.len() > NOTE_LEN_MAX_BYTES {
        let found = note.len();
        return Err(Fault::invalid_params(format!(
            "note: expected at most {NOTE_LEN_MAX_BYTES} bytes, found {found}"
        )));
    }
    let order = Order { before: span("before_s")?, after: span("after_s")?, note: note.into() };
    let ready = recorder.ready_in(order.after);
    let id = recorder.order(order).await.map_err(|refusal| match refusal {
        Refusal::Busy | Refusal::Ordered | Refusal::Ended => Fault::unavailable(refusal.to_string()),
        Refusal::Disk(_) => Fault::new(rpc::fault::SYSTEM, refusal.to_string()),
    })?;
    Ok(Value::object([("id", Value::Text(id.to_string())), ("ready_in", Value::Double(ready.as_secs_f64()))]))
}

async fn recording(recorder: Handle, apart: &Apart, params: Params, viewer: Viewer) -> Result<Value, Fault> {
    let wanted = Wanted::new(&params, viewer)?;
    let id = params.need_text("id")?.to_owned();
    let answer = move || {
        let (recording, kept) = read(&recorder, &id)?;
        let mut samples = Samples::new(&recording.header, &wanted);
        for segment in &recording.segments {
            samples.play(segment);
        }
        let mut members = samples.shown();
        members.push(("recording".into(), shown(&kept)));
        members.push(("events".into(), Value::array(recording.events.iter().map(shape::event))));
        members.push(("damaged".into(), Value::UInt(recording.damage.blocks.into())));
        Ok(Value::Struct(members))
    };
    apart.run(answer).await
}

fn read(recorder: &Handle, id: &str) -> Result<(Recording, Kept), Fault> {
    let found = recorder.store(|store| store.get(id).map(|(kept, path)| (kept.clone(), path)));
    let (kept, path) = found.ok_or_else(|| unknown(id))?;
    let read = store::read(&path).map_err(|error| Fault::new(rpc::fault::SYSTEM, error.to_string()))?;
    Ok((read, kept))
}

/// A file holds the I/O counters of every user's processes.
fn may_fetch(viewer: Viewer) -> Result<(), Fault> {
    if viewer.is_trusted() {
        return Ok(());
    }
    Err(Fault::new(
        rpc::fault::FORBIDDEN,
        "the file of a recording holds what /proc shows to root only; fetch it as root over the sensor's local socket, or read what \
         you may see with sensor.recording",
    ))
}

fn unknown(id: &str) -> Fault {
    Fault::not_found(format!("there is no recording {id:?}; sensor.recordings lists them"))
}

async fn file(recorder: Handle, apart: &Apart, params: Params) -> Result<Value, Fault> {
    let id = params.need_text("id")?.to_owned();
    let offset = u64::try_from(params.need_whole("offset")?).unwrap_or(0);
    let limit = usize::try_from(params.need_whole("limit")?).unwrap_or(1);
    let answer = move || {
        let (is_over, path) = recorder
            .store(|store| store.get(&id).map(|(kept, path)| (kept.end.is_some(), path)))
            .ok_or_else(|| unknown(&id))?;
        if !is_over {
            return Err(Fault::unavailable(format!(
                "the recording {id} is under way; ask again when it is over"
            )));
        }
        let part = store::open(&path).and_then(|file| {
            let size = file.metadata()?.len();
            let len = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX).min(limit);
            let mut part = vec![0; len];
            file.read_exact_at(&mut part, offset)?;
            Ok((part, size))
        });
        let refused = |error| Fault::new(rpc::fault::SYSTEM, format!("{}: {error}", path.display()));
        let (part, size) = part.map_err(refused)?;
        Ok(Value::object([
            ("offset", Value::UInt(offset)),
            ("size", Value::UInt(size)),
            ("data", Value::Bytes(part)),
        ]))
    };
    apart.run(answer).await
}
