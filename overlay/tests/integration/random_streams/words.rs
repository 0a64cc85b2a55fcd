//! Generator of the bytes: valid messages of each protocol, changed ones, and random bytes.
//!
//! Rule: the same seed generates the same bytes.

use crate::papers::{self, domain};
use overlay::identity::key::Key;
use overlay::net::handle::Answer;
use overlay::net::hello::{Hello, VERSION, Verdict};
use overlay::net::protocol::Protocol;
use serde::ser::{Serialize, SerializeTuple as _, Serializer};
use wire::at_end::AtEnd;
use wire::bytes::Borrowed;
use wire::codec;
use wire::credential::Chain;
use wire::entering::{Hash, Question};
use wire::id::PeerKey;
use wire::query;

/// Pseudo-random numbers from a seed (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn at(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len.max(1) as u64)).expect("below a length")
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    pub(crate) fn bytes_32(&mut self) -> [u8; 32] {
        self.bytes(32).try_into().expect("32")
    }

    /// Change the bytes one to four times: flip bits, remove, double or insert a piece, or cut off the end.
    fn changed(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..=self.below(4) {
            let at = self.at(bytes.len());
            let to = (at + self.at(16)).min(bytes.len());
            match self.below(6) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..to)),
                2 => {
                    let piece = bytes[at..to].to_vec();
                    bytes.splice(at..at, piece);
                }
                3 => {
                    let piece = self.bytes(to - at);
                    bytes.splice(at..at, piece);
                }
                // The byte may be a length or a variant's number.
                4 if !bytes.is_empty() => bytes[at] = 0xff,
                _ if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                _ => {}
            }
        }
        bytes
    }
}

/// Bytes that are put into a frame as they are.
struct Raw<'a>(&'a [u8]);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        self.0.iter().try_for_each(|byte| tuple.serialize_element(byte))?;
        tuple.end()
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    codec::encode(&Raw(body), &mut frame).expect("no longer than a frame may be");
    frame
}

fn packed(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("plain data")
}

pub(crate) fn question(body: &[u8]) -> Vec<u8> {
    framed(&packed(&Borrowed(body)))
}

pub(crate) fn is_welcome(heard: &[u8]) -> bool {
    matches!(codec::decode::<Verdict>(heard), Ok(Some((Verdict::Welcome, _))))
}

pub(crate) fn answer(heard: &[u8]) -> Answer {
    codec::decode(heard).expect("a frame").expect("whole").0
}

/// Keys and certificate of the proxy, from which the messages are made.
pub(crate) struct Words {
    root: PeerKey,
    proxy: Key,
    chain: Chain,
}

impl Words {
    pub(crate) fn new(root: &Key, proxy: &Key) -> Words {
        Words { root: root.peer(), proxy: proxy.clone(), chain: papers::chain(root, proxy) }
    }

    pub(crate) fn root(&self) -> PeerKey {
        self.root
    }

    pub(crate) fn chain(&self) -> Chain {
        self.chain.clone()
    }

    /// The hello of a visitor, in its frame.
    pub(crate) fn hello(&self, visitor: PeerKey) -> Vec<u8> {
        framed(&self.hello_body(visitor))
    }

    fn hello_body(&self, visitor: PeerKey) -> Vec<u8> {
        let shown = papers::visa(&self.proxy, &self.chain, visitor);
        // The first byte distinguishes a visa from a chain.
        let proof = [vec![2], packed(&shown)].concat();
        let time = AtEnd(Some(overlay::clock::calendar()));
        packed(&Hello { version: VERSION, start: 7, program: "visperf".to_owned(), proof, time })
    }

    /// A valid message of this protocol, without its frame.
    fn real(&self, protocol: Protocol, speaker: PeerKey, random: &mut Random) -> Vec<u8> {
        let body = match protocol {
            // Another peer's visa, or another's certificate.
            Protocol::Hello if random.below(2) == 0 => return self.hello_body(PeerKey(random.bytes_32())),
            Protocol::Hello => {
                let proof = packed(&Some(Box::new(self.chain.clone())));
                let time = AtEnd((random.below(2) == 0).then(overlay::clock::calendar));
                return packed(&Hello {
                    version: VERSION,
                    start: 7,
                    program: "visperf".to_owned(),
                    proof,
                    time,
                });
            }
            // Its first message.
            Protocol::Punch => return vec![0],
            Protocol::Enter if random.below(2) == 0 => {
                let nonce = random.bytes_32();
                packed(&Question::Begin { account: "ana".to_owned(), hash: Hash::Sha256, nonce })
            }
            Protocol::Enter => packed(&Question::Prove { proof: random.bytes(32), domain: domain() }),
            Protocol::Query | Protocol::Queries => packed(&query::Question {
                method: "domain.hosts".into(),
                params: vec![0],
                time_left_ms: 1000,
                hops_left: 1,
                form: None,
                account: None,
                viewer: query::Viewer::Anonymous,
            }),
            Protocol::Join | Protocol::Control | Protocol::Directory | Protocol::Report => packed(&speaker),
        };
        packed(&Borrowed(&body))
    }

    /// Bytes of an attacker by this protocol.
    pub(crate) fn of_protocol(&self, protocol: Protocol, speaker: PeerKey, random: &mut Random) -> Vec<u8> {
        match random.below(5) {
            0 => {
                let len = random.at(300);
                random.bytes(len)
            }
            // A frame that announces the greatest length, and contains little.
            1 => [u32::MAX.to_le_bytes().to_vec(), random.bytes(12)].concat(),
            2 => {
                let len = protocol.question_len_max_bytes().min(40_000);
                framed(&random.bytes(len))
            }
            3 => {
                let real = self.real(protocol, speaker, random);
                framed(&random.changed(real))
            }
            _ => {
                let real = framed(&self.real(protocol, speaker, random));
                random.changed(real)
            }
        }
    }

    /// The same by the relay protocol: a length, and a request for a registration or a circuit (protobuf).
    pub(crate) fn of_circuit(&self, random: &mut Random) -> Vec<u8> {
        let asks: &[u8] = if random.below(2) == 0 { &[2, 0x08, 0] } else { &[6, 0x08, 1, 0x12, 2, 0x0a, 0] };
        match random.below(3) {
            0 => {
                let len = random.at(300);
                random.bytes(len)
            }
            1 => random.changed(asks.to_vec()),
            _ => asks.to_vec(),
        }
    }
}
