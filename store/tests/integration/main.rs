//! Tests of a store on a disk.

mod damage;
mod limits;
mod made;
mod truth;
