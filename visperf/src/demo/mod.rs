//! The demo: recorded logs of real clusters, written again with their own timing.
//!
//! The ordinary sensor tails what is written here; nothing knows that it is a replay.
//! Not here: which parts of the program run beside it (`command::up`).

pub(crate) mod player;
pub(crate) mod recording;
pub(crate) mod stamps;

/// One log of a recording.
pub(crate) struct Log {
    /// The cluster, which is also the folder it is written to.
    pub(crate) cluster: &'static str,
    /// The file's name, by which its filter is chosen.
    pub(crate) name: &'static str,
    /// What was recorded.
    pub(crate) bytes: &'static [u8],
}

macro_rules! logs {
    ($($cluster:literal $folder:literal: $($name:literal),+;)+) => {
        &[$($(Log {
            cluster: $cluster,
            name: $name,
            bytes: include_bytes!(concat!("../../../log-filters/logs/", $folder, "/", $name)),
        }),+),+]
    };
}

/// All that is recorded.
pub(crate) const LOGS: &[Log] = logs! {
    "slurm" "slurm/22.05.8-alpha":
        "slurmctld.log", "jobcomp.log", "slurmd.wn01.log", "slurmd.wn02.log", "slurmd.wn03.log", "slurmd.wn04.log";
    "htcondor" "htcondor/23.9.6-cat": "sub01.EventLog", "cm01.MatchLog";
    "gridengine" "gridengine/8.1.9-alpha": "reporting", "qmaster.messages";
    "gridftp" "gridftp/13.24-alpha": "se01.transfer.log", "se02.transfer.log";
};
