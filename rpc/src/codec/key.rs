//! The key of a map, given to a sink as the name of a member.
//!
//! Pure. Rule: a key is one text or one whole number; what else is given is an error, and of no use to a reader.

use super::Sink;

/// Takes one value as the name of the member that begins.
#[derive(Debug)]
pub(super) struct Key<'a, S> {
    sink: &'a mut S,
    nth: usize,
    /// What was given that no name is made of.
    refused: Option<&'static str>,
}

impl<'a, S: Sink> Key<'a, S> {
    /// Of the member of `sink` that is the `nth` from 0.
    pub(super) fn new(sink: &'a mut S, nth: usize) -> Key<'a, S> {
        Key { sink, nth, refused: None }
    }

    /// The key is complete; else what it was.
    pub(super) fn end(self) -> Result<(), &'static str> {
        self.refused.map_or(Ok(()), Err)
    }

    fn refuse(&mut self, kind: &'static str) {
        self.refused.get_or_insert(kind);
    }
}

impl<S: Sink> Sink for Key<'_, S> {
    fn text(&mut self, value: &str) {
        self.sink.begin_member(self.nth, value);
    }

    fn int(&mut self, value: i64) {
        self.text(itoa::Buffer::new().format(value));
    }

    fn uint(&mut self, value: u64) {
        self.text(itoa::Buffer::new().format(value));
    }

    fn nil(&mut self) {
        self.refuse("nil");
    }

    fn boolean(&mut self, _: bool) {
        self.refuse("a boolean");
    }

    fn double(&mut self, _: f64) {
        self.refuse("a number with a fraction");
    }

    fn bytes(&mut self, _: &[u8]) {
        self.refuse("bytes");
    }

    fn begin_array(&mut self) {
        self.refuse("an array");
    }

    fn begin_structure(&mut self) {
        self.refuse("a structure");
    }

    fn begin_item(&mut self, _: usize) {
        self.refuse("an array");
    }

    fn begin_member(&mut self, _: usize, _: &str) {
        self.refuse("a structure");
    }

    fn begin_field(&mut self, _: usize, _: &'static str) {
        self.refuse("a structure");
    }

    fn end_array(&mut self) {}

    fn end_member(&mut self) {}

    fn end_structure(&mut self) {}
}
