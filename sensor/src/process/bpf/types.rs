//! The kernel's description of its types (BTF), cut down to those that the programs name.
//!
//! Pure: bytes in, bytes out, by the format of Documentation/bpf/btf.rst. A description has some hundred thousand types, of
//! which the programs need a few hundred; read whole, it takes the loader a tenth of a second and tens of megabytes that
//! the allocator keeps. Rule: every type keeps its number, as the kernel knows types by number; one that is not needed
//! becomes an empty declaration.
//! Not here: what is needed of them (the loader finds the fields).

/// What a description begins with, written by a machine of the same byte order.
const MAGIC: u16 = 0xeb9f;
/// Bytes of its head that are known; a longer one says where the types are all the same.
const HEAD_LEN: usize = 24;
/// Bytes of a type without what its kind adds.
const TYPE_LEN: usize = 12;
/// A declaration of a type that is defined nowhere.
const DECLARATION: u32 = 7;

/// The types named here, and all that they are made of, but not what they only point to; every other type is emptied.
/// `None` if this is no description that is understood.
#[must_use]
pub fn cut_down(description: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    let types = Types::read(description)?;
    let needed = types.needed(names)?;
    let mut out = Vec::with_capacity(description.len());
    out.extend_from_slice(description.get(..types.begin)?);
    for (number, place) in types.places.iter().enumerate() {
        if needed[number + 1] {
            out.extend_from_slice(description.get(place.0..place.1)?);
        } else {
            out.extend([0, DECLARATION << 24, 0].iter().flat_map(|word: &u32| word.to_ne_bytes()));
        }
    }
    let len = u32::try_from(out.len() - types.begin).ok()?;
    let strings = description.get(types.strings.0..types.strings.1)?;
    let at = u32::try_from(out.len() - types.head_len).ok()?;
    out.extend_from_slice(strings);
    out[12..16].copy_from_slice(&len.to_ne_bytes());
    out[16..20].copy_from_slice(&at.to_ne_bytes());
    Some(out)
}

/// Where everything is.
struct Types<'a> {
    bytes: &'a [u8],
    head_len: usize,
    /// Where the types begin.
    begin: usize,
    /// Where the names are, to their end.
    strings: (usize, usize),
    /// Each type to its end; the first has number 1.
    places: Vec<(usize, usize)>,
}

