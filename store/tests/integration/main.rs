//! Tests of a store on a disk.

mod compaction;
mod copies;
mod daily;
mod daily_copy;
mod damage;
mod elsewhere;
mod kill;
mod limits;
mod made;
mod pages;
mod truth;
mod year;
