//! What a mark of the flock measures, and where that puts it: x is how much of its host a process uses, y what kind of
//! use it is (Wallmon, section 5).
//!
//! Pure. Rule: every place lies within 0 to 1 both ways, whatever a stranger tells. Both axes are those of [`scaled`]:
//! most processes use little, and the little is where they must be told apart.

/// Bytes of storage a second that count as a whole host's: what a good disk gives. No sensor tells what its disks could.
pub const IO_FULL: f64 = 500e6;
/// Page faults a second that count as a whole host's: what a core can take of them, about.
pub const FAULTS_FULL: f64 = 100e3;
/// CPUs and memory of a host of which nothing is known.
const CAPACITY_UNKNOWN: Capacity = Capacity { cpus: 1.0, memory_bytes: 8e9 };

/// A measure, which is the shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// CPU time.
    Cpu,
    /// Resident memory.
    Memory,
    /// What is read from and written to storage.
    Io,
    /// Page faults.
    Faults,
}

impl Measure {
    /// All of them.
    pub const ALL: [Measure; 4] = [Measure::Cpu, Measure::Memory, Measure::Io, Measure::Faults];

    /// Its number in [`Measure::ALL`].
    #[must_use]
    pub const fn at(self) -> usize {
        match self {
            Measure::Cpu => 0,
            Measure::Memory => 1,
            Measure::Io => 2,
            Measure::Faults => 3,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Measure::Cpu => "CPU",
            Measure::Memory => "Memory",
            Measure::Io => "Disk I/O",
            Measure::Faults => "Page faults",
        }
    }

    /// What 100 % is on the horizontal axis.
    #[must_use]
    pub const fn whole(self) -> &'static str {
        match self {
            Measure::Cpu => "all CPUs of the host",
            Measure::Memory => "all memory of the host",
            Measure::Io => "500 MB a second",
            Measure::Faults => "100,000 a second",
        }
    }

    /// What the bottom and the top of the vertical axis are.
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

/// What a host has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// CPUs.
    pub cpus: f64,
    /// Memory, in bytes.
    pub memory_bytes: f64,
}

impl Capacity {
    /// What is told of a host; what is not, or is no number above zero, is guessed.
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

/// What a process has used since it began, as its sensor tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU time in all, in seconds.
    pub cpu_secs: f64,
    /// Of it in the program itself, in seconds.
    pub user_secs: f64,
    /// Of it in the kernel, in seconds.
    pub system_secs: f64,
    /// Memory that it holds now, in bytes.
    pub rss_bytes: f64,
    /// Page faults that memory answered.
    pub minor_faults: f64,
    /// Page faults that a disk answered.
    pub major_faults: f64,
    /// Bytes read from storage.
    pub read_bytes: f64,
    /// Bytes written to storage.
    pub written_bytes: f64,
}

/// A place on the chart, from 0 to 1 both ways; y goes up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spot {
    /// How much.
    pub x: f32,
    /// Of what kind.
    pub y: f32,
}

/// The places of all measures, in the order of [`Measure::ALL`].
pub type Spots = [Spot; 4];

/// Where a process stands of which nothing but what it used in all its life is known.
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

/// Where a process stands that used nothing since it stood at `before`.
#[must_use]
pub fn resting_spots(before: &Spots) -> Spots {
    let [cpu, memory, io, faults] = *before;
    let still = |spot: Spot| Spot { x: 0.0, y: spot.y };
    [still(cpu), Spot { x: memory.x, y: 0.0 }, still(io), still(faults)]
}

/// Where a process stands that used what lies between two sweeps, `secs` apart; it stood at `stood`.
#[must_use]
pub fn spots(before: &Usage, now: &Usage, secs: f64, host: Capacity, stood: &Spots) -> Spots {
    let more = |of: fn(&Usage) -> f64| {
        let more = of(now) - of(before);
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

/// The place of a share on an axis: its square root, so that 1 % stands at a tenth of the way.
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn scaled(share: f64) -> f32 {
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0).sqrt() as f32 }
}

/// The share at a place of an axis.
#[must_use]
pub fn share(place: f32) -> f64 {
    f64::from(place).powi(2)
}

/// How much of two amounts the first is, from 0 to 1; nothing where there is none.
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
        // 1 core of 4, three quarters of it in the program.
        assert_eq!((cpu.x, cpu.y), (0.5, 0.75));
        assert_eq!((memory.x, memory.y), (0.5, 0.1));
        assert_eq!((io.x, io.y), (scaled(2e6 / IO_FULL), 0.75));
        assert_eq!((faults.x, faults.y), (0.1, 0.25));
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
        fn whatever_is_told_stays_on_the_chart(
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
