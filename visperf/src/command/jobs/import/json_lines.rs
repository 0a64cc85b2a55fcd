//! Jobs as JSON, one object a line: as `visperf jobs --json` prints them, or as a program writes them.
//!
//! Pure. Not here: whether the values of a job are possible (`wire::api::job_import`).

use serde_json::Value;
use wire::api::job_import::ImportedJob;
use wire::api::jobs::Job;
use wire::event::Outcome;

/// Whether the beginning of a file is that of such lines.
pub(super) fn are(beginning: &[u8]) -> bool {
    beginning.trim_ascii_start().starts_with(b"{")
}

/// The job of a line; `None` of an empty line and of a job that has not ended.
///
/// # Errors
/// What was expected.
pub(super) fn job(line: &[u8]) -> Result<Option<ImportedJob>, String> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let value: Value =
        serde_json::from_slice(line).map_err(|error| format!("expected a JSON object: {error}"))?;
    // As `jobs.get` answers, and as sensor.import_jobs takes it.
    let (value, whole) = match value.get("job") {
        Some(job @ Value::Object(_)) => (job.clone(), Some(value)),
        Some(_) | None => (value, None),
    };
    if value.get("state").is_some_and(|state| state != "ended") {
        return Ok(None);
    }
    let outcome = value.get("outcome").and_then(Value::as_str).unwrap_or_default();
    if Outcome::from_word(outcome).is_none() {
        let words: Vec<&str> = Outcome::ALL.iter().map(|outcome| outcome.as_str()).collect();
        return Err(format!("outcome: expected one of {}, found {outcome:?}", words.join(", ")));
    }
    let wrong = |error: serde_json::Error| {
        let text = error.to_string().replace("u64", "a whole number").replace("f64", "a number");
        format!("expected a job with the fields of jobs.search: {text}")
    };
    if value.get("is_reduced").is_some_and(|reduced| reduced == true) {
        return Err("expected a whole job, found what a queue shows of it (is_reduced)".to_owned());
    }
    let job: Job = serde_json::from_value(value).map_err(wrong)?;
    let list = |name: &str| whole.as_ref().and_then(|whole| whole.get(name)).cloned();
    let aliases = list("aliases").map_or(Ok(Vec::new()), serde_json::from_value).map_err(wrong)?;
    // The last run is the job itself.
    let mut runs: Vec<_> = list("runs").map_or(Ok(Vec::new()), serde_json::from_value).map_err(wrong)?;
    runs.retain(|run: &wire::api::jobs::JobRun| run.started != job.started);
    Ok(Some(ImportedJob { job, aliases, runs }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_read_as_it_is_printed_and_a_wrong_one_is_refused_with_the_field() {
        let line =
            br#"{"id":"slurm:17","outcome":"ok","state":"ended","ended":1700000000.5,"cpus":4,"later":{}}"#;
        let read = job(line).unwrap().unwrap();
        assert_eq!((read.job.id.as_str(), read.job.cpus), ("slurm:17", Some(4)));
        let whole =
            br#"{"job":{"id":"slurm:17","outcome":"ok","started":9.0,"ended":10.0},"aliases":["slurm:3"],
            "runs":[{"started":1.0},{"started":9.0}]}"#;
        let read = job(whole).unwrap().unwrap();
        assert_eq!((read.aliases.len(), read.runs.len()), (1, 1));
        for (line, expected) in [
            ("", None),
            (r#"{"id":"slurm:17","state":"running"}"#, None),
            (r#"{"id":"#, Some("expected a JSON object")),
            (r#"{"id":"slurm:17","outcome":"great"}"#, Some("outcome: expected one of ok")),
            (r#"{"id":"slurm:17","outcome":"ok","cpus":"8"}"#, Some("expected a whole number")),
            (r#"{"id":"slurm:17","outcome":"ok","is_reduced":true}"#, Some("what a queue shows")),
        ] {
            match expected {
                None => assert_eq!(job(line.as_bytes()), Ok(None)),
                Some(text) => assert!(job(line.as_bytes()).unwrap_err().contains(text), "{line}"),
            }
        }
        assert!(are(b"\n {\"id\"") && !are(b"JobID|State\n") && !are(b""));
    }
}
