//! Queue of a subscription: a stream of numbered entries that wait to be taken, bounded in bytes and in
//! number.
//!
//! Pure. Invariants: every number is used once and in order; the entries that are taken cover all numbers,
//! including those of entries that were left out; when the queue is full, the oldest entries are dropped and
//! appear in the stream as missed. All bytes of a queue are in one block: thousands of small blocks among
//! others that live longer would leave gaps that the allocator cannot return.

use std::collections::VecDeque;
use wire::channel::stream::{Body, Entry};

/// Most entries that wait: eight seconds at the fastest rate. Each also takes memory besides its bytes.
pub const ENTRIES_MAX: usize = 8192;
/// Most records in one answer, unless its first entry alone has more: a larger answer may be too large to
/// send.
pub const TAKEN_RECORDS_MAX: usize = wire::channel::stream::RECORDS_MAX;
/// Memory charged for each entry besides its bytes.
const OVERHEAD_BYTES: usize = 48;

#[derive(Debug)]
pub struct Queue {
    items: VecDeque<Item>,
    /// Packed entries, one after the other.
    bytes: VecDeque<u8>,
    len_bytes: usize,
    max_bytes: usize,
    /// Number of the next entry.
    next: u64,
    missed_total: u64,
}

#[derive(Debug)]
enum Item {
    /// An encoded entry: most do not wait long, and encoded they are a quarter of the size.
    Packed {
        number: u64,
        records: usize,
        len_bytes: usize,
    },
    Missed {
        first: u64,
        count: u64,
        revision: u64,
        at_ns: u64,
    },
}

impl Item {
    fn len_bytes(&self) -> usize {
        match self {
            Item::Packed { len_bytes, .. } => len_bytes + OVERHEAD_BYTES,
            Item::Missed { .. } => OVERHEAD_BYTES,
        }
    }

    /// Length of its part in the queue's block.
    fn packed_bytes(&self) -> usize {
        if let Item::Packed { len_bytes, .. } = self { *len_bytes } else { 0 }
    }
}

/// Entries that were taken; decoded only where there is time for it.
#[derive(Debug, Default)]
pub struct EntryBatch {
    items: Vec<Item>,
    bytes: Vec<u8>,
}

impl Queue {
    /// Creates an empty queue of at most so many bytes.
    #[must_use]
    pub fn new(max_bytes: usize) -> Queue {
        Queue {
            items: VecDeque::new(),
            bytes: VecDeque::new(),
            len_bytes: 0,
            max_bytes,
            next: 0,
            missed_total: 0,
        }
    }

