//! Messages of the process events connector: encoder of the subscription, decoder of the events.
//!
//! Pure. Formats: linux/netlink.h, linux/connector.h and linux/cn_proc.h, in the byte order of the machine.
//! Rule: only events of the main thread of a process count; starts and ends of other threads are ignored.
//! Left out: changes of user, session and name.

/// A decoded event; times are in nanoseconds on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Answer to the subscription: 0, or an error number.
    Answer(u32),
    /// A process started.
    Fork {
        pid: u32,
        /// Process id of the parent.
        parent: u32,
        /// When it started.
        at_ns: u64,
    },
    /// A process executed a program.
    Exec {
        /// Process id.
        pid: u32,
    },
    /// A process ended.
    Exit {
        pid: u32,
        /// Exit status, as of wait(2).
        code: u32,
        /// When it ended.
        at_ns: u64,
    },
}

/// Length of the netlink and connector headers, before the event.
const HEADS_LEN: usize = 16 + 20;
/// Index and value that identify the connector of process events.
const OF_PROCESSES: (u32, u32) = (1, 1);
/// Operation that subscribes; 2 unsubscribes.
const LISTEN: u32 = 1;
/// Type of a netlink message with a single part.
const DONE: u16 = 3;

/// Encodes the subscription.
#[must_use]
pub fn listen() -> Vec<u8> {
    let len = u32::try_from(HEADS_LEN + size_of_val(&LISTEN)).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEADS_LEN + size_of_val(&LISTEN));
    bytes.extend(len.to_ne_bytes());
    bytes.extend(DONE.to_ne_bytes());
    // Flags, sequence, sender: none.
    bytes.extend([0; 10]);
    bytes.extend(OF_PROCESSES.0.to_ne_bytes());
    bytes.extend(OF_PROCESSES.1.to_ne_bytes());
    // Sequence and acknowledgement: none.
    bytes.extend([0; 8]);
    bytes.extend(4_u16.to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(LISTEN.to_ne_bytes());
    bytes
}

/// Decodes a datagram; `None` if it is not needed, or is not such a message.
#[must_use]
pub fn read(datagram: &[u8]) -> Option<Message> {
    let word = |at: usize| datagram.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    if (word(16)?, word(20)?) != OF_PROCESSES {
        return None;
    }
    let at_ns = u64::from_ne_bytes(datagram.get(HEADS_LEN + 8..HEADS_LEN + 16)?.try_into().ok()?);
    let data = |index: usize| word(HEADS_LEN + 16 + 4 * index);
    match word(HEADS_LEN)? {
        0 => Some(Message::Answer(data(0)?)),
        1 => {
            let (parent, thread, pid) = (data(1)?, data(2)?, data(3)?);
            (thread == pid).then_some(Message::Fork { pid, parent, at_ns })
        }
        2 => Some(Message::Exec { pid: data(1)? }),
        0x8000_0000 => {
            let (thread, pid, code) = (data(0)?, data(1)?, data(2)?);
            (thread == pid).then_some(Message::Exit { pid, code, at_ns })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(what: u32, at_ns: u64, data: &[u32]) -> Vec<u8> {
        let mut bytes = listen()[..HEADS_LEN].to_vec();
        bytes.extend(what.to_ne_bytes());
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(at_ns.to_ne_bytes());
        bytes.extend(data.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.resize(HEADS_LEN + 40, 0);
        bytes
    }

    #[test]
    fn processes_are_reported_and_threads_are_not() {
        assert_eq!(read(&datagram(0, 1, &[13])), Some(Message::Answer(13)));
        let fork = Message::Fork { pid: 51, parent: 5, at_ns: 9 };
        assert_eq!(read(&datagram(1, 9, &[6, 5, 51, 51])), Some(fork));
        assert_eq!(read(&datagram(1, 9, &[6, 5, 52, 5])), None, "a thread of 5");
        assert_eq!(read(&datagram(2, 9, &[51, 51])), Some(Message::Exec { pid: 51 }));
        let exit = Message::Exit { pid: 51, code: 0x700, at_ns: 10 };
        assert_eq!(read(&datagram(0x8000_0000, 10, &[51, 51, 0x700, 17, 5, 5])), Some(exit));
        assert_eq!(read(&datagram(0x8000_0000, 10, &[52, 51, 0, 17, 5, 5])), None, "a thread of 51");
        assert_eq!(read(&datagram(4, 10, &[51, 51])), None, "a change of user");
    }

    #[test]
    fn what_is_cut_or_of_another_sender_is_nothing() {
        let whole = datagram(1, 9, &[6, 5, 51, 51]);
        for len in 0..HEADS_LEN + 32 {
            assert_eq!(read(&whole[..len]), None, "{len} bytes");
        }
        let mut other = whole.clone();
        other[16] ^= 1;
        assert_eq!(read(&other), None);
        assert_eq!(listen().len(), 40);
    }
}
