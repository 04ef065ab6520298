//! A-labels: Punycode that decodes to a U-label, and is what that label encodes to.
//!
//! Nothing less than the whole text decides this, so the text itself is the state. What has been read may go on in many
//! ways (until the last hyphen is known, all of it may be plain characters), and that one of them leads to a label is
//! shown by finding it: a *witness*, which is kept beside the text, so that on its way no search is needed and none can
//! fail. The search tries the text as plain characters with a letter or three beyond ASCII, then all ends of one or two
//! digits. That is exact but for a few texts in their last characters, which are then refused.

use super::label::{Label, MAX_LABEL, Rules};
use super::punycode::{decode, encode};

/// `xn--`.
const PREFIX: u32 = 4;
/// A left-to-right letter with the smallest code point beyond ASCII, so of the fewest digits.
const LETTER: char = 'ß';
const DIGITS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789-";

/// The text after `xn--` in lower case, and a witness: what may follow it to the end of the label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ALabel {
    pub text: String,
    pub witness: String,
}

impl ALabel {
    /// The label before its first digit, if there is room for `room` more characters.
    pub(crate) fn start(room: u32, wanted: impl Fn(&Label) -> bool) -> Option<ALabel> {
        let witness = find_witness("", room, wanted)?;
        Some(ALabel { text: String::new(), witness })
    }

    /// The label after one more character, if there is room for `room` more characters after it and it leads to a label
    /// that is `wanted`.
    pub(crate) fn push(&self, c: char, room: u32, wanted: impl Fn(&Label) -> bool) -> Option<ALabel> {
        if !c.is_ascii_alphanumeric() && c != '-' {
            return None;
        }
        let c = c.to_ascii_lowercase();
        let text = format!("{}{c}", self.text);
        let witness = match self.witness.strip_prefix(c) {
            Some(rest) => rest.to_owned(),
            None => find_witness(&text, room, wanted)?,
        };
        Some(ALabel { text, witness })
    }

    /// How many characters there are, with the prefix.
    pub(crate) fn len(&self) -> u32 {
        PREFIX + self.text.len() as u32
    }

    /// The U-label, if this is one's A-label.
    pub(crate) fn label(&self) -> Option<Label> {
        u_label(&self.text)
    }
}

fn u_label(text: &str) -> Option<Label> {
    let chars = decode(text)?;
    let rules = Rules { nfc: true, bounded: false };
    let label = chars.iter().try_fold(Label::default(), |label, &c| label.push(c, rules))?;
    (label.is_complete() && !label.is_ascii() && encode(&chars).as_deref() == Some(text)).then_some(label)
}

fn find_witness(text: &str, room: u32, wanted: impl Fn(&Label) -> bool) -> Option<String> {
    let good = |text: &str| u_label(text).is_some_and(|label| wanted(&label));
    let room = room.min((MAX_LABEL - PREFIX).checked_sub(text.len() as u32)?) as usize;
    if good(text) {
        return Some(String::new());
    }
    let plain: Vec<char> = text.chars().collect();
    let first_last = [(false, false), (true, false), (false, true), (true, true)];
    for at in (0..=plain.len()).rev() {
        for (first, last) in first_last {
            let mut label = plain.clone();
            label.insert(at, LETTER);
            if first {
                label.insert(0, LETTER);
            }
            if last {
                label.push(LETTER);
            }
            if let Some(encoded) = encode(&label)
                && let Some(rest) = encoded.strip_prefix(text)
                && rest.len() <= room
                && good(&encoded)
            {
                return Some(rest.to_owned());
            }
        }
    }
    let mut longer = text.to_owned();
    for length in 1..=room.min(2) {
        for number in 0..DIGITS.len().pow(length as u32) {
            longer.truncate(text.len());
            longer.extend((0..length).map(|i| char::from(DIGITS[number / DIGITS.len().pow(i as u32) % DIGITS.len()])));
            if good(&longer) {
                return Some(longer[text.len()..].to_owned());
            }
        }
    }
    None
}