    /// Changes the bound; the oldest entries beyond it are missed.
    pub fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        self.make_room();
        self.shrink();
    }

    /// Number of the next entry.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Number of items that wait; consecutive missed entries are one item.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes that wait, overhead included.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Entries left out since the start.
    #[must_use]
    pub fn missed_total(&self) -> u64 {
        self.missed_total
    }

    /// Appends an entry with the next number; returns its size in bytes.
    pub fn push(&mut self, revision: u64, at_ns: u64, body: Body) -> usize {
        let records = body.records();
        let entry = Entry { number: self.next, revision, at_ns, body };
        let bytes = postcard::to_stdvec(&entry).expect("a value of plain types is written into memory");
        self.next += 1;
        let len_bytes = bytes.len();
        self.append(&bytes);
        self.add(Item::Packed { number: entry.number, records, len_bytes });
        self.make_room();
        len_bytes
    }

    /// Counts an entry as missed at the end of the queue.
    pub fn miss(&mut self, revision: u64, at_ns: u64) {
        self.miss_many(revision, at_ns, 1);
    }

    /// Counts `more` entries as missed at the end of the queue.
    pub fn miss_many(&mut self, revision: u64, at_ns: u64, more: u64) {
        let first = self.next;
        self.missed_total += more;
        self.next += more;
        if let Some(Item::Missed { count, .. }) = self.items.back_mut() {
            *count += more;
        } else if more > 0 {
            self.add(Item::Missed { first, count: more, revision, at_ns });
            self.make_room();
        }
    }

    /// Takes the oldest entries, at most `limit`.
    pub fn take(&mut self, limit: usize) -> EntryBatch {
        let mut records_left = TAKEN_RECORDS_MAX;
        let mut taken = Vec::new();
        while let Some(item) = self.items.front().filter(|_| taken.len() < limit) {
            if let Item::Packed { records, .. } = item {
                if *records > records_left && !taken.is_empty() {
                    break;
                }
                records_left = records_left.saturating_sub(*records);
            }
            self.len_bytes -= item.len_bytes();
            taken.extend(self.items.pop_front());
        }
        let packed: usize = taken.iter().map(Item::packed_bytes).sum();
        let bytes = self.take_bytes(packed);
        self.shrink();
        EntryBatch { items: taken, bytes }
    }

    /// Appends bytes. The capacity grows by an eighth: doubled, a queue would take twice the memory that it
    /// is charged for.
    fn append(&mut self, packed: &[u8]) {
        let len = self.bytes.len();
        let needed = len + packed.len();
        if needed > self.bytes.capacity() {
            self.bytes.reserve_exact(needed + needed / 8 - len);
        }
        self.bytes.extend(packed);
    }

    /// Removes the first `count` bytes.
    fn take_bytes(&mut self, count: usize) -> Vec<u8> {
        let mut taken = Vec::with_capacity(count);
        let (front, back) = self.bytes.as_slices();
        let of_front = count.min(front.len());
        taken.extend_from_slice(&front[..of_front]);
        taken.extend_from_slice(&back[..count - of_front]);
        self.bytes.drain(..count);
        taken
    }

    /// Frees the capacity of a queue that was long.
    fn shrink(&mut self) {
        if self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to(self.bytes.len() + self.bytes.len() / 8);
            self.items.shrink_to(self.items.len() + self.items.len() / 8);
        }
    }

    fn add(&mut self, item: Item) {
        self.len_bytes += item.len_bytes();
        self.items.push_back(item);
    }

    /// Drops the oldest entries until the rest fits. They become one missed item at the front.
    fn make_room(&mut self) {
        let mut missed: Option<(u64, u64)> = None;
        while self.len_bytes > self.max_bytes || self.items.len() >= ENTRIES_MAX {
            let Some(item) = self.items.pop_front() else { break };
            self.len_bytes -= item.len_bytes();
            self.bytes.drain(..item.packed_bytes());
            let (first, more) = match item {
                Item::Packed { number, .. } => {
                    self.missed_total += 1;
                    (number, 1)
                }
                Item::Missed { first, count, .. } => (first, count),
            };
            missed = Some(missed.map_or((first, more), |(first, count)| (first, count + more)));
        }
        let Some((first, count)) = missed else { return };
        if let Some(Item::Missed { first: next_first, count: next_count, .. }) = self.items.front_mut() {
            (*next_first, *next_count) = (first, *next_count + count);
        } else {
            let item = Item::Missed { first, count, revision: 0, at_ns: 0 };
            self.len_bytes += item.len_bytes();
            self.items.push_front(item);
        }
    }
}

