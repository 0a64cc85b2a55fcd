//! Timing of a refused login: whether it shows if an account of that name exists. 100,000 samples of each
//! kind, in random order, compared by Welch's t-test (a value above 4.5 means that they differ).
//!
//! `cargo bench -p proxy --bench names [SAMPLES]`. Each sample draws one of two hundred names, so that the
//! test does not compare just two names. Two control rows check the measurement: two sets of accounts (no
//! difference), and two hashes (a difference that it must detect).
//! Rule: the slowest twentieth of both sets is dropped, because the machine was busy with something else.
//! Not here: the network, whose jitter is larger than all of this.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, clippy::cast_precision_loss)]

use overlay::dice::Dice;
use proxy::account::{Account, Accounts, Name, Proofs};
use proxy::grant::{Chosen, Class, Grant, Rights};
use proxy::login::{Attempt, Login, Offer, Verdict};
use proxy::nonces::RANDOM_LEN_BYTES;
use std::hint::black_box;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tunnel::digest::client::{self, Client};
use wire::time::Moment;

/// Default number of samples of each kind.
const SAMPLES: usize = 100_000;
/// Logins before the measurement starts.
const WARM_UP: usize = 2_000;
/// Time between two logins, long enough that none is delayed by the rate limit.
const BETWEEN: Duration = Duration::from_secs(60);

fn account(name: &str) -> Account {
    let name: Name = name.parse().unwrap();
    let grant = Grant { domains: Chosen::All, hosts: Chosen::All, classes: Class::ALL.into() };
    let proofs = Proofs::of(&name, "visperf", "the right secret", true);
    Account { name, rights: Rights::Viewer, grant, proofs }
}

fn attempt(authorization: Option<&str>, offer: Offer) -> Attempt<'_> {
    let source = IpAddr::from([10, 0, 0, 1]);
    Attempt { method: "POST", target: "/d/UT-ICL/RPC2", authorization, source, channel: b"door", offer }
}

struct Bench {
    login: Login,
    now: Moment,
    dice: Dice,
}

impl Bench {
    fn new() -> Bench {
        let mut accounts = Accounts::new("visperf").unwrap();
        // A few hundred accounts, so that a look-up takes several steps.
        (0..400).for_each(|number| accounts.add(account(&format!("user{number:03}"))).unwrap());
        Bench {
            login: Login::new(&accounts, [9; 32]),
            now: Moment(Duration::from_secs(1000)),
            dice: Dice::new(1),
        }
    }

    /// Logins with a wrong secret, for the names with these numbers.
    fn all_wrong(&mut self, numbers: impl Iterator<Item = u32>, offer: Offer) -> Vec<(String, Offer)> {
        numbers.map(|number| self.wrong(&format!("user{number:03}"), offer)).collect()
    }

    /// A login as `name` with a wrong secret.
    fn wrong(&mut self, name: &str, offer: Offer) -> (String, Offer) {
        let Verdict::Challenge(fields, _) =
            self.login.handle_attempt(attempt(None, offer), [0; RANDOM_LEN_BYTES], self.now)
        else {
            panic!("let in")
        };
        let login = client::Login { name: name.into(), secret: "a wrong secret".into(), allows_md5: true };
        let mut client = Client::new(login);
        client.handle_challenge(fields.iter().map(String::as_str)).unwrap();
        (client.authorization("POST", "/d/UT-ICL/RPC2", "cnonce").unwrap(), offer)
    }

    /// Nanoseconds that the refusal takes.
    fn time(&mut self, wrong: &(String, Offer)) -> f64 {
        self.now = self.now.plus(BETWEEN);
        let mut random = [0; RANDOM_LEN_BYTES];
        random[..8].copy_from_slice(&self.dice.draw().to_be_bytes());
        let began = Instant::now();
        let verdict =
            black_box(self.login.handle_attempt(attempt(Some(&wrong.0), wrong.1), random, self.now));
        let took = began.elapsed();
        assert!(matches!(verdict, Verdict::Challenge(..)), "{verdict:?}");
        took.as_nanos() as f64
    }

    fn compare(&mut self, what: &str, sides: [&[(String, Offer)]; 2], samples: usize) {
        let mut times = [Vec::with_capacity(samples), Vec::with_capacity(samples)];
        let mut warming = WARM_UP;
        while times.iter().any(|of| of.len() < samples) {
            let which = usize::from(self.dice.happens(500));
            let number = self.dice.below(sides[which].len() as u64);
            let took = self.time(&sides[which][usize::try_from(number).unwrap()]);
            if warming > 0 {
                warming -= 1;
            } else if times[which].len() < samples {
                times[which].push(took);
            }
        }
        let mut all = times.concat();
        all.sort_by(f64::total_cmp);
        let most = all[all.len() * 19 / 20];
        let of = times.map(|times| Moments::of(times.into_iter().filter(|took| *took <= most)));
        println!(
            "{what:<42} {:>8.0} {:>8.0} {:>8.2}",
            of[0].mean,
            of[1].mean,
            (of[0].mean - of[1].mean).abs() / (of[0].share() + of[1].share()).sqrt()
        );
    }
}

struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Moments {
    fn of(times: impl Iterator<Item = f64>) -> Moments {
        let times: Vec<f64> = times.collect();
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let variance = times.iter().map(|took| (took - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Moments { count, mean, variance }
    }

    /// Contribution to the square of the denominator of Welch's t.
    fn share(&self) -> f64 {
        self.variance / self.count
    }
}

fn main() {
    let samples = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(SAMPLES);
    let mut bench = Bench::new();
    println!("{:<42} {:>8} {:>8} {:>8}", format!("ns a refused login, {samples} each"), "one", "other", "t");
    let there = bench.all_wrong((0..400).step_by(2), Offer::Sha256);
    let others = bench.all_wrong((1..400).step_by(2), Offer::Sha256);
    let none = bench.all_wrong((0..400).step_by(2).map(|number| number + 500), Offer::Sha256);
    let md5 = bench.all_wrong((0..400).step_by(2), Offer::Md5);
    for _ in 0..3 {
        bench.compare("accounts, names that are none", [&there, &none], samples);
        bench.compare("accounts, other accounts", [&there, &others], samples);
    }
    bench.compare("control: by SHA-256, by MD5", [&there, &md5], samples);
}
