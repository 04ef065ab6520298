//! Decisions by bytes: what a fuzzer changes in the bytes, it changes in one decision.

/// A source of decisions. Where its bytes end, it always decides for the first; so what is built by it ends too.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
    /// The state of a generator of random numbers, if it goes on with those.
    random: Option<u64>,
}

impl<'a> Choices<'a> {
    /// Decisions by these bytes.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes, random: None }
    }

    /// Pseudo-random decisions without end, the same for equal bytes.
    pub fn endless(seed: &[u8]) -> Choices<'static> {
        let hash = seed.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Choices { bytes: &[], random: Some(hash | 1) }
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        if let Some((&first, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            return first;
        }
        let Some(state) = &mut self.random else { return 0 };
        // Xorshift (Marsaglia 2003).
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 32) as u8
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        match count {
            0 | 1 => 0,
            2..=256 => usize::from(self.byte()) % count,
            _ => (usize::from(self.byte()) << 8 | usize::from(self.byte())) % count,
        }
    }

    /// Yes, once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) + 1 == times
    }

    /// One of these.
    pub fn pick<'b, T: ?Sized>(&mut self, from: &[&'b T]) -> &'b T {
        from[self.below(from.len())]
    }

    /// From `least` to `most` parts.
    pub fn list<T>(&mut self, least: usize, most: usize, mut part: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = least + self.below(most - least + 1);
        (0..count).map(|_| part(self)).collect()
    }
}