impl EntryBatch {
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Decodes the entries, the oldest first.
    pub fn entries(self) -> impl Iterator<Item = Entry> {
        let EntryBatch { items, bytes } = self;
        let mut begins = 0;
        items.into_iter().map(move |item| match item {
            Item::Packed { len_bytes, .. } => {
                let packed = &bytes[begins..begins + len_bytes];
                begins += len_bytes;
                postcard::from_bytes(packed).expect("what was packed here is unpacked")
            }
            Item::Missed { first, count, revision, at_ns } => {
                Entry { number: first, revision, at_ns, body: Body::Missed(count) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::channel::stream::Record;

    fn sample(records: usize) -> Body {
        Body::Sample {
            sweep: 1,
            gone: None,
            records: vec![Record::default(); records],
            left_out: 0,
            figures: Vec::new(),
        }
    }

    /// Checks that the entries cover the numbers from `from` on; returns the number after them, and how many
    /// were missed.
    fn cover(taken: EntryBatch, mut from: u64) -> (u64, u64) {
        let mut missed = 0;
        for entry in taken.entries() {
            assert_eq!(entry.number, from);
            from += match entry.body {
                Body::Missed(count) => {
                    missed += count;
                    count
                }
                Body::Sample { .. }
                | Body::Signal { .. }
                | Body::Quarantined(_)
                | Body::Readings { .. }
                | Body::Event(_)
                | Body::Call(_)
                | Body::Figures(_) => 1,
            };
        }
        (from, missed)
    }

    #[test]
    fn a_full_queue_leaves_out_the_oldest_and_says_how_many() {
        let mut queue = Queue::new(4096);
        for _ in 0..1000 {
            queue.push(0, 1, sample(3));
            assert!(queue.len_bytes() <= 4096 + OVERHEAD_BYTES, "{}", queue.len_bytes());
        }
        let (next, missed) = cover(queue.take(usize::MAX), 0);
        assert_eq!((next, missed), (1000, queue.missed_total()));
        assert!((900..1000).contains(&missed), "{missed}");
        assert_eq!((queue.len(), queue.len_bytes()), (0, 0));
    }

    #[test]
    fn a_queue_takes_little_more_memory_than_it_is_charged_for() {
        let mut queue = Queue::new(1 << 20);
        let full = |queue: &Queue| queue.missed_total() > 0;
        while !full(&queue) {
            queue.push(0, 1, sample(3));
            let (len, room) = (queue.bytes.len(), queue.bytes.capacity());
            assert!(room <= len + len / 4 + 256, "{room} for {len}");
        }
        let waiting = queue.len();
        queue.take(waiting / 2 + waiting / 4);
        assert!(queue.bytes.capacity() <= queue.len_bytes() * 2, "{}", queue.bytes.capacity());
        while !queue.take(waiting).is_empty() {}
        assert_eq!((queue.bytes.capacity(), queue.items.capacity()), (0, 0));
    }

    #[test]
    fn many_entries_are_too_many_however_small() {
        let mut queue = Queue::new(64 << 20);
        for _ in 0..2 * ENTRIES_MAX {
            queue.push(0, 1, Body::Signal { is_true: true, value: 1.0 });
            assert!(queue.len() <= ENTRIES_MAX);
        }
        let (next, missed) = cover(queue.take(usize::MAX), 0);
        assert_eq!((next, missed), (2 * ENTRIES_MAX as u64, queue.missed_total()));
        assert!(missed >= ENTRIES_MAX as u64);
    }

    #[test]
    fn what_is_left_out_stands_where_it_was() {
        let mut queue = Queue::new(1 << 20);
        queue.push(0, 1, sample(1));
        queue.miss(0, 2);
        queue.miss(0, 3);
        queue.push(0, 4, sample(1));
        let bodies: Vec<_> =
            queue.take(usize::MAX).entries().map(|entry| (entry.number, entry.at_ns, entry.body)).collect();
        assert_eq!(bodies, [(0, 1, sample(1)), (1, 2, Body::Missed(2)), (3, 4, sample(1))]);
    }

    #[test]
    fn an_answer_is_bounded_in_records_too() {
        let mut queue = Queue::new(8 << 20);
        for _ in 0..3 {
            queue.push(0, 1, sample(TAKEN_RECORDS_MAX / 2));
        }
        assert_eq!(queue.take(usize::MAX).len(), 2);
        assert_eq!(queue.take(usize::MAX).len(), 1);
        queue.push(0, 1, sample(TAKEN_RECORDS_MAX + 1));
        assert_eq!(queue.take(1).len(), 1, "a large one alone");
    }

    proptest::proptest! {
        #[test]
        fn no_number_is_lost_whatever_happens(steps in proptest::collection::vec(0..5_u8, 0..400)) {
            let (mut queue, mut from, mut missed) = (Queue::new(1000), 0, 0);
            for step in steps {
                match step {
                    0 => queue.miss(0, 1),
                    1 => queue.set_max_bytes(600),
                    2 => queue.set_max_bytes(2000),
                    3 => {
                        let (next, more) = cover(queue.take(3), from);
                        (from, missed) = (next, missed + more);
                    }
                    _ => {
                        queue.push(0, 1, sample(1));
                    }
                }
            }
            let (next, more) = cover(queue.take(usize::MAX), from);
            proptest::prop_assert_eq!((next, missed + more), (queue.next(), queue.missed_total()));
        }
    }
}
