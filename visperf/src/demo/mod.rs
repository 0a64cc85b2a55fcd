//! The demo: recorded logs of real clusters, replayed with their own timing.
//!
//! The ordinary sensor tails the files written here; no other part of the program knows that it is a replay.
//! Not here: which parts of the program run beside it (`command::up`).

pub(crate) mod folder;
pub(crate) mod player;
pub(crate) mod recording;
pub(crate) mod stamps;

/// One log of a recording.
pub(crate) struct Log {
    /// The cluster, which is also the name of the folder the log is written to.
    pub(crate) cluster: &'static str,
    /// Host that wrote the log, if its lines do not name it.
    pub(crate) host: &'static str,
    /// File name, which selects the filter.
    pub(crate) name: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! logs {
    ($($cluster:literal $folder:literal: $($name:literal on $host:literal),+;)+) => {
        &[$($(Log {
            cluster: $cluster,
            host: $host,
            name: $name,
            bytes: include_bytes!(concat!("../../../log-filters/logs/", $folder, "/", $name)),
        }),+),+]
    };
}

/// Every recorded log.
pub(crate) const LOGS: &[Log] = logs! {
    "slurm" "slurm/22.05.8-alpha":
        "slurmctld.log" on "ctl01", "jobcomp.log" on "ctl01",
        "slurmd.wn01.log" on "wn01", "slurmd.wn02.log" on "wn02",
        "slurmd.wn03.log" on "wn03", "slurmd.wn04.log" on "wn04";
    "htcondor" "htcondor/23.9.6-cat":
        "sub01.EventLog" on "sub01", "sub01.SchedLog" on "sub01", "cm01.MatchLog" on "cm01";
    "gridengine" "gridengine/8.1.9-alpha": "reporting" on "qm01", "qmaster.messages" on "qm01";
    "gridftp" "gridftp/13.24-alpha": "se01.transfer.log" on "se01", "se02.transfer.log" on "se02";
};
