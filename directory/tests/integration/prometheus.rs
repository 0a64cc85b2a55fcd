//! Prometheus service discovery over a real connection; with `VISPERF_PROMTOOL` (a path) the real `promtool`
//! of Prometheus parses the targets, too.
#![allow(clippy::disallowed_methods)] // the external check is a program

use directory::handle::{Handle, SystemClock};
use directory::methods;
use directory::registry::Registry;
use rpc::dispatch::statistics::Statistics;
use rpc::http::config::Listen;
use rpc::limits::Limits;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use wire::id::{DomainName, HostName, PeerKey};
use wire::registration::{Coverage, Reach, Record, SensorType};
use wire::time::Time;

fn record(domain: &str, hosts: &[&str]) -> Record {
    let hosts: Vec<_> = hosts.iter().map(|host| HostName::try_from(*host).expect("a name")).collect();
    let coverage = Coverage::Part { hosts_total: hosts.len().try_into().expect("few"), hosts: hosts.clone() };
    let key = PeerKey([1; 32]);
    let addresses = vec!["n1:7742".parse().expect("an address")];
    Record {
        domain: DomainName::try_from(domain).expect("a name"),
        host: hosts[0].clone(),
        port: 7317,
        sensor_type: SensorType::Representative,
        addresses: vec![format!("http://{}:7317", hosts[0])],
        term: 1,
        sequence: 1,
        stated: Time::default(),
        reach: Some(Reach { root: key, peer: key, addresses, coverage }),
    }
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("takes it");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answers");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_takes_the_targets() {
    let handle = Handle::new(Registry::new(10), SystemClock);
    handle.register(record("UT-ICL", &["n1", "n2.site.example"])).expect("accepted");
    handle.register(record("SDSC", &["m1"])).expect("accepted");
    let mut registry = rpc::dispatch::method::Registry::new();
    methods::add(&mut registry, &handle).expect("new names");
    let any: Listen = "127.0.0.1:0".parse().expect("an address");
    let listener = rpc::http::server::bind(any).await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let shutdown = CancellationToken::new();
    let statistics = Arc::new(Statistics::default());
    let server =
        rpc::http::server::serve(listener, registry, Limits::default(), statistics, shutdown.clone());
    let server = tokio::spawn(server);

    let answer = get(address, "/sd/prometheus?port=9100").await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/json\r\n"), "{head}");
    assert!(
        body.starts_with("[{\"targets\":[\"m1:9100\"],\"labels\":{\"__meta_visperf_domain\":\"SDSC\""),
        "{body}"
    );
    assert_eq!(body.matches("\"targets\"").count(), 3, "{body}");
    let one = get(address, "/sd/prometheus?domain=SDSC&port=1").await;
    assert!(one.contains("m1:1") && !one.contains("UT-ICL"), "{one}");
    assert!(get(address, "/sd/prometheus?port=0").await.starts_with("HTTP/1.1 400"));

    if let Ok(promtool) = std::env::var("VISPERF_PROMTOOL") {
        let config = tempfile::NamedTempFile::with_suffix(".yml").expect("temporary file");
        let text = format!(
            "scrape_configs:\n  - job_name: grid\n    http_sd_configs:\n      - url: http://{address}/sd/prometheus?port=9100\n    \
             relabel_configs:\n      - source_labels: [__meta_visperf_domain]\n        target_label: domain\n"
        );
        std::fs::write(config.path(), text).expect("written");
        let path = config.path().to_owned();
        let checked = tokio::task::spawn_blocking(move || {
            Command::new(promtool)
                .args(["check", "service-discovery", "--timeout=5s"])
                .arg(path)
                .arg("grid")
                .output()
        });
        let checked = checked.await.expect("no panic").expect("promtool runs");
        let output = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success(), "{output} {}", String::from_utf8_lossy(&checked.stderr));
        for expected in ["n2.site.example:9100", "m1:9100", "\"domain\": \"UT-ICL\""] {
            assert!(output.contains(expected), "{expected} in {output}");
        }
    }
    shutdown.cancel();
    server.await.expect("no panic").expect("ends well");
}
