//! What is known of the steps of a state, by byte.

/// The known steps of a state. Most states are only passed through by a byte or two; a table of all 256 is made for those
/// that are met often.
#[derive(Debug)]
pub(crate) enum Row {
    Few(Vec<(u8, u32)>),
    All(Box<[u32; 256]>),
}

impl Default for Row {
    fn default() -> Self {
        Row::Few(Vec::new())
    }
}

impl Row {
    const FEW: usize = 8;
    const UNKNOWN: u32 = u32::MAX;

    pub(crate) fn get(&self, byte: u8) -> Option<u32> {
        match self {
            Row::Few(steps) => steps.iter().find(|(b, _)| *b == byte).map(|&(_, next)| next),
            Row::All(row) => Some(row[usize::from(byte)]).filter(|&next| next != Row::UNKNOWN),
        }
    }

    /// Notes a step. Returns by how many bytes the row has grown.
    pub(crate) fn set(&mut self, byte: u8, next: u32) -> usize {
        let before = self.heap();
        match self {
            Row::Few(steps) if steps.len() < Row::FEW => steps.push((byte, next)),
            Row::Few(steps) => {
                let mut row = Box::new([Row::UNKNOWN; 256]);
                for &(b, known) in steps.iter() {
                    row[usize::from(b)] = known;
                }
                row[usize::from(byte)] = next;
                *self = Row::All(row);
            }
            Row::All(row) => row[usize::from(byte)] = next,
        }
        self.heap() - before
    }

    /// Bytes on the heap.
    fn heap(&self) -> usize {
        match self {
            Row::Few(steps) => 8 * steps.capacity(),
            Row::All(_) => 1024,
        }
    }
}
