//! Leaves: regular languages of characters, read byte by byte.
//!
//! A [`Language`] steps by characters. Between bytes of one character, or inside an escape of a JSON string, a leaf
//! remembers what it has of the character so far; it is alive only if some character that can still come of it leads on.
//! Strings end with their closing quote; raw leaves end wherever their language has the text read so far.

use crate::bytes::ByteSet;
use crate::row::Row;
use crate::vocabulary::Vocabulary;
use hashbrown::HashMap;
use punchcard_automata::languages::UNBOUNDED;
use punchcard_automata::{Language, Languages, LimitExceeded};
use rustc_hash::FxBuildHasher;

/// How the characters of a leaf are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// As UTF-8.
    Raw,
    /// As the inside of a JSON string, with the short escapes of quotes, backslashes and control characters. Other control
    /// characters, which take a `\u`, come only where nothing else can: who begins a `\u` may mean any character.
    Minimal,
    /// As the inside of a JSON string, with any escapes.
    Escaped,
}

/// The id of a leaf state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeafId(u32);

impl LeafId {
    /// No way on.
    pub const DEAD: LeafId = LeafId(0);
    /// The closing quote was read.
    pub const CLOSED: LeafId = LeafId(1);
}

/// What was read of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Partial {
    Nothing,
    /// `value` holds the bits so far, `left` bytes are missing of `length`.
    Utf8 {
        value: u32,
        left: u8,
        length: u8,
    },
    Backslash,
    /// After `\u` and some hex digits; `high` is the first half of a pair, if one came before.
    Hex {
        value: u32,
        digits: u8,
        high: u16,
    },
    /// A first half is complete; `\` must follow, then `u`.
    HighHalf {
        high: u16,
        slash: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    language: Language,
    encoding: Encoding,
    partial: Partial,
}

/// What a byte does to a character.
enum Byte {
    Bad,
    Close,
    Char(u32),
    More(Partial),
}

/// The store of leaf states, with their transitions.
#[derive(Debug)]
pub struct Leaves {
    states: Vec<State>,
    ids: HashMap<State, LeafId, FxBuildHasher>,
    rows: Vec<Row>,
    /// Bytes that the rows point to.
    row_bytes: usize,
    live: HashMap<LeafId, ByteSet, FxBuildHasher>,
}

impl Default for Leaves {
    fn default() -> Self {
        let mut leaves = Leaves {
            states: Vec::new(),
            ids: HashMap::default(),
            rows: Vec::new(),
            row_bytes: 0,
            live: HashMap::default(),
        };
        let nothing = |encoding| State { language: Language::EMPTY, encoding, partial: Partial::Nothing };
        leaves.intern(nothing(Encoding::Raw));
        leaves.intern(nothing(Encoding::Minimal));
        leaves
    }
}

impl Leaves {
    fn intern(&mut self, state: State) -> LeafId {
        if let Some(&id) = self.ids.get(&state) {
            return id;
        }
        let id = LeafId(self.states.len() as u32);
        self.states.push(state);
        self.ids.insert(state, id);
        self.rows.push(Row::default());
        id
    }

    /// Carries a leaf of another store over; `language` does so for languages.
    pub(crate) fn carry(&mut self, from: &Leaves, leaf: LeafId, language: impl FnOnce(Language) -> Language) -> LeafId {
        if leaf <= LeafId::CLOSED {
            return leaf;
        }
        let state = from.states[leaf.0 as usize];
        self.intern(State { language: language(state.language), ..state })
    }

    /// The leaf in which nothing of `language` was read yet.
    pub fn start(&mut self, language: Language, encoding: Encoding) -> LeafId {
        if language == Language::EMPTY {
            return LeafId::DEAD;
        }
        self.intern(State { language, encoding, partial: Partial::Nothing })
    }

    /// The language that is left, between two characters; `None` within one.
    pub fn language(&self, leaf: LeafId) -> Option<(Language, Encoding)> {
        let state = self.states[leaf.0 as usize];
        (state.partial == Partial::Nothing).then_some((state.language, state.encoding))
    }

    /// Whether a text that nothing encloses may end here.
    pub(crate) fn may_end(&self, languages: &Languages, leaf: LeafId) -> bool {
        let language = self.language(leaf).filter(|(_, encoding)| *encoding == Encoding::Raw);
        language.is_some_and(|(language, _)| languages.is_nullable(language))
    }

