//! Election of a domain's representative: one sensor's part in it, as a state machine.
//!
//! Pure. [`Node::handle`] takes an [`Input`] and `now`; [`Node::poll_output`] returns what the shell is to
//! do, and [`Node::poll_timeout`] when to call again. The *leader* of a sensor is the representative that it
//! obeys.
//!
//! # Transitions
//!
//! The state is a [`Phase`]. The name of a message means that it is received or sent; *Claim* is a heartbeat
//! that carries the sender's claim to represent the domain. A pair that has no row changes no state and has
//! no output. In these rows the domain has three sensors, this one is its first standby, the third has lost
//! the leader when this one has, and a sensor that is not connected is known by its address.
//! `overlay/tests/integration/election_transitions.rs` drives a node through every pair.
//!
//! | State | Input | Next state | Outputs |
//! |---|---|---|---|
//! | Following | Heartbeat: claim of the leader | same | - |
//! | Following | Heartbeat: no leader | same | Redirect |
//! | Following | Heartbeat: larger coverage | same | Redirect |
//! | Following | Heartbeat: leader without claim | Searching | State |
//! | Following | Leave: leader | Searching | State |
//! | Following | Resign: to another | Searching | State |
//! | Following | Resign: to this sensor | Promoting | Question, Persist, State |
//! | Following | Timeout | same | Heartbeat |
//! | Following | Timeout: 1.3 s late | same | Heartbeat, Question |
//! | Following | Timeouts for 1.3 s | Searching | Heartbeat, State |
//! | Searching | Heartbeat: claim of the leader | Following | State |
//! | Searching | Answer: lost too | Promoting | Persist |
//! | Searching | Resign: to this sensor | Promoting | Question, Persist |
//! | Searching | Timeout: 1.3 s late | Following | Heartbeat, Question, State |
//! | Searching | Timeouts for 1.3 s | same | Heartbeat, Question |
//! | Promoting | Heartbeat: claim of the leader | same | State |
//! | Promoting | Persisted | Serving | Claim, State |
//! | Promoting | Timeout | same | Heartbeat |
//! | Promoting | Timeout: 1.3 s late | same | Heartbeat, Question, State |
//! | Promoting | Timeouts for 1.3 s | same | Heartbeat |
//! | Following, Searching, Promoting | Heartbeat: higher claim | Following | Persist, Heartbeat, State |
//! | Following, Searching, Promoting | Stop | Stopped | Leave, State |
//! | Serving | Timeout | same | Claim |
//! | Serving | Timeouts for 1.3 s | same | Claim |
//! | Serving | Timeout: 1.3 s late | Rechecking | Question, Heartbeat, DialSeeds |
//! | Rechecking | Timeout: 1.3 s late | same | Question, Heartbeat, DialSeeds |
//! | Rechecking | Timeouts for 1.3 s | Searching | Heartbeat, DialSeeds, State |
//! | Rechecking | Answer: obeys | Serving | - |
//! | Rechecking | Answer: higher claim | Searching | State |
//! | Rechecking | Heartbeat: claim of the leader | Searching | Resign, Yield, HandOver, State |
//! | Serving, Rechecking | Heartbeat: higher claim | Following | Yield, HandOver, Persist, Heartbeat, State |
//! | Serving, Rechecking | Heartbeat: larger coverage | Searching | Resign, Yield, HandOver, State |
//! | Serving, Rechecking | Resign: to this sensor | same | Persist |
//! | Serving, Rechecking | Stop | Stopped | Resign, Leave, State |
//! | Searching, Promoting, Serving, Rechecking | Redirect | same | Connect |
//! | Searching, Promoting, Serving, Rechecking | Disconnected: member | same | Connect |
//! | all but Stopped | Disconnected: leader | same | Connect |
//! | all but Stopped | Connected | same | Heartbeat |
//! | all but Stopped | Question | same | Answer |
//! | Stopped | Connected | same | Disconnect |
//! | Stopped | Stop | same | Leave |
//!
//! # Rules
//!
//! * **Star** (`node::connections`): every sensor has links to the representative and its standbys;
//!   heartbeats go both directions over each link (`node::heartbeats`), so the standbys know which sensors
//!   are reachable before they are needed.
//! * **Suspicion** (`node::candidate`): 1.2 s of silence, stretched by own lag and loss (`health`) and by
//!   what the leader reports of its own. A candidate asks its reachable peers and stands only if half of them
//!   lost the leader too, or the leader resigned, and if no peer that hears it represents the domain already.
//!   Each next place in the order (`succession`) waits a second more; a sensor that has no table of the
//!   domain yet and hears fewer peers than the leader covered stands last.
//! * **Fencing** (`terms`): a promotion takes a term above all that were seen, and uses it once it is on
//!   disk. A sensor obeys the highest claim it accepted; in one round terms are equal only for one pair of
//!   keys in a million ([`wire::membership::Term`]), and then the key decides.
//! * **Lease** (`lease`): a representative that did not run for most of the suspicion does not serve until
//!   more than half of its peers confirm it.
//! * **Healing** (`node::claims`, `coverage`): of two representatives that meet, the one that covers fewer
//!   sensors resigns to the other, which raises its term above both and so changes nothing for its sensors;
//!   at equal coverage the lower term yields. Coverage that replaces another representative is counted
//!   strictly: sensors heard within the suspicion, whatever stretches the timers, and, right after a
//!   promotion, the acknowledgements that are expected. So a host that was cut off and served itself under a
//!   higher term does not take the domain with it when it returns. The one that yields hands over its table
//!   and, through [`Output::HandOver`], what the reporting layer stores.
//! * **Stability** (`cool_off`, `leadership`): an incumbent stays; only a higher priority set by the operator
//!   replaces it, after ten minutes. A sensor that lost the role stands last for a minute, doubling to ten,
//!   if others may stand, and after ten seconds of silence if no other may: a crash is never waited out.
//!
//! Every number is in [`Config`]. Not here: the table of members (`membership`), certificates (the shell
//! passes each peer's [`crate::membership::Profile`]), sockets and disks.

mod candidacy;
mod config;
mod cool_off;
mod counters;
mod coverage;
mod dialer;
mod event;
mod health;
mod leader;
mod leadership;
mod lease;
mod link;
mod links;
mod local_sensor;
mod node;
mod outbox;
mod roster;
mod succession;
mod terms;
mod timers;

pub use config::{Config, Mechanisms};
pub use counters::Figures;
pub use event::{Input, Output, Persisted, Phase, Role, State};
pub use local_sensor::Me;
pub use node::Node;
pub use timers::Timer;