impl<'a> Types<'a> {
    fn read(bytes: &'a [u8]) -> Option<Types<'a>> {
        let word = |at: usize| word(bytes, at);
        if u16::from_ne_bytes(*bytes.first_chunk()?) != MAGIC || word(4)? < HEAD_LEN {
            return None;
        }
        let head_len = word(4)?;
        let begin = head_len.checked_add(word(8)?)?;
        let end = begin.checked_add(word(12)?)?;
        let strings = head_len.checked_add(word(16)?)?;
        let strings = (strings, strings.checked_add(word(20)?)?);
        if end > bytes.len() || strings.1 > bytes.len() {
            return None;
        }
        let (mut places, mut at) = (Vec::new(), begin);
        while at < end {
            let next = at + TYPE_LEN + added_len(word(at + 4)?)?;
            places.push((at, next));
            at = next;
        }
        (at == end).then_some(Types { bytes, head_len, begin, strings, places })
    }

    /// Which types are needed, by number.
    fn needed(&self, names: &[&str]) -> Option<Vec<bool>> {
        let mut needed = vec![false; self.places.len() + 1];
        let mut open: Vec<usize> = Vec::new();
        for (number, place) in self.places.iter().enumerate() {
            if names.iter().any(|name| self.is_named(place.0, name)) {
                open.push(number + 1);
            }
        }
        while let Some(number) = open.pop() {
            if number == 0 || std::mem::replace(needed.get_mut(number)?, true) {
                continue;
            }
            self.push_parts(self.places[number - 1].0, &mut open)?;
        }
        Some(needed)
    }

    fn is_named(&self, at: usize, name: &str) -> bool {
        let begin = word(self.bytes, at).map(|offset| self.strings.0 + offset);
        let rest = begin.and_then(|begin| self.bytes.get(begin..self.strings.1));
        rest.is_some_and(|rest| {
            rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        })
    }

    /// The types of which this one is made.
    fn push_parts(&self, at: usize, open: &mut Vec<usize>) -> Option<()> {
        let info = word(self.bytes, at + 4)?;
        match kind(info) {
            // What it is an array of, and what it is counted in.
            3 => open.extend([word(self.bytes, at + TYPE_LEN)?, word(self.bytes, at + TYPE_LEN + 4)?]),
            4 | 5 => {
                for member in 0..count(info) {
                    open.push(word(self.bytes, at + TYPE_LEN + member * 12 + 4)?);
                }
            }
            // Another name, volatile, constant, restricted, tagged.
            8..=11 | 18 => open.push(word(self.bytes, at + 8)?),
            _ => {}
        }
        Some(())
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?);
    usize::try_from(word).ok()
}

const fn kind(info: usize) -> usize {
    info >> 24 & 0x1f
}

const fn count(info: usize) -> usize {
    info & 0xffff
}

/// Bytes that follow a type, by its kind.
fn added_len(info: usize) -> Option<usize> {
    Some(match kind(info) {
        2 | 7..=12 | 16 | 18 => 0,
        1 | 14 | 17 => 4,
        3 => 12,
        6 | 13 => 8 * count(info),
        4 | 5 | 15 | 19 => 12 * count(info),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A description of: 1 an integer, 2 a structure `kept` of an array (3) of 4 and a pointer (5) to 6; 4 a structure
    /// without a name; 6 a structure `pointed`; 7 a function `kept_not`.
    fn description() -> Vec<u8> {
        let strings = b"\0int\0kept\0pointed\0kept_not\0";
        let info = |kind: u32, count: u32| kind << 24 | count;
        let types: Vec<u32> = [
            &[1, info(1, 0), 4, 32][..],
            &[5, info(4, 2), 24, 0, 3, 0, 0, 5, 128],
            &[0, info(3, 0), 0, 4, 1, 2],
            &[0, info(4, 1), 8, 0, 1, 0],
            &[0, info(2, 0), 6],
            &[10, info(4, 1), 4, 0, 1, 0],
            &[18, info(12, 0), 0],
        ]
        .concat();
        let types: Vec<u8> = types.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC.to_ne_bytes());
        out.extend_from_slice(&[1, 0]);
        for word in [24, 0, types.len() as u32, types.len() as u32, strings.len() as u32] {
            out.extend_from_slice(&word.to_ne_bytes());
        }
        [out, types, strings.to_vec()].concat()
    }

    /// The kinds of the types, by number from 1 on.
    fn kinds(description: &[u8]) -> Vec<usize> {
        let types = Types::read(description).expect("a description");
        types.places.iter().map(|place| kind(word(description, place.0 + 4).expect("within"))).collect()
    }

    #[test]
    fn what_is_named_is_kept_with_its_parts_and_numbers_stay() {
        let whole = description();
        assert_eq!(kinds(&whole), [1, 4, 3, 4, 2, 4, 12]);
        let cut = cut_down(&whole, &["kept"]).expect("a description");
        assert_eq!(
            kinds(&cut),
            [1, 4, 3, 4, 2, 7, 7],
            "not what is pointed to, nor what is only called alike"
        );
        assert!(Types::read(&cut).expect("a description").is_named(24 + 16, "kept"));
        assert_eq!(kinds(&cut_down(&whole, &[]).expect("a description")), [7; 7]);
    }

    #[test]
    fn what_is_no_description_is_refused() {
        let whole = description();
        for cut in 0..whole.len() {
            assert_eq!(cut_down(&whole[..cut], &["kept"]), None, "{cut} bytes");
        }
        for (at, byte) in [(0, 0), (4, 8), (13, 1), (24 + 7, 31)] {
            let mut wrong = whole.clone();
            wrong[at] = byte;
            assert_eq!(cut_down(&wrong, &["kept"]), None, "byte {at}");
        }
    }
}
