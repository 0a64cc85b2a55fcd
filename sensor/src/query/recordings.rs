//! `sensor.recordings`, `sensor.record`, `sensor.recording` and `sensor.recording_file`: list, start and read
//! recordings of the flight recorder.
//!
//! Rule: an answer has a bounded number of samples or bytes, and states where to continue. Files are read
//! where that may block.
//! Not here: the recorder (`recorder`), samples as values (`samples`).

use super::samples::{SampleQuery, Samples};
use crate::recorder::store::{self, StoredRecording};
use crate::recorder::trigger::{self, Count};
use crate::recorder::worker::{Handle, Order, Refusal};
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::future::ready;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use wire::api::recordings::{
    self as api, RecordAnswer, RecordParams, RecordingFileParams, RecordingParams, RecordingPart,
    RecordingSamples, Recordings, RecordingsParams, Trigger,
};
use wire::api::{Bytes, Span, UnixTime, events};
use wire::query::Viewer;
use wire::recording::Recording;

/// Most recordings read at the same time.
const AT_ONCE_MAX: usize = 4;
/// Longest note of a request, in bytes.
const NOTE_LEN_MAX_BYTES: usize = 1000;

/// Creates the methods; without a recorder they say so.
#[must_use]
pub fn methods(recorder: Option<Handle>) -> [Method; 4] {
    let (listed, ordered, read) = (recorder.clone(), recorder.clone(), recorder.clone());
    let pool = BlockingPool::new("reading the recording", AT_ONCE_MAX);
    let of_file = pool.clone();
    [
        typed::method(move |_, RecordingsParams {}| ready(Ok(list(listed.as_ref())))),
        typed::method(move |_, params: RecordParams| {
            let recorder = ordered.clone();
            async move { record(needed(recorder.as_ref())?, params).await }
        }),
        typed::method(move |caller, params: RecordingParams| {
            let (recorder, pool, viewer) = (read.clone(), pool.clone(), caller.viewer);
            async move { recording(needed(recorder.as_ref())?.clone(), &pool, params, viewer).await }
        }),
        typed::method(move |caller, params: RecordingFileParams| {
            let (recorder, pool, viewer) = (recorder.clone(), of_file.clone(), caller.viewer);
            async move {
                may_fetch(viewer)?;
                file(needed(recorder.as_ref())?.clone(), &pool, params).await
            }
        }),
    ]
}

pub(super) fn needed(recorder: Option<&Handle>) -> Result<&Handle, Fault> {
    recorder.ok_or_else(|| {
        Fault::unavailable(
            "this sensor has no flight recorder; its configuration says on = false in [sensor.recorder]",
        )
    })
}

fn list(recorder: Option<&Handle>) -> Recordings {
    let Some(recorder) = recorder else { return Recordings::default() };
    let reach = recorder.ring().reach();
    let (kept, deleted) =
        recorder.store(|store| (store.list().rev().map(to_api).collect(), store.deleted_total()));
    Recordings {
        recordings: kept,
        on: true,
        reaches_back_secs: Duration::from_nanos(reach.to_ns - reach.from_ns).as_secs_f64(),
        memory_bytes: reach.bytes as u64,
        sweeps: reach.sweeps,
        squeezed: reach.squeezed_total,
        deleted,
        triggers: recorder.triggers().iter().map(trigger).collect(),
        trouble: recorder.trouble(),
    }
}

fn trigger((trigger, count): &(trigger::Trigger, Count)) -> Trigger {
    Trigger {
        name: trigger.name.to_string(),
        on: trigger.on.as_str().to_owned(),
        fired: count.fired_total,
        suppressed: count.suppressed_total,
        late: count.late_total,
        refused: count.refused_total,
    }
}

/// Returns the entry of a recording in the list.
fn to_api(kept: &StoredRecording) -> api::Recording {
    let header = &kept.header;
    let time = |moment_ns| UnixTime(header.time(moment_ns));
    api::Recording {
        id: header.id.to_string(),
        state: kept.end.into(),
        trigger: header.cause.trigger.to_string(),
        note: header.cause.note.to_string(),
        call: header.cause.call.clone(),
        event: header.cause.event.clone(),
        time: time(header.at_ns),
        from: time(header.from_ns),
        to: time(header.to_ns),
        rate_hz: header.hz,
        source: header.source.to_string(),
        host: header.host.to_string(),
        size_bytes: kept.len_bytes,
    }
}

