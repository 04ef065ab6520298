//! Sets of bytes.

/// A set of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// All bytes.
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

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
        (lo..=hi).for_each(|byte| self.insert(byte));
    }

    /// Takes a byte out.
    pub fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    /// Adds all bytes of another set.
    pub fn extend(&mut self, other: &ByteSet) {
        self.0.iter_mut().zip(other.0).for_each(|(to, from)| *to |= from);
    }

    /// The bytes, in order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=255).filter(|&byte| self.contains(byte))
    }
}

impl<const N: usize> From<&[u8; N]> for ByteSet {
    fn from(bytes: &[u8; N]) -> ByteSet {
        let mut set = ByteSet::default();
        bytes.iter().for_each(|&byte| set.insert(byte));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_added() {
        let mut set = ByteSet::from(b"a\x00\xFF");
        set.insert_range(b'p', b's');
        set.extend(&ByteSet::from(b"z"));
        set.remove(b'q');
        assert_eq!(set.iter().collect::<Vec<_>>(), b"\x00aprsz\xFF");
        assert!(ByteSet::ALL.iter().eq(0..=255));
    }
}
