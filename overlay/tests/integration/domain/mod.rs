//! Complete sensors in a domain, without middleware: real keys, certificates, connections on loopback, and
//! terms on disk.

mod sensors;

use overlay::election::Role;
use sensors::{Root, all_agree, representative_of};
use std::time::Duration;

/// Timeout for sensors to agree: on a busy machine one may lose the role it just got, and is a candidate
/// again only after its cooldown of 60 s.
const SOON: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sensors_that_know_one_seed_agree_on_a_representative() {
    let root = Root::new("UT-ICL");
    let sensors = root.start(6).await;
    let agreed = all_agree(&sensors, SOON).await;
    assert_eq!(sensors.iter().filter(|sensor| sensor.role() == Role::Representative).count(), 1);
    // A representative that was stopped for a while first confirms that it still is the representative.
    let waited = overlay::clock::now();
    while sensors.iter().any(|sensor| sensor.may_serve() != (sensor.key() == agreed.0)) {
        assert!(overlay::clock::now().since(waited) < SOON, "who may serve is not who represents");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let view = representative_of(&sensors, agreed.0).view();
    assert_eq!((view.state.coverage.len(), view.state.partial), (6, false));
    let hosts: Vec<String> = view.members.iter().map(|seen| seen.member.host.to_string()).collect();
    assert_eq!(hosts.len(), 6, "{hosts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_representative_that_dies_is_followed_and_comes_back_as_a_member() {
    let root = Root::new("UT-ICL");
    let mut sensors = root.start(5).await;
    let (first, term) = all_agree(&sensors, SOON).await;
    let at = sensors.iter().position(|sensor| sensor.key() == first).expect("one of them");
    let dead = sensors.swap_remove(at);
    let dead = dead.kill().await;
    let (second, next) = all_agree(&sensors, SOON).await;
    assert!(second != first && next > term, "{second} under {next} after {first} under {term}");
    sensors.push(dead.start_again().await);
    let (third, last) = all_agree(&sensors, SOON).await;
    assert_eq!((third, last), (second, next), "the incumbent stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_representative_that_stops_resigns_first() {
    let root = Root::new("UT-ICL");
    let mut sensors = root.start(4).await;
    let (first, _) = all_agree(&sensors, SOON).await;
    let at = sensors.iter().position(|sensor| sensor.key() == first).expect("one of them");
    sensors.swap_remove(at).stop().await;
    let stopped = overlay::clock::now();
    let (second, _) = all_agree(&sensors, SOON).await;
    assert_ne!(second, first);
    println!("followed {} ms after the stop", overlay::clock::now().since(stopped).as_millis());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sensor_of_another_domain_has_no_part() {
    let root = Root::new("UT-ICL");
    let sensors = root.start(3).await;
    all_agree(&sensors, SOON).await;
    let stranger = Root::new("OTHER").start_with_seed(1, &sensors[0]).await;
    let (alone, _) = all_agree(&stranger, SOON).await;
    assert_eq!(alone, stranger[0].key(), "it represents its own domain of one");
    let view = sensors[0].view();
    assert!(view.members.iter().all(|seen| seen.member.key != stranger[0].key()));
    assert!(sensors[0].net().figures().hellos_refused_total.get() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sensor_alone_represents_itself_and_joins_when_others_come() {
    let root = Root::new("UT-ICL");
    let mut sensors = root.start(1).await;
    let (alone, term) = all_agree(&sensors, SOON).await;
    assert_eq!(alone, sensors[0].key());
    sensors.extend(root.start_with_seed(2, &sensors[0]).await);
    let (together, later) = all_agree(&sensors, SOON).await;
    assert_eq!((together, later), (alone, term), "the incumbent stays");
}