async fn record(recorder: &Handle, params: RecordParams) -> Result<RecordAnswer, Fault> {
    let reach = recorder.reach();
    let span = |name: &str, Span(span): Span| match span <= reach {
        true => Ok(span),
        false => Err(Fault::invalid_params(format!(
            "{name}: expected 0 to {} seconds, which is what the recorder keeps in memory, found {}",
            reach.as_secs_f64(),
            span.as_secs_f64()
        ))),
    };
    let note = params.note;
    if note.len() > NOTE_LEN_MAX_BYTES {
        let found = note.len();
        return Err(Fault::invalid_params(format!(
            "note: expected at most {NOTE_LEN_MAX_BYTES} bytes, found {found}"
        )));
    }
    let (before, after) = (span("before_s", params.before_s)?, span("after_s", params.after_s)?);
    let ready = recorder.ready_in(after);
    let order = Order { before, after, note: note.into() };
    let id = recorder.order(order).await.map_err(|refusal| match refusal {
        Refusal::Busy | Refusal::Ordered | Refusal::Ended => Fault::unavailable(refusal.to_string()),
        Refusal::Disk(_) => Fault::new(wire::fault::SYSTEM, refusal.to_string()),
    })?;
    Ok(RecordAnswer { id: id.to_string(), ready_in_secs: ready.as_secs_f64() })
}

async fn recording(
    recorder: Handle,
    pool: &BlockingPool,
    params: RecordingParams,
    viewer: Viewer,
) -> Result<RecordingSamples, Fault> {
    let wanted = SampleQuery::new(params.samples, viewer)?;
    let answer = move || {
        let (recording, kept) = read(&recorder, &params.id)?;
        let mut samples = Samples::new(&recording.header, &wanted);
        for segment in &recording.segments {
            samples.play(segment);
        }
        let gathered = samples.gathered();
        Ok(RecordingSamples {
            samples: gathered.samples,
            ended: gathered.ended,
            total: gathered.total,
            next: gathered.next,
            unreadable: gathered.unreadable,
            damaged: recording.damage.blocks.into(),
            recording: to_api(&kept),
            events: recording.events.into_iter().map(events::Event::from).collect(),
        })
    };
    pool.run(answer).await
}

fn read(recorder: &Handle, id: &str) -> Result<(Recording, StoredRecording), Fault> {
    let found = recorder.store(|store| store.get(id).map(|(kept, path)| (kept.clone(), path)));
    let (kept, path) = found.ok_or_else(|| unknown(id))?;
    let read = store::read(&path).map_err(|error| Fault::new(wire::fault::SYSTEM, error.to_string()))?;
    Ok((read, kept))
}

/// Rejects viewers that are not trusted: a file has the I/O counters of every user's processes.
fn may_fetch(viewer: Viewer) -> Result<(), Fault> {
    if viewer.is_trusted() {
        return Ok(());
    }
    Err(Fault::new(
        wire::fault::FORBIDDEN,
        "the file of a recording holds what /proc shows to root only; fetch it as root over the sensor's local socket, or read what \
         you may see with sensor.recording",
    ))
}

fn unknown(id: &str) -> Fault {
    Fault::not_found(format!("there is no recording {id:?}; sensor.recordings lists them"))
}

async fn file(
    recorder: Handle,
    pool: &BlockingPool,
    params: RecordingFileParams,
) -> Result<RecordingPart, Fault> {
    let RecordingFileParams { id, offset, limit } = params;
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
            let size_bytes = file.metadata()?.len();
            let len = size_bytes.saturating_sub(offset).min(limit);
            let mut part = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut part, offset)?;
            Ok(RecordingPart { offset, size_bytes, data: Bytes(part) })
        });
        part.map_err(|error| Fault::new(wire::fault::SYSTEM, format!("{}: {error}", path.display())))
    };
    pool.run(answer).await
}