    /// What tells leaves between two characters apart in all grammars, and where in a trie they are.
    pub(crate) fn key(&self, languages: &Languages, leaf: LeafId, node: usize) -> (u64, u8, u32) {
        let State { language, encoding, .. } = self.states[leaf.0 as usize];
        (languages.fingerprint(language), encoding as u8, node as u32)
    }

    /// How the characters of a leaf are written.
    pub fn encoding(&self, leaf: LeafId) -> Encoding {
        self.states[leaf.0 as usize].encoding
    }

    /// Bytes on the heap.
    pub fn memory_size(&self) -> usize {
        let lists = self.states.capacity() * size_of::<State>() + self.rows.capacity() * size_of::<Row>();
        lists + self.ids.allocation_size() + self.live.allocation_size() + self.row_bytes
    }

    /// The leaf after one more byte, and `CLOSED` after a closing quote.
    pub fn step(&mut self, languages: &mut Languages, leaf: LeafId, byte: u8) -> Result<LeafId, LimitExceeded> {
        if leaf <= LeafId::CLOSED {
            return Ok(LeafId::DEAD);
        }
        if let Some(next) = self.rows[leaf.0 as usize].get(byte) {
            return Ok(LeafId(next));
        }
        let next = self.compute(languages, leaf, byte)?;
        languages.check_limit()?;
        self.row_bytes += self.rows[leaf.0 as usize].set(byte, next.0);
        Ok(next)
    }

    fn compute(&mut self, languages: &mut Languages, leaf: LeafId, byte: u8) -> Result<LeafId, LimitExceeded> {
        let state = self.states[leaf.0 as usize];
        Ok(match read(state.partial, state.encoding, byte) {
            Byte::Bad => LeafId::DEAD,
            Byte::Close => {
                if languages.is_nullable(state.language) {
                    LeafId::CLOSED
                } else {
                    LeafId::DEAD
                }
            }
            Byte::Char(c) => {
                let language = languages.next(state.language, c);
                if languages.is_viable(language)? { self.start(language, state.encoding) } else { LeafId::DEAD }
            }
            Byte::More(partial) => {
                let minimal = state.encoding == Encoding::Minimal;
                let mut leads = leads_on(languages, state.language, &candidates(partial, state.encoding))?;
                if minimal && matches!(partial, Partial::Hex { .. }) {
                    leads &= !leads_on(languages, state.language, &WITHOUT_HEX)?;
                } else if minimal && partial == Partial::Backslash && !leads {
                    let hex = candidates(Partial::Hex { value: 0, digits: 0, high: 0 }, Encoding::Minimal);
                    leads = leads_on(languages, state.language, &hex)?
                        && !leads_on(languages, state.language, &WITHOUT_HEX)?;
                }
                if leads { self.intern(State { partial, ..state }) } else { LeafId::DEAD }
            }
        })
    }

    /// The bytes that may come next, and perhaps some that may not.
    pub(crate) fn live(&mut self, languages: &mut Languages, leaf: LeafId) -> Result<ByteSet, LimitExceeded> {
        if leaf <= LeafId::CLOSED {
            return Ok(ByteSet::default());
        }
        if let Some(&known) = self.live.get(&leaf) {
            return Ok(known);
        }
        let State { language, encoding, partial } = self.states[leaf.0 as usize];
        let mut out = ByteSet::default();
        match partial {
            Partial::Nothing => {}
            Partial::Utf8 { .. } => {
                out.insert_range(0x80, 0xBF);
                return Ok(out);
            }
            _ => return Ok(ByteSet::ALL),
        }
        let in_string = encoding != Encoding::Raw;
        for (lo, hi, target) in languages.transitions(language).over(0, 0x10_FFFF) {
            if !languages.is_viable(target)? {
                continue;
            }
            out.insert_range(first_byte(lo), first_byte(hi));
            let escaped = encoding == Encoding::Escaped || lo < 0x20;
            if in_string && (escaped || [b'"', b'\\'].iter().any(|&c| (lo..=hi).contains(&u32::from(c)))) {
                out.insert(b'\\');
            }
        }
        if in_string {
            (0..0x20).for_each(|byte| out.remove(byte));
            out.remove(b'"');
            if languages.is_nullable(language) {
                out.insert(b'"');
            }
        }
        self.live.insert(leaf, out);
        Ok(out)
    }

