//! Key-value stores that take the same bytes: redb and fjall.
//!
//! Not here: the bytes (`trace`).

use crate::trace::Event;
use fjall::{CompressionType, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use redb::{Durability, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use std::path::Path;

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("history");
const HOST: u32 = 1;
const NEWEST: u8 = 0xfe;
const NAMES: u8 = 0xff;

/// A key: host, tier, start.
fn key(tier: u8, start: u64) -> Vec<u8> {
    [&HOST.to_be_bytes()[..], &[tier], &start.to_be_bytes()].concat()
}

/// What is to be done for an event: keys to insert, whether the newest samples go, whether to make it durable.
struct Change {
    insert: (Vec<u8>, Vec<u8>),
    is_seal: bool,
}

fn change(event: &Event, number: u64) -> Change {
    match event {
        Event::Names(bytes) => Change { insert: (key(NAMES, number), bytes.clone()), is_seal: false },
        Event::Block { tier, start, bytes } => {
            Change { insert: (key(*tier, *start), bytes.clone()), is_seal: *tier == 0 }
        }
        Event::Newest(bytes) => Change { insert: (key(NEWEST, number), bytes.clone()), is_seal: false },
    }
}

/// The content after these events.
pub(crate) fn content(events: &[Event]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut content = std::collections::BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        let change = change(event, number as u64);
        if change.is_seal {
            content.retain(|key: &Vec<u8>, _| key[4] != NEWEST);
        }
        content.insert(change.insert.0, change.insert.1);
    }
    content.into_iter().collect()
}

pub(crate) trait Engine {
    fn add(&mut self, event: &Event, number: u64);
    fn all(&self) -> Vec<(Vec<u8>, Vec<u8>)>;
    fn delete(&mut self, keys: &[Vec<u8>]);
    fn compact(&mut self);
}

pub(crate) fn open(name: &str, folder: &Path) -> Box<dyn Engine> {
    match name {
        "redb" => Box::new(Redb::open(folder, Durability::Immediate)),
        "redb-lazy" => Box::new(Redb::open(folder, Durability::None)),
        "fjall" => Box::new(Fjall::open(folder, None)),
        "fjall-small" => Box::new(Fjall::open(folder, Some((4 << 20, 1 << 20)))),
        _ => panic!("an unknown engine"),
    }
}

/// redb, each event a transaction.
struct Redb {
    db: redb::Database,
    /// Durability of what is not a block of samples.
    durability: Durability,
    newest: Vec<Vec<u8>>,
}

impl Redb {
    fn open(folder: &Path, durability: Durability) -> Redb {
        let db = redb::Database::builder().set_cache_size(4 << 20).create(folder.join("history.redb"));
        Redb { db: db.expect("opened"), durability, newest: Vec::new() }
    }
}

impl Engine for Redb {
    fn add(&mut self, event: &Event, number: u64) {
        let Change { insert: (key, value), is_seal } = change(event, number);
        let mut transaction = self.db.begin_write().expect("a transaction");
        transaction
            .set_durability(if is_seal { Durability::Immediate } else { self.durability })
            .expect("set");
        {
            let mut table = transaction.open_table(TABLE).expect("a table");
            if is_seal {
                for key in self.newest.drain(..) {
                    table.remove(&key[..]).expect("removed");
                }
            }
            table.insert(&key[..], &value[..]).expect("inserted");
        }
        transaction.commit().expect("committed");
        if key[4] == NEWEST {
            self.newest.push(key);
        }
    }

    fn all(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let transaction = self.db.begin_read().expect("a transaction");
        let Ok(table) = transaction.open_table(TABLE) else { return Vec::new() };
        let entries = table.iter().expect("entries").map(|entry| entry.expect("an entry"));
        entries.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())).collect()
    }

    fn delete(&mut self, keys: &[Vec<u8>]) {
        let transaction = self.db.begin_write().expect("a transaction");
        {
            let mut table = transaction.open_table(TABLE).expect("a table");
            for key in keys {
                table.remove(&key[..]).expect("removed");
            }
        }
        transaction.commit().expect("committed");
    }

    fn compact(&mut self) {
        self.db.compact().expect("compacted");
    }
}

/// fjall: blocks as separate values in one keyspace, the newest samples in another; each event a batch.
struct Fjall {
    db: fjall::Database,
    blocks: fjall::Keyspace,
    newest: fjall::Keyspace,
    unsealed: Vec<Vec<u8>>,
}

impl Fjall {
    /// `memtables`: greatest lengths of the tables in memory of blocks and of the newest samples.
    fn open(folder: &Path, memtables: Option<(u64, u64)>) -> Fjall {
        let db = fjall::Database::builder(folder).open().expect("opened");
        let options = |memtable: Option<u64>| {
            let options = KeyspaceCreateOptions::default();
            memtable.map_or_else(KeyspaceCreateOptions::default, |bytes| options.max_memtable_size(bytes))
        };
        let blocks = db.keyspace("blocks", || {
            let separate = KvSeparationOptions::default().compression(CompressionType::None);
            let separate = separate.file_target_size(1 << 20);
            options(memtables.map(|(bytes, _)| bytes)).with_kv_separation(Some(separate))
        });
        let newest = db.keyspace("newest", || options(memtables.map(|(_, bytes)| bytes)));
        let (blocks, newest) = (blocks.expect("a keyspace"), newest.expect("a keyspace"));
        Fjall { db, blocks, newest, unsealed: Vec::new() }
    }
}

impl Engine for Fjall {
    fn add(&mut self, event: &Event, number: u64) {
        let Change { insert: (key, value), is_seal } = change(event, number);
        let mut batch = self.db.batch().durability(Some(PersistMode::Buffer));
        if is_seal {
            for key in self.unsealed.drain(..) {
                batch.remove(&self.newest, key);
            }
            batch = batch.durability(Some(PersistMode::SyncData));
        }
        if key[4] == NEWEST {
            batch.insert(&self.newest, key.clone(), value);
            self.unsealed.push(key);
        } else {
            batch.insert(&self.blocks, key, value);
        }
        batch.commit().expect("committed");
    }

    fn all(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let entries = self.blocks.iter().chain(self.newest.iter());
        let pairs = entries.map(|guard| guard.into_inner().expect("an entry"));
        let mut all: Vec<_> = pairs.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        all.sort();
        all
    }

    fn delete(&mut self, keys: &[Vec<u8>]) {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        keys.iter().for_each(|key| batch.remove(&self.blocks, key.clone()));
        batch.commit().expect("committed");
    }

    fn compact(&mut self) {
        for keyspace in [&self.blocks, &self.newest] {
            keyspace.rotate_memtable_and_wait().expect("written");
            keyspace.major_compact().expect("compacted");
        }
    }
}
