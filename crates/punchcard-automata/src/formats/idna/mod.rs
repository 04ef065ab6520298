//! Labels of internationalised domain names: IDNA 2008 (RFC 5890 to 5893) and Punycode (RFC 3492).

mod a_label;
mod classes;
mod label;
mod punycode;
mod tables;

pub(super) use a_label::ALabel;
pub(super) use label::{Label, MAX_LABEL, Rules};

use crate::charset::CharSet;

/// The sets of characters beyond ASCII between which the rules tell a difference.
pub(super) fn sets() -> Vec<CharSet> {
    classes::sets()
}
