//! Measures of the flock and their axes: x is how much of its host a process uses, y the kind of use
//! (Wallmon, section 5).
//!
//! Pure. Rule: every position lies within 0 to 1 on both axes, whatever the data says. Both axes are scaled
//! with [`scaled`]: most processes use little, and they must be distinguishable there.

/// Bytes of storage I/O per second that count as 100 % of a host: the rate of a good disk. Sensors do not
/// report the capacity of disks.
pub const IO_FULL: f64 = 500e6;
/// Page faults per second that count as 100 % of a host: about what a core can handle.
pub const FAULTS_FULL: f64 = 100e3;
/// Assumed CPUs and memory of a host that reports none.
const CAPACITY_UNKNOWN: Capacity = Capacity { cpus: 1.0, memory_bytes: 8e9 };

/// A measure; each has its own shape of mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    Cpu,
    Memory,
    /// Reads from and writes to storage.
    Io,
    Faults,
}

impl Measure {
    pub const ALL: [Measure; 4] = [Measure::Cpu, Measure::Memory, Measure::Io, Measure::Faults];

    /// Its index in [`Measure::ALL`].
    #[must_use]
    pub const fn at(self) -> usize {
        match self {
            Measure::Cpu => 0,
            Measure::Memory => 1,
            Measure::Io => 2,
            Measure::Faults => 3,
        }
    }

    /// Display name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Cpu => "CPU",
            Measure::Memory => "Memory",
            Measure::Io => "Disk I/O",
            Measure::Faults => "Page faults",
        }
    }

    /// Meaning of 100 % on the horizontal axis.
    #[must_use]
    pub const fn whole(self) -> &'static str {
        match self {
            Measure::Cpu => "all CPUs of the host",
            Measure::Memory => "all memory of the host",
            Measure::Io => "500 MB a second",
            Measure::Faults => "100,000 a second",
        }
    }

    /// Meaning of the bottom and the top of the vertical axis.
    #[must_use]
    pub const fn ends(self) -> (&'static str, &'static str) {
        match self {
            Measure::Cpu => ("in the kernel", "in the program"),
            Measure::Memory => ("no page faults", "100,000 page faults a second"),
            Measure::Io => ("writes", "reads"),
            Measure::Faults => ("from memory", "from disk"),
        }
    }
}

/// Capacity of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Number of CPUs.
    pub cpus: f64,
    /// Memory, in bytes.
    pub memory_bytes: f64,
}

impl Capacity {
    /// The reported capacity; a value that is missing or not a number above zero is replaced by an
    /// assumption.
    #[must_use]
    pub fn of(cpus: Option<f64>, memory_bytes: Option<f64>) -> Capacity {
        let sound = |figure: Option<f64>, guessed: f64| {
            figure.filter(|figure| figure.is_finite() && *figure > 0.0).unwrap_or(guessed)
        };
        Capacity {
            cpus: sound(cpus, CAPACITY_UNKNOWN.cpus),
            memory_bytes: sound(memory_bytes, CAPACITY_UNKNOWN.memory_bytes),
        }
    }
}

/// Resource use of a process since its start, as its sensor reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Total CPU time, in seconds.
    pub cpu_secs: f64,
    /// CPU time in user mode, in seconds.
    pub user_secs: f64,
    /// CPU time in the kernel, in seconds.
    pub system_secs: f64,
    /// Current resident memory, in bytes.
    pub rss_bytes: f64,
    /// Page faults served from memory.
    pub minor_faults: f64,
    /// Page faults served from a disk.
    pub major_faults: f64,
    /// Bytes read from storage.
    pub read_bytes: f64,
    /// Bytes written to storage.
    pub written_bytes: f64,
}

/// A position on the chart, from 0 to 1 on both axes; y points up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spot {
    /// How much.
    pub x: f32,
    /// Of what kind.
    pub y: f32,
}

/// The positions of all measures, in the order of [`Measure::ALL`].
pub type Spots = [Spot; 4];

/// Positions of a process whose only known use is the total since its start.
#[must_use]
pub fn first_spots(now: &Usage, host: Capacity) -> Spots {
    let still = |one: f64, other: f64, unknown: f32| Spot { x: 0.0, y: part(one, other).unwrap_or(unknown) };
    [
        still(now.user_secs, now.system_secs, 0.5),
        Spot { x: scaled(now.rss_bytes / host.memory_bytes), y: 0.0 },
        still(now.read_bytes, now.written_bytes, 0.5),
        still(now.major_faults, now.minor_faults, 0.0),
    ]
}

/// Positions of a process that used nothing since it was at `before`.
#[must_use]
pub fn resting_spots(before: &Spots) -> Spots {
    let [cpu, memory, io, faults] = *before;
    let still = |spot: Spot| Spot { x: 0.0, y: spot.y };
    [still(cpu), Spot { x: memory.x, y: 0.0 }, still(io), still(faults)]
}