    /// Whether every character that may come next can stand for itself, so that a backslash is a detour.
    pub(crate) fn needs_no_escape(&self, languages: &mut Languages, leaf: LeafId) -> Result<bool, LimitExceeded> {
        const ESCAPED: [Option<(u32, u32)>; 3] = [Some((0, 0x1F)), Some((0x22, 0x22)), Some((0x5C, 0x5C))];
        match self.language(leaf) {
            Some((language, Encoding::Minimal | Encoding::Escaped)) => Ok(!leads_on(languages, language, &ESCAPED)?),
            _ => Ok(false),
        }
    }

    /// The bytes after which a leaf may differ from one of all texts after the same byte.
    pub(crate) fn exceptions(&self, languages: &mut Languages, leaf: LeafId) -> ByteSet {
        let Some((language, _)) = self.language(leaf) else { return ByteSet::ALL };
        let mut out = ByteSet::default();
        for (lo, hi, target) in languages.transitions(language).over(0, 0x10_FFFF) {
            if target != Language::ALL {
                out.insert_range(first_byte(lo), first_byte(hi));
            }
        }
        // Which characters an escape may stand for is found out behind the backslash.
        out.insert(b'\\');
        out.insert(b'"');
        out
    }

    /// Bytes that complete a character or an escape, the leaf after them, and the character.
    pub fn whole_character(
        &mut self,
        languages: &mut Languages,
        leaf: LeafId,
    ) -> Result<(Vec<u8>, LeafId, Option<u32>), LimitExceeded> {
        let (mut bytes, mut leaf, mut completed) = (Vec::new(), leaf, None);
        while self.language(leaf).is_none() {
            // All ways from within a character lead to a character.
            let mut way = None;
            for byte in 0..=255u8 {
                let next = self.step(languages, leaf, byte)?;
                if next != LeafId::DEAD && next != LeafId::CLOSED {
                    way = Some((byte, next));
                    break;
                }
            }
            let Some((byte, next)) = way else { break };
            completed = self.completed(leaf, byte);
            bytes.push(byte);
            leaf = next;
        }
        Ok((bytes, leaf, completed))
    }

    /// The character that the byte completes, if it does.
    pub fn completed(&self, leaf: LeafId, byte: u8) -> Option<u32> {
        let state = self.states[leaf.0 as usize];
        match read(state.partial, state.encoding, byte) {
            Byte::Char(c) => Some(c),
            _ => None,
        }
    }
}

/// One byte more of a character.
fn read(partial: Partial, encoding: Encoding, byte: u8) -> Byte {
    match partial {
        Partial::Nothing => match byte {
            b'"' if encoding != Encoding::Raw => Byte::Close,
            b'\\' if encoding != Encoding::Raw => Byte::More(Partial::Backslash),
            0..0x20 if encoding != Encoding::Raw => Byte::Bad,
            0..0x80 => Byte::Char(u32::from(byte)),
            0xC2..=0xDF => Byte::More(Partial::Utf8 { value: u32::from(byte & 0x1F), left: 1, length: 2 }),
            0xE0..=0xEF => Byte::More(Partial::Utf8 { value: u32::from(byte & 0x0F), left: 2, length: 3 }),
            0xF0..=0xF4 => Byte::More(Partial::Utf8 { value: u32::from(byte & 0x07), left: 3, length: 4 }),
            _ => Byte::Bad,
        },
        Partial::Utf8 { value, left, length } => {
            if !(0x80..0xC0).contains(&byte) {
                return Byte::Bad;
            }
            let value = value << 6 | u32::from(byte & 0x3F);
            let next = Partial::Utf8 { value, left: left - 1, length };
            let Some((lo, hi)) = candidates(next, encoding)[0] else { return Byte::Bad };
            // Overlong forms, surrogates and values past the end have no candidate.
            if left > 1 {
                Byte::More(next)
            } else if lo == hi {
                Byte::Char(lo)
            } else {
                Byte::Bad
            }
        }
        Partial::Backslash => {
            let c = match byte {
                b'"' | b'\\' => u32::from(byte),
                b'/' if encoding == Encoding::Escaped => u32::from(b'/'),
                b'b' => 8,
                b'f' => 12,
                b'n' => 10,
                b'r' => 13,
                b't' => 9,
                b'u' => return Byte::More(Partial::Hex { value: 0, digits: 0, high: 0 }),
                _ => return Byte::Bad,
            };
            Byte::Char(c)
        }
        Partial::Hex { value, digits, high } => {
            let Some(digit) = (byte as char).to_digit(16) else { return Byte::Bad };
            let next = Partial::Hex { value: value << 4 | digit, digits: digits + 1, high };
            if digits < 3 {
                return Byte::More(next);
            }
            let unit = value << 4 | digit;
            match (high, unit) {
                (0, 0xD800..0xDC00) => Byte::More(Partial::HighHalf { high: unit as u16, slash: false }),
                (0, 0xDC00..0xE000) => Byte::Bad,
                (0, _) if encoding == Encoding::Minimal && !needs_hex(unit) => Byte::Bad,
                (0, _) => Byte::Char(unit),
                (_, 0xDC00..0xE000) => Byte::Char(0x10000 + ((u32::from(high) - 0xD800) << 10) + (unit - 0xDC00)),
                _ => Byte::Bad,
            }
        }
        Partial::HighHalf { high, slash } => match (slash, byte) {
            (false, b'\\') => Byte::More(Partial::HighHalf { high, slash: true }),
            (true, b'u') => Byte::More(Partial::Hex { value: 0, digits: 0, high }),
            _ => Byte::Bad,
        },
    }
}

