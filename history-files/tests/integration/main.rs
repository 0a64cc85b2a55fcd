//! Tests of files in a folder, read back as other programs read them.

mod destination;
mod made;
mod reading;
mod tables;
