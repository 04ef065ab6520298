//! `hostname` (RFC 1123, section 2.1, with RFC 5890 for `xn--` labels) and `idn-hostname` (RFC 5890 to 5893).
//!
//! A name is labels of at most 63 characters with dots between them, 253 characters in all, without a dot at the end. In
//! ASCII a label is letters, digits and hyphens, the hyphens inside; one that begins with `xn--` must be the A-label of
//! a valid U-label. In `idn-hostname` a label may also be that U-label itself, the dot may be one of its three
//! look-alikes (RFC 3490, section 3.1), and other labels with hyphens in the third and fourth place are reserved. A name
//! with a right-to-left label must keep the Bidi rule in all its labels.
//!
//! The counts of a name and of its label go side by side with what the label's rules remember, so this is a [`Machine`].

use super::idna::{self, ALabel, Label, MAX_LABEL, Rules};
use super::parts::chars;
use crate::alphabet::Alphabet;
use crate::charset::CharSet;
use crate::languages::{Language, Languages};
use crate::machine::Machine;
use std::sync::{Arc, LazyLock};

/// The longest name.
const MAX_NAME: u32 = 253;

/// `hostname`.
pub(super) fn hostname(l: &mut Languages) -> Language {
    l.machine(Arc::new(Names { kind: Kind::Ascii, used: 0 }))
}

/// `idn-hostname`.
pub(super) fn idn_hostname(l: &mut Languages) -> Language {
    l.machine(Arc::new(Names { kind: Kind::International, used: 0 }))
}

