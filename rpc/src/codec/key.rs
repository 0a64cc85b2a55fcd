//! Serializer of a map key, which is the name of a member.
//!
//! Pure. Rule: a key is one text or one whole number; any other key is an error.

use super::Sink;

/// Serializes one value as the name of the next member.
#[derive(Debug)]
pub(super) struct Key<'a, S> {
    sink: &'a mut S,
    nth: usize,
    /// Kind of a value that cannot be a name.
    refused: Option<&'static str>,
}

impl<'a, S: Sink> Key<'a, S> {
    /// For the member number `nth` (from 0) of `sink`.
    pub(super) fn new(sink: &'a mut S, nth: usize) -> Key<'a, S> {
        Key { sink, nth, refused: None }
    }

    /// Finish the key; the error is the kind of the invalid value.
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
