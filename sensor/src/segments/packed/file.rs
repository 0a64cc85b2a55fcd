//! A compressed segment as a file: it reads as the frames of the segment.
//!
//! Shell. A block is decoded at a time, and none is cached: [`super::super::window::Window`] holds the block
//! that it reads. The file is opened for each read, as a journal has hundreds; once it is deleted, its blocks
//! read as damaged ones. Not here: writing ([`super::pack`]).

use super::Codec;
use super::directory::{Block, Directory, END_LEN_BYTES, Entry, Form, MAGIC};
use crate::segments::disk::{Disk, Stored};
use crate::segments::window::Window;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use wire::codec::{BODY_LEN_MAX_BYTES, HEADER_LEN_BYTES, decode};

/// Bytes of [`MAGIC`] that a compressed segment has at least: damage to the others costs nothing. A frame
/// has the length of a frame there, which is no text, so four at most.
const MATCHING_MIN: usize = 6;

/// A compressed segment.
pub struct PackedFile {
    disk: Arc<dyn Disk>,
    name: String,
    codec: &'static dyn Codec,
    directory: Mutex<Option<Arc<Directory>>>,
}

/// Opens a segment of either form.
///
/// # Errors
/// Any I/O error.
pub fn open(disk: &Arc<dyn Disk>, name: &str, codec: &'static dyn Codec) -> io::Result<Arc<dyn Stored>> {
    let file = disk.open(name)?;
    let mut start = [0; MAGIC.len()];
    let got = file.read_at(&mut start, 0)?;
    let matching = start[..got].iter().zip(&MAGIC).filter(|(found, expected)| found == expected).count();
    if matching < MATCHING_MIN {
        return Ok(file);
    }
    let (disk, name) = (Arc::clone(disk), name.to_owned());
    Ok(Arc::new(PackedFile { disk, name, codec, directory: Mutex::default() }))
}

impl PackedFile {
    /// Length of the file on the disk, in bytes.
    ///
    /// # Errors
    /// Any I/O error.
    pub fn stored_len(&self) -> io::Result<u64> {
        self.file()?.map_or(Ok(0), |file| file.size())
    }

    /// Opens the file; `None` if the segment was deleted.
    fn file(&self) -> io::Result<Option<Arc<dyn Stored>>> {
        match self.disk.open(&self.name) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the directory; if it is damaged, one that is made from the blocks.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn directory(&self) -> io::Result<Arc<Directory>> {
        let mut directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = &*directory {
            return Ok(Arc::clone(directory));
        }
        let Some(file) = self.file()? else { return Ok(Arc::default()) };
        let read = match stored_directory(&*file)? {
            Some(read) => read,
            None => rebuild(&file)?,
        };
        let read = Arc::new(read);
        *directory = Some(Arc::clone(&read));
        Ok(read)
    }

    /// Returns the block that holds this offset of the segment: its start, and its frames. A damaged block
    /// is one damaged frame. `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn block(&self, at: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
        let directory = self.directory()?;
        let Some(entry) = directory.block_at(at) else {
            // The gap that a lost block leaves in a directory that was made again.
            let next = directory.entries.iter().find(|entry| entry.extent.at > at);
            return Ok(next.map(|next| (at, damaged(part(next.extent.at - at)))));
        };
        let len = u64::from(entry.extent.len);
        let frames = self.unpack(entry)?.filter(|frames| frames.len() as u64 == len);
        Ok(Some((entry.extent.at, frames.unwrap_or_else(|| damaged(len)))))
    }

    /// Returns a block as it is encoded; `None` if it is damaged.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn encoded(&self, entry: &Entry) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.file()? else { return Ok(None) };
        let bytes = read(&*file, entry.place, entry.stored as usize)?;
        let block = decode::<Block<&[u8]>>(&bytes).ok().flatten().map(|(block, _)| block);
        Ok(block.filter(|block| block.extent == entry.extent).map(|block| block.data.to_vec()))
    }

    fn unpack(&self, entry: &Entry) -> io::Result<Option<Vec<u8>>> {
        let Some(data) = self.encoded(entry)? else { return Ok(None) };
        Ok(match entry.extent.form {
            Form::Own => self.codec.unpack(&data),
            Form::General => zstd::bulk::decompress(&data, entry.extent.len as usize).ok(),
        })
    }
}

fn read(file: &dyn Stored, at: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len.min(BODY_LEN_MAX_BYTES + HEADER_LEN_BYTES)];
    let got = file.read_at(&mut bytes, at)?;
    bytes.truncate(got);
    Ok(bytes)
}

fn stored_directory(file: &dyn Stored) -> io::Result<Option<Directory>> {
    let Some(end_at) = file.size()?.checked_sub(END_LEN_BYTES as u64) else { return Ok(None) };
    let end = read(file, end_at, END_LEN_BYTES)?;
    let Some((at, MAGIC)) = end
        .split_first_chunk()
        .and_then(|(at, magic)| Some((u64::from_le_bytes(*at), <[u8; MAGIC.len()]>::try_from(magic).ok()?)))
    else {
        return Ok(None);
    };
    let len = usize::try_from(end_at.saturating_sub(at)).unwrap_or(usize::MAX);
    let bytes = read(file, at, len)?;
    let directory = decode::<Directory>(&bytes).ok().flatten().map(|(directory, _)| directory);
    Ok(directory.filter(Directory::is_ordered))
}

/// Makes a directory from the blocks that can be read.
fn rebuild(file: &Arc<dyn Stored>) -> io::Result<Directory> {
    let mut window = Window::new(Arc::clone(file), MAGIC.len() as u64, u64::MAX);
    let mut entries = Vec::new();
    while let Some((place, frame)) = window.frame().map_err(io::Error::other)? {
        let Ok(Some((block, _))) = decode::<Block<&[u8]>>(frame) else { continue };
        let stored = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        entries.push(Entry { extent: block.extent, place, stored, summary: None });
    }
    let directory = Directory { entries, legend: None };
    if directory.is_ordered() {
        Ok(directory)
    } else {
        Err(io::Error::new(ErrorKind::InvalidData, "the blocks of a segment contradict each other"))
    }
}

/// The part of a gap that one frame can be.
fn part(gap: u64) -> u64 {
    let most = BODY_LEN_MAX_BYTES as u64;
    if gap > most { most / 2 } else { gap }
}

/// A damaged frame of this length.
fn damaged(len: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    if let Some(body) = bytes.len().checked_sub(HEADER_LEN_BYTES) {
        let checksum = !crc32fast::hash(&bytes[HEADER_LEN_BYTES..]);
        bytes[..4].copy_from_slice(&u32::try_from(body).unwrap_or(u32::MAX).to_le_bytes());
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    }
    bytes
}

impl Stored for PackedFile {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            let from = at + done as u64;
            let Some((start, frames)) = self.block(from)? else { break };
            let rest = &frames[usize::try_from(from - start).unwrap_or(usize::MAX).min(frames.len())..];
            let len = rest.len().min(into.len() - done);
            into[done..done + len].copy_from_slice(&rest[..len]);
            done += len;
        }
        Ok(done)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.directory()?.len_bytes())
    }

    fn sync(&self) -> io::Result<()> {
        // It was durable before it had its name.
        Ok(())
    }

    fn packed(&self) -> Option<&PackedFile> {
        Some(self)
    }
}
