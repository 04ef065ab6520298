//! Sets of bytes.

/// A set of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// All bytes.
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

    /// The set of these bytes.
    pub const fn of(bytes: &[u8]) -> ByteSet {
        let (mut words, mut i) = ([0; 4], 0);
        while i < bytes.len() {
            words[bytes[i] as usize >> 6] |= 1 << (bytes[i] & 63);
            i += 1;
        }
        ByteSet(words)
    }

    /// Whether a byte is in the set.
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    /// Adds a byte.
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Adds the bytes from `lo` to `hi`.
    pub fn insert_range(&mut self, lo: u8, hi: u8) {
        for (i, word) in self.0.iter_mut().enumerate() {
            let first = i * 64;
            let (lo, hi) = (usize::from(lo).max(first), usize::from(hi).min(first + 63));
            if lo <= hi {
                *word |= (u64::MAX >> (63 - (hi - lo))) << (lo - first);
            }
        }
    }

    /// The bytes of both sets.
    pub fn and(&self, other: &ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Takes a byte out.
    pub fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    /// Adds all bytes of another set.
    pub fn extend(&mut self, other: &ByteSet) {
        self.0.iter_mut().zip(other.0).for_each(|(to, from)| *to |= from);
    }

    /// The first byte of the set that is not less.
    pub fn next_from(&self, byte: u8) -> Option<u8> {
        let first = usize::from(byte >> 6);
        let mut words = self.0.iter().enumerate().skip(first);
        words.find_map(|(i, &word)| {
            let word = if i == first { word & (u64::MAX << (byte & 63)) } else { word };
            (word != 0).then(|| (i * 64) as u8 + word.trailing_zeros() as u8)
        })
    }

    /// The bytes, in order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=255).filter(|&byte| self.contains(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_added() {
        let mut set = ByteSet::of(b"a\x00\xFF");
        set.insert_range(b'p', b's');
        set.extend(&ByteSet::of(b"z"));
        set.remove(b'q');
        assert_eq!(set.iter().collect::<Vec<_>>(), b"\x00aprsz\xFF");
        assert_eq!([0, 1, 98, 116, 255].map(|byte| set.next_from(byte)), [0, 97, 112, 122, 255].map(Some));
        assert_eq!(ByteSet::of(b"a").next_from(b'b'), None);
        assert_eq!(set.and(&ByteSet::of(b"rqy")), ByteSet::of(b"r"));
        assert!(set.and(&ByteSet::of(b"q")).is_empty() && !set.is_empty());
        assert!(ByteSet::ALL.iter().eq(0..=255));
    }
}