/// The domain of a mail address, of at most `most` characters.
pub(super) fn mail_domain(l: &mut Languages, international: bool, most: u32) -> Language {
    let kind = if international { Kind::InternationalMail } else { Kind::Ascii };
    l.machine(Arc::new(Names { kind, used: MAX_NAME.saturating_sub(most) }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ascii,
    International,
    /// As international, but only `.` is a dot, and labels need not be in NFC (RFC 6531 takes them as they come).
    InternationalMail,
}

/// The machine of domain names.
#[derive(Debug)]
struct Names {
    kind: Kind,
    /// How many of the characters are taken before the name begins. Only the start knows of it.
    used: u32,
}

/// A name that was read so far.
#[derive(Clone, Debug)]
struct Name {
    /// Characters before this label, the dots too, every label as its A-label.
    used: u32,
    /// Some label went from right to left.
    rtl: bool,
    /// Some label breaks the Bidi rule, so that none may go from right to left.
    broken: bool,
    part: Part,
}

/// The label that was read so far.
#[derive(Clone, Debug)]
enum Part {
    Start,
    /// A label in ASCII: its length, whether it ends in a hyphen, whether it began with a letter, and how much of `xn-`
    /// it is, if no more than that was read.
    Plain {
        length: u32,
        hyphen: bool,
        letter: bool,
        prefix: u8,
    },
    /// A label in any script, and likewise.
    Wide(Label, u8),
    Puny(ALabel),
}

/// The count of characters in a prefix of `xn-` of which all were read; 4 after `xn--`.
fn prefix_after(prefix: u8, length: u32, c: char) -> u8 {
    let next = if u32::from(prefix) == length { "xn--".chars().nth(prefix.into()) } else { None };
    if next == Some(c.to_ascii_lowercase()) { prefix + 1 } else { 0 }
}

impl Names {
    fn rules(&self) -> Rules {
        Rules { nfc: self.kind != Kind::InternationalMail, bounded: true }
    }

    fn is_dot(&self, c: char) -> bool {
        c == '.' || (self.kind == Kind::International && "。．｡".contains(c))
    }

    /// Whether a label from right to left, or one that keeps the rule or breaks it, may stand in the name.
    fn goes_with(name: &Name, rtl: bool, keeps_rule: bool) -> bool {
        (keeps_rule || !(rtl || name.rtl)) && !(rtl && name.broken)
    }

    fn label_goes_with(name: &Name, label: &Label) -> bool {
        Self::goes_with(name, label.is_rtl(), label.keeps_bidi_rule())
    }

    /// The label's length as an A-label, whether it goes from right to left, and whether it keeps the Bidi rule, if it
    /// may end here.
    fn finish(&self, name: &Name) -> Option<(u32, bool, bool)> {
        let (length, rtl, keeps_rule) = match &name.part {
            Part::Start | Part::Plain { hyphen: true, .. } => return None,
            &Part::Plain { length, letter, .. } => (length, false, letter),
            Part::Wide(label, _) if !label.is_complete() => return None,
            Part::Wide(label, _) => (label.a_length(), label.is_rtl(), label.keeps_bidi_rule()),
            Part::Puny(label) => {
                let decoded = label.label()?;
                (label.len(), decoded.is_rtl(), decoded.keeps_bidi_rule())
            }
        };
        let fits = name.used + length <= MAX_NAME && Self::goes_with(name, rtl, keeps_rule);
        fits.then_some((length, rtl, keeps_rule))
    }

    fn push(&self, name: &Name, c: char) -> Option<Name> {
        if self.is_dot(c) {
            let (length, rtl, keeps_rule) = self.finish(name)?;
            let used = name.used + length + 1;
            let (rtl, broken) = (name.rtl || rtl, name.broken || !keeps_rule);
            return (used < MAX_NAME).then_some(Name { used, rtl, broken, part: Part::Start });
        }
        let part = match &name.part {
            Part::Start if self.kind == Kind::Ascii => {
                self.push_plain(name, Part::Plain { length: 0, hyphen: true, letter: false, prefix: 0 }, c)?
            }
            Part::Start => self.push_wide(name, &Label::default(), 0, c)?,
            plain @ Part::Plain { .. } => self.push_plain(name, plain.clone(), c)?,
            Part::Wide(label, prefix) => self.push_wide(name, label, *prefix, c)?,
            Part::Puny(label) => {
                let room = (MAX_NAME - name.used).checked_sub(label.len() + 1)?;
                Part::Puny(label.push(c, room, |label| Self::label_goes_with(name, label))?)
            }
        };
        Some(Name { part, ..name.clone() })
    }

    fn start_puny(&self, name: &Name) -> Option<Part> {
        let room = (MAX_NAME - name.used).checked_sub(4)?;
        Some(Part::Puny(ALabel::start(room, |label| Self::label_goes_with(name, label))?))
    }

    fn push_plain(&self, name: &Name, part: Part, c: char) -> Option<Part> {
        let Part::Plain { length, letter, prefix, .. } = part else { return None };
        let prefix = prefix_after(prefix, length, c);
        if prefix == 4 {
            return self.start_puny(name);
        }
        let hyphen = c == '-';
        if !(c.is_ascii_alphanumeric() || hyphen && length > 0) {
            return None;
        }
        let letter = if length == 0 { c.is_ascii_alphabetic() } else { letter };
        let length = length + 1;
        let least = length + u32::from(hyphen);
        let fits = least <= MAX_LABEL && name.used + least <= MAX_NAME && (letter || !name.rtl);
        fits.then_some(Part::Plain { length, hyphen, letter, prefix })
    }

    fn push_wide(&self, name: &Name, label: &Label, prefix: u8, c: char) -> Option<Part> {
        let prefix = prefix_after(prefix, label.len(), c);
        if prefix == 4 {
            return self.start_puny(name);
        }
        let label = label.push(c, self.rules())?;
        self.can_end(name, &label, 2).then_some(Part::Wide(label, prefix))
    }

    /// Whether at most so many characters more make a label that may stand in the name.
    ///
    /// One character of each kind that a rule may wait for is enough to try.
    fn can_end(&self, name: &Name, label: &Label, more: u32) -> bool {
        if name.used + label.a_length() > MAX_NAME || (name.rtl && !label.may_keep_bidi_rule()) {
            return false;
        }
        if label.is_rtl() && name.broken {
            return false;
        }
        if label.is_complete() && Self::label_goes_with(name, label) {
            return true;
        }
        let next = ['a', 'l', '0', 'α', 'א', 'ب', 'あ', 'ᠠ'];
        more > 0
            && next
                .into_iter()
                .any(|c| label.push(c, self.rules()).is_some_and(|label| self.can_end(name, &label, more - 1)))
    }
}

impl Name {
    fn pack(&self) -> Box<[u8]> {
        let mut bytes = vec![self.used as u8, u8::from(self.rtl) << 1 | u8::from(self.broken)];
        match &self.part {
            Part::Start => bytes.push(b's'),
            &Part::Plain { length, hyphen, letter, prefix } => {
                bytes.extend([b'p', length as u8, u8::from(hyphen) << 1 | u8::from(letter), prefix]);
            }
            Part::Wide(label, prefix) => {
                bytes.extend([b'w', *prefix]);
                bytes.extend(label.pack());
            }
            Part::Puny(label) => {
                bytes.extend([b'x', label.text.len() as u8]);
                bytes.extend_from_slice(label.text.as_bytes());
                bytes.extend_from_slice(label.witness.as_bytes());
            }
        }
        bytes.into()
    }

    fn unpack(bytes: &[u8]) -> Option<Name> {
        let (&[used, flags, kind], rest) = bytes.split_first_chunk::<3>()?;
        let part = match (kind, rest) {
            (b's', _) => Part::Start,
            (b'p', &[length, flags, prefix]) => {
                Part::Plain { length: length.into(), hyphen: flags & 2 != 0, letter: flags & 1 != 0, prefix }
            }
            (b'w', [prefix, label @ ..]) => Part::Wide(Label::unpack(label.try_into().ok()?), *prefix),
            (_, [length, rest @ ..]) => {
                let (text, witness) = std::str::from_utf8(rest).ok()?.split_at_checked((*length).into())?;
                Part::Puny(ALabel { text: text.to_owned(), witness: witness.to_owned() })
            }
            _ => return None,
        };
        Some(Name { used: used.into(), rtl: flags & 2 != 0, broken: flags & 1 != 0, part })
    }
}

impl Machine for Names {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Ascii => "host names",
            Kind::International => "internationalised host names",
            Kind::InternationalMail => "internationalised mail domains",
        }
    }

    fn alphabet(&self, state: &[u8]) -> &Alphabet {
        /// What may stand in a label by its rules alone, and the dots.
        static PLAIN: LazyLock<[CharSet; 6]> = LazyLock::new(|| ["a-zA-Z", "0-9", "Xx", "Nn", "-", "."].map(chars));
        static LABEL: LazyLock<Alphabet> = LazyLock::new(|| Alphabet::new(&*PLAIN));
        static WIDE: LazyLock<Alphabet> = LazyLock::new(|| {
            let letters: Vec<CharSet> = ('a'..='z').map(CharSet::single).collect();
            Alphabet::new(&[&PLAIN[..], &letters, &[chars("。．｡")], &idna::sets()].concat())
        });
        static PUNY: LazyLock<Alphabet> = LazyLock::new(|| {
            let digits = ('a'..='z').map(|c| chars(&format!("{c}{}", c.to_ascii_uppercase())));
            let digits = digits.chain(('0'..='9').map(CharSet::single));
            Alphabet::new(&digits.chain([chars("-"), chars("."), chars("。．｡")]).collect::<Vec<_>>())
        });
        match state.get(2) {
            Some(b'x') => &PUNY,
            _ if self.kind == Kind::Ascii => &LABEL,
            _ => &WIDE,
        }
    }

    fn reads(&self, _state: &[u8]) -> CharSet {
        let ascii = chars("a-zA-Z0-9.-");
        if self.kind == Kind::Ascii {
            return ascii;
        }
        [&[ascii, chars("。．｡")][..], &idna::sets()]
            .concat()
            .iter()
            .flat_map(|set| set.ranges().iter().copied())
            .collect()
    }

    fn start(&self) -> Box<[u8]> {
        Name { used: self.used, rtl: false, broken: false, part: Part::Start }.pack()
    }

    fn step(&self, state: &[u8], c: char) -> Option<Box<[u8]>> {
        Some(self.push(&Name::unpack(state)?, c)?.pack())
    }

    fn accepts(&self, state: &[u8]) -> bool {
        Name::unpack(state).is_some_and(|name| self.finish(&name).is_some())
    }

    fn way(&self, state: &[u8]) -> Option<char> {
        match Name::unpack(state)?.part {
            Part::Puny(label) => label.witness.chars().next(),
            _ => None,
        }
    }

    fn most(&self, state: &[u8]) -> u32 {
        Name::unpack(state).map_or(0, |name| MAX_NAME.saturating_sub(name.used))
    }
}
