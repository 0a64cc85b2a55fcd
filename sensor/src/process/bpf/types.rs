//! Filter of the kernel's type information (BTF): reduces it to the types that the programs name.
//!
//! Pure: bytes in, bytes out, in the format of Documentation/bpf/btf.rst. The type information has some
//! hundred thousand types, but the programs need a few hundred; to parse it whole takes the loader a tenth of
//! a second, and tens of megabytes that the allocator does not return. Rule: every type keeps its number,
//! because the kernel identifies types by number; a type that is not needed becomes an empty declaration.
//! Not here: which fields are needed (the loader finds them).

/// Magic number, in the byte order of this machine.
const MAGIC: u16 = 0xeb9f;
/// Length of the header fields used here; a longer header has the same fields first.
const HEAD_LEN: usize = 24;
/// Length of a type without the data of its kind.
const TYPE_LEN: usize = 12;
/// Kind of a forward declaration.
const DECLARATION: u32 = 7;

/// Keeps the named types and all that they contain, but not what they only point to; empties every other
/// type. `None` if the format is unknown.
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

/// Layout of the type information.
struct Types<'a> {
    bytes: &'a [u8],
    head_len: usize,
    /// Offset of the first type.
    begin: usize,
    /// Start and end of the names.
    strings: (usize, usize),
    /// Start and end of each type; the first has number 1.
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

    /// Whether each type is needed, by number.
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

    /// Adds the types that this one contains.
    fn push_parts(&self, at: usize, open: &mut Vec<usize>) -> Option<()> {
        let info = word(self.bytes, at + 4)?;
        match kind(info) {
            // The element type and the index type of an array.
            3 => open.extend([word(self.bytes, at + TYPE_LEN)?, word(self.bytes, at + TYPE_LEN + 4)?]),
            4 | 5 => {
                for member in 0..count(info) {
                    open.push(word(self.bytes, at + TYPE_LEN + member * 12 + 4)?);
                }
            }
            // Typedef, volatile, const, restrict, type tag.
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

/// Length of the data after a type, by its kind.
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

    /// Type information of: 1 an integer, 2 a structure `kept` of an array (3) of 4 and a pointer (5) to 6; 4
    /// a structure without a name; 6 a structure `pointed`; 7 a function `kept_not`.
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