/// Positions of a process from its use between two sweeps, `secs` apart; its previous positions are `stood`.
#[must_use]
pub fn spots(before: &Usage, now: &Usage, secs: f64, host: Capacity, stood: &Spots) -> Spots {
    let more = |of: fn(&Usage) -> f64| {
        // Less than before: it is counted from zero again.
        let more = if of(now) < of(before) { of(now) } else { of(now) - of(before) };
        if more.is_finite() { more.max(0.0) } else { 0.0 }
    };
    let secs = if secs.is_finite() { secs.max(1e-3) } else { 1.0 };
    let (user, system) = (more(|usage| usage.user_secs), more(|usage| usage.system_secs));
    let (read, written) = (more(|usage| usage.read_bytes), more(|usage| usage.written_bytes));
    let (minor, major) = (more(|usage| usage.minor_faults), more(|usage| usage.major_faults));
    let faults = (minor + major) / secs / FAULTS_FULL;
    [
        Spot {
            x: scaled(more(|usage| usage.cpu_secs) / secs / host.cpus),
            y: part(user, system).unwrap_or(stood[0].y),
        },
        Spot { x: scaled(now.rss_bytes / host.memory_bytes), y: scaled(faults) },
        Spot { x: scaled((read + written) / secs / IO_FULL), y: part(read, written).unwrap_or(stood[2].y) },
        Spot { x: scaled(faults), y: part(major, minor).unwrap_or(stood[3].y) },
    ]
}

/// Position of a share on an axis: its square root, so that 1 % is at a tenth of the axis.
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn scaled(share: f64) -> f32 {
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0).sqrt() as f32 }
}

/// The share at a position of an axis.
#[must_use]
pub fn share(place: f32) -> f64 {
    f64::from(place).powi(2)
}

/// Ratio of the first amount to the sum, from 0 to 1; `None` if both are zero.
#[allow(clippy::cast_possible_truncation)]
fn part(one: f64, other: f64) -> Option<f32> {
    let whole = one + other;
    let is_sound = one >= 0.0 && other >= 0.0 && whole > 0.0 && whole.is_finite();
    is_sound.then(|| (one / whole) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOST: Capacity = Capacity { cpus: 4.0, memory_bytes: 100.0 };

    #[test]
    fn a_process_stands_where_its_use_puts_it() {
        let before = Usage { cpu_secs: 1.0, user_secs: 0.5, system_secs: 0.5, ..Usage::default() };
        let now = Usage {
            cpu_secs: 3.0,
            user_secs: 2.0,
            system_secs: 1.0,
            rss_bytes: 25.0,
            minor_faults: 1_500.0,
            major_faults: 500.0,
            read_bytes: 3e6,
            written_bytes: 1e6,
        };
        let [cpu, memory, io, faults] = spots(&before, &now, 2.0, HOST, &Spots::default());
        // 1 core of 4, three quarters of it in user mode.
        assert_eq!((cpu.x, cpu.y), (0.5, 0.75));
        assert_eq!((memory.x, memory.y), (0.5, 0.1));
        assert_eq!((io.x, io.y), (scaled(2e6 / IO_FULL), 0.75));
        assert_eq!((faults.x, faults.y), (0.1, 0.25));
    }

    #[test]
    fn a_count_that_starts_again_counts() {
        let before = Usage { cpu_secs: 30.0, read_bytes: 9e9, ..Usage::default() };
        let now = Usage { cpu_secs: 1.0, read_bytes: 3e6, ..Usage::default() };
        let [cpu, _, io, _] = spots(&before, &now, 1.0, HOST, &Spots::default());
        assert_eq!((cpu.x, io.x), (0.5, scaled(3e6 / IO_FULL)));
    }

    #[test]
    fn who_uses_nothing_goes_to_the_left_and_keeps_its_height() {
        let stood = [Spot { x: 0.5, y: 0.75 }; 4];
        let still = Usage { rss_bytes: 25.0, ..Usage::default() };
        let moved = spots(&still, &still, 1.0, HOST, &stood);
        assert_eq!(moved, resting_spots(&stood));
        assert_eq!((moved[0].x, moved[0].y, moved[1].x), (0.0, 0.75, 0.5));
    }

    proptest! {
        #[test]
        fn whatever_is_reported_stays_on_the_chart(
            figures in proptest::collection::vec(prop_oneof![
                Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), -1e18_f64..1e18, 0.0_f64..1.0,
            ], 19),
        ) {
            let usage = |at: usize| Usage {
                cpu_secs: figures[at], user_secs: figures[at + 1], system_secs: figures[at + 2],
                rss_bytes: figures[at + 3], minor_faults: figures[at + 4], major_faults: figures[at + 5],
                read_bytes: figures[at + 6], written_bytes: figures[at + 7],
            };
            let host = Capacity::of(Some(figures[16]), Some(figures[17]));
            let first = first_spots(&usage(0), host);
            let then = spots(&usage(0), &usage(8), figures[18], host, &first);
            for spot in first.into_iter().chain(then).chain(resting_spots(&then)) {
                prop_assert!((0.0..=1.0).contains(&spot.x) && (0.0..=1.0).contains(&spot.y), "{spot:?}");
            }
        }
    }
}
