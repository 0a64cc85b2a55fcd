//! An export to Garage, which speaks S3.
//!
//! Not here: what the files hold (`readers`).

use super::asking::{asked, values};
use super::readers::python;
use super::*;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;

const BUCKET: &str = "grid-history";
const PLACE: &str = "s3://grid-history/physics";
const KEY: &str = "GK0123456789abcdef01234567";
const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A server of one node in a folder.
struct Garage {
    child: Child,
    port: u16,
}

impl Drop for Garage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Garage {
    fn start(folder: &Path, port: u16) -> Garage {
        let config = folder.join("garage.toml");
        let (data, metadata) = (folder.join("data"), folder.join("metadata"));
        let text = format!(
            "metadata_dir = {metadata:?}\ndata_dir = {data:?}\ndb_engine = \"sqlite\"\nreplication_factor = 1\nrpc_bind_addr = \"127.0.0.1:{}\"\nrpc_secret = \"{SECRET}\"\n[s3_api]\ns3_region = \"garage\"\napi_bind_addr = \"127.0.0.1:{port}\"\n",
            free_port()
        );
        std::fs::write(&config, text).unwrap();
        let program = std::env::var_os("VISPERF_GARAGE").unwrap_or_else(|| "garage".into());
        let child = program::command(&program)
            .args(["server", "--single-node", "--default-bucket"])
            .env("GARAGE_CONFIG_FILE", &config)
            .envs([("GARAGE_DEFAULT_ACCESS_KEY", KEY), ("GARAGE_DEFAULT_SECRET_KEY", SECRET)])
            .env("GARAGE_DEFAULT_BUCKET", BUCKET)
            .stderr(std::fs::File::create(folder.join("garage.log")).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let garage = Garage { child, port };
        wait::until(STORED, "a bucket", || {
            let log = std::fs::read_to_string(folder.join("garage.log")).unwrap();
            let is_there = TcpStream::connect(("127.0.0.1", port)).is_ok();
            Ok(if is_there { Seen::Done(()) } else { Seen::NotYet(log) })
        })
        .unwrap();
        garage
    }

    fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_REGION", "garage".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ]
    }
}

#[test]
fn days_are_exported_to_an_object_store_and_go_on_after_it_was_away() {
    let (site, folder) = (Site::start(), tempfile::tempdir().unwrap());
    let garage = Garage::start(folder.path(), free_port());
    let port = garage.port;
    let environment = garage.environment();
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let history = |action, more: &[&str]| site.history_of(action, PLACE.as_ref(), more, &environment);
    let first = history("export", &["--until", &site.day(1)]);
    assert!(first.status.success(), "{}", note(&first));
    drop(garage);
    let away = history("export", &[]);
    assert_eq!(away.status.code(), Some(1), "{}", note(&away));
    let _garage = Garage::start(folder.path(), port);
    let rest = history("export", &[]);
    assert!(note(&rest).contains("1 day exported to s3://grid-history/physics"), "{}", note(&rest));
    let listed = history("list", &["--verify"]);
    assert!(note(&listed).contains("9 of 9 files"), "{}", note(&listed));
    let output = program::command(python())
        .arg(program::workspace().join("tests/clients/parquet_s3.py"))
        .args([format!("127.0.0.1:{port}"), PLACE["s3://".len()..].to_owned()])
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", note(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["metrics"], json!(ROWS * u64::from(DAYS)));
    assert_eq!(found["calls"], json!(CALLS * DAYS));
    assert!(found["events"].as_u64() >= found["calls"].as_u64(), "{found}");

    // What was stored is gone, and is asked of the bucket.
    let (since, until) = (format!("{}T00:00Z", site.day(0)), format!("{}T00:00Z", site.day(DAYS)));
    let all = ["--since", since.as_str(), "--until", until.as_str()];
    let questions = [&["metrics", "node_load1", "--step", "6h"][..], &["calls", "--user", "aliu"]];
    let questions = questions.map(|question| [question, &all].concat());
    let state = site.state();
    let of_sensor = questions.each_ref().map(|one| asked(one, ("--state", state.as_ref()), &[]));
    drop(site);
    assert!(!state.exists());
    let of_bucket = questions.each_ref().map(|one| asked(one, ("--from", PLACE.as_ref()), &environment));
    assert_eq!(values(&of_bucket[0]), values(&of_sensor[0]));
    assert_eq!(of_bucket[1], of_sensor[1]);
    assert_eq!(of_bucket.map(|found| found.len()), [1, (DAYS * JOBS / 2) as usize]);
}