/// The first byte of a character in UTF-8; it grows with the character.
fn first_byte(c: u32) -> u8 {
    match c {
        0..0x80 => c as u8,
        0x80..0x800 => 0xC0 | (c >> 6) as u8,
        0x800..0x1_0000 => 0xE0 | (c >> 12) as u8,
        _ => 0xF0 | (c >> 18) as u8,
    }
}

/// Control characters without a short escape.
fn needs_hex(c: u32) -> bool {
    c < 0x20 && !matches!(c, 8 | 9 | 10 | 12 | 13)
}

/// The characters of a string that are written without a `\u`.
const WITHOUT_HEX: [Option<(u32, u32)>; 3] = [Some((8, 10)), Some((12, 13)), Some((0x20, 0x10FFFF))];

/// Whether one of the characters leads on in the language.
fn leads_on(
    languages: &mut Languages,
    language: Language,
    characters: &[Option<(u32, u32)>],
) -> Result<bool, LimitExceeded> {
    let transitions = languages.transitions(language);
    for &(lo, hi) in characters.iter().flatten() {
        for (_, _, target) in transitions.over(lo, hi) {
            if languages.is_viable(target)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The ranges of characters that can still come of what was read.
fn candidates(partial: Partial, encoding: Encoding) -> [Option<(u32, u32)>; 6] {
    let mut out = [None; 6];
    match partial {
        Partial::Nothing => {}
        Partial::Utf8 { value, left, length } => {
            let shift = 6 * u32::from(left);
            let least = [0, 0, 0x80, 0x800, 0x10000][usize::from(length)];
            let (lo, hi) = ((value << shift).max(least), (value << shift | ((1 << shift) - 1)).min(0x10FFFF));
            let surrogates = lo >= 0xD800 && hi <= 0xDFFF;
            out[0] = (lo <= hi && !surrogates).then_some((lo, hi));
        }
        Partial::Backslash if encoding == Encoding::Escaped => out[0] = Some((0, 0x10FFFF)),
        Partial::Backslash => {
            out[..4].copy_from_slice(&[Some((8, 10)), Some((12, 13)), Some((0x22, 0x22)), Some((0x5C, 0x5C))]);
        }
        Partial::Hex { value, digits, high } => {
            let shift = 4 * (4 - u32::from(digits));
            let (lo, hi) = (value << shift, value << shift | ((1 << shift) - 1));
            if high != 0 {
                let (lo, hi) = (lo.max(0xDC00), hi.min(0xDFFF));
                let pair = |low: u32| 0x10000 + ((u32::from(high) - 0xD800) << 10) + (low - 0xDC00);
                out[0] = (lo <= hi).then(|| (pair(lo), pair(hi)));
            } else if encoding == Encoding::Minimal {
                for (slot, (a, b)) in out.iter_mut().zip([(0, 7), (11, 11), (14, 0x1F)]) {
                    let (lo, hi) = (lo.max(a), hi.min(b));
                    *slot = (lo <= hi).then_some((lo, hi));
                }
            } else {
                out[0] = Some((lo, hi));
                let (first, last) = (lo.max(0xD800), hi.min(0xDBFF));
                if first <= last {
                    out[1] = Some((0x10000 + ((first - 0xD800) << 10), 0x10000 + ((last - 0xD800) << 10) + 0x3FF));
                }
            }
        }
        Partial::HighHalf { high, .. } => {
            let base = 0x10000 + ((u32::from(high) - 0xD800) << 10);
            out[0] = Some((base, base + 0x3FF));
        }
    }
    out
}

/// A run of characters whose bounds lie farther away than any token reaches is, to one token, a run without bounds.
pub(crate) fn within_a_token(
    vocabulary: &Vocabulary,
    languages: &mut Languages,
    leaves: &mut Leaves,
    leaf: LeafId,
) -> LeafId {
    let longest = vocabulary.trie.max_depth() as u32 + 1;
    let Some((language, encoding)) = leaves.language(leaf) else { return leaf };
    let Some((set, min, max)) = languages.as_run(language) else { return leaf };
    if min <= longest && (max <= longest || max == UNBOUNDED) {
        return leaf;
    }
    let set = set.clone();
    let set = languages.set(set);
    let max = if max > longest { UNBOUNDED } else { max };
    let language = languages.repeat(set, min.min(longest), max);
    leaves.start(language, encoding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punchcard_automata::CharSet;

    fn reads(encoding: Encoding, language: impl FnOnce(&mut Languages) -> Language, bytes: &[u8]) -> Option<usize> {
        let mut languages = Languages::new();
        let mut leaves = Leaves::default();
        let language = language(&mut languages);
        let mut at = leaves.start(language, encoding);
        for (i, &b) in bytes.iter().enumerate() {
            at = leaves.step(&mut languages, at, b).unwrap();
            if at == LeafId::DEAD {
                return Some(i);
            }
        }
        None
    }

    #[test]
    fn bytes_of_a_character_are_allowed_only_if_one_can_follow() {
        let faces = |l: &mut Languages| {
            let set = l.set(CharSet::new([(0x1F600, 0x1F64F)]));
            l.star(set)
        };
        assert_eq!(reads(Encoding::Raw, faces, b"\xF0\x9F\x98\x80\xF0\x9F\x99\x8F"), None);
        assert_eq!(reads(Encoding::Raw, faces, b"\xF0\x9F\x99\x90"), Some(3));
        assert_eq!(reads(Encoding::Raw, faces, b"\xF0\x9F\x97"), Some(2));
        assert_eq!(reads(Encoding::Escaped, faces, b"\\ud83d\\ude00\\uD83D\\uDE4F\""), None);
        assert_eq!(reads(Encoding::Escaped, faces, b"\\ud83d\\ude5"), Some(10));
        assert_eq!(reads(Encoding::Escaped, faces, b"\\ud83e"), Some(5));
    }

    #[test]
    fn malformed_bytes_and_needless_escapes_are_refused() {
        let all = |_: &mut Languages| Language::ALL;
        for (bytes, at) in
            [(&b"\xC0"[..], 0), (b"\xE0\x80", 1), (b"\xED\xA0", 1), (b"\xF4\x90", 1), (b"a\xFF", 1), (b"\n", 0)]
        {
            assert_eq!(reads(Encoding::Minimal, all, bytes), Some(at), "{bytes:?}");
        }
        assert_eq!(reads(Encoding::Minimal, all, b"\\u001b"), Some(1));
        assert_eq!(reads(Encoding::Minimal, all, b"\\n\\\"\\\\\""), None);
        assert_eq!(reads(Encoding::Minimal, all, b"\\/"), Some(1));
        // Nothing but this can come, or else the string could not be written at all.
        let colour = |l: &mut Languages| l.literal("\u{1b}[0m");
        assert_eq!(reads(Encoding::Minimal, colour, b"\\u001b[0m\""), None);
        assert_eq!(reads(Encoding::Minimal, colour, b"\\u001c"), Some(5));
        assert_eq!(reads(Encoding::Minimal, colour, b"\\u001b\\u005b"), Some(6));
        assert_eq!(reads(Encoding::Escaped, all, b"caf\\u00e9 \\ud83d\\ude00 http:\\/\\/ \\u0041\""), None);
        assert_eq!(reads(Encoding::Escaped, all, b"\\/\\u0041\\ud800"), Some(14).filter(|_| false));
        assert_eq!(reads(Encoding::Escaped, all, b"\\ud800x"), Some(6));
        assert_eq!(reads(Encoding::Escaped, all, b"\\udc00"), Some(5));
    }
}
