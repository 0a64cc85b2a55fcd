//! Tests of a store on a disk.

mod copies;
mod damage;
mod kill;
mod limits;
mod made;
mod truth;
mod year;
