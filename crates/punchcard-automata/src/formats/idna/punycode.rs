//! Punycode (RFC 3492): the digits of an A-label after `xn--`, and how many of them a label may take.

use super::tables::BLOCKS;

const BASE: u32 = 36;
const LEAST: u32 = 1;
const MOST: u32 = 26;
const INITIAL_BIAS: u32 = 72;
const INITIAL: u32 = 0x80;

fn threshold(k: u32, bias: u32) -> u32 {
    k.saturating_sub(bias).clamp(LEAST, MOST)
}

fn adapt(delta: u32, length: u32, first: bool) -> u32 {
    let mut delta = if first { delta / 700 } else { delta / 2 };
    delta += delta / length;
    let mut k = 0;
    while delta > ((BASE - LEAST) * MOST) / 2 {
        delta /= BASE - LEAST;
        k += BASE;
    }
    k + (BASE - LEAST + 1) * delta / (delta + 38)
}

/// The label of lower-case digits; `None` if they are no Punycode.
pub(super) fn decode(digits: &str) -> Option<Vec<char>> {
    let (basic, rest) = digits.rsplit_once('-').unwrap_or(("", digits));
    let mut label: Vec<char> = basic.chars().collect();
    let (mut n, mut i, mut bias) = (INITIAL, 0u32, INITIAL_BIAS);
    let mut rest = rest.bytes().peekable();
    while rest.peek().is_some() {
        let (start, mut weight, mut k) = (i, 1u32, BASE);
        loop {
            let digit = match rest.next()? {
                c @ b'a'..=b'z' => u32::from(c - b'a'),
                c @ b'0'..=b'9' => u32::from(c - b'0') + 26,
                _ => return None,
            };
            i = i.checked_add(digit.checked_mul(weight)?)?;
            let threshold = threshold(k, bias);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(BASE - threshold)?;
            k += BASE;
        }
        let length = label.len() as u32 + 1;
        bias = adapt(i - start, length, start == 0 && n == INITIAL && label.len() == basic.len());
        n = n.checked_add(i / length)?;
        i %= length;
        label.insert(i as usize, char::from_u32(n)?);
        i += 1;
    }
    Some(label)
}

/// The digits of a label.
pub(super) fn encode(label: &[char]) -> Option<String> {
    let mut out: String = label.iter().filter(|c| c.is_ascii()).collect();
    let basic = out.len() as u32;
    if basic > 0 {
        out.push('-');
    }
    let (mut n, mut delta, mut bias, mut done) = (INITIAL, 0u32, INITIAL_BIAS, basic);
    while (done as usize) < label.len() {
        let next = label.iter().map(|&c| c as u32).filter(|&c| c >= n).min()?;
        delta = delta.checked_add((next - n).checked_mul(done + 1)?)?;
        n = next;
        for &c in label {
            if (c as u32) < n {
                delta += 1;
            } else if c as u32 == n {
                let (mut q, mut k) = (delta, BASE);
                loop {
                    let threshold = threshold(k, bias);
                    let last = q < threshold;
                    let digit = if last { q } else { threshold + (q - threshold) % (BASE - threshold) };
                    out.push(char::from(if digit < 26 { b'a' + digit as u8 } else { b'0' + (digit - 26) as u8 }));
                    if last {
                        break;
                    }
                    q = (q - threshold) / (BASE - threshold);
                    k += BASE;
                }
                bias = adapt(delta, done + 1, done == basic);
                delta = 0;
                done += 1;
            }
        }
        delta += 1;
        n += 1;
    }
    Some(out)
}

/// `DEAREST[n]`: the smallest delta that may take n digits, whatever the bias.
const DEAREST: [u32; 9] = [0, 0, 1, 36, 1261, 28886, 288_886, 2_888_886, 28_888_886];

/// An upper bound on the length of the A-label of any label of `length` characters, of which `wide` lie in a block
/// beyond ASCII. It depends on so little that a text need not be remembered to keep its A-label within 63 characters.
///
/// The deltas after the first add up to no more than the width of the block times the length, and one step for each
/// place; here they are spread so that they take the most digits.
pub(super) fn longest(block: u8, wide: u32, length: u32) -> u32 {
    if wide == 0 {
        return length;
    }
    let (low, high) = BLOCKS[block as usize];
    let ascii = if length > wide { length - wide + 1 } else { 0 };
    let first = DEAREST.iter().rposition(|&delta| delta <= (high - INITIAL) * length).unwrap_or(0) as u32;
    let (mut others, mut budget) = (wide - 1, (high - low + wide) * length);
    let mut total = 4 + ascii + first + others;
    for pair in DEAREST[1..].windows(2) {
        others = others.min(budget / (pair[1] - pair[0]));
        budget -= others * (pair[1] - pair[0]);
        total += others;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn digits(delta: u32, bias: u32) -> usize {
        let (mut q, mut k, mut count) = (delta, BASE, 1);
        while q >= threshold(k, bias) {
            q = (q - threshold(k, bias)) / (BASE - threshold(k, bias));
            (k, count) = (k + BASE, count + 1);
        }
        count
    }

    #[test]
    fn samples() {
        for (label, encoded) in [
            ("bücher", "bcher-kva"),
            ("münchen-ost", "mnchen-ost-9db"),
            ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
            ("ひとつ屋根の下2", "2-u9tlzr9756bt3uc0v"),
        ] {
            let chars: Vec<char> = label.chars().collect();
            assert_eq!(encode(&chars).as_deref(), Some(encoded));
            assert_eq!(decode(encoded), Some(chars));
        }
        for wrong in ["x", "a_", "99999999", "é"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_dearest_deltas_are_the_smallest_of_their_digits() {
        for (count, &delta) in DEAREST.iter().enumerate().skip(2) {
            assert!((0..220).any(|bias| digits(delta, bias) >= count), "{count}");
            assert!((0..220).all(|bias| digits(delta - 1, bias) < count), "{count}");
        }
    }

    proptest! {
        #[test]
        fn labels_are_within_the_bound(chars in proptest::collection::vec(prop_oneof![
            Just('a'), Just('z'), prop::char::range('α', 'ω'), prop::char::range('가', '힣'), prop::char::range('一', '鿋'),
            any::<char>(),
        ], 1..40)) {
            let wide: Vec<u32> = chars.iter().filter(|c| !c.is_ascii()).map(|&c| c as u32).collect();
            prop_assume!(!wide.is_empty());
            let encoded = encode(&chars).unwrap();
            prop_assert_eq!(decode(&encoded), Some(chars.clone()));
            for (block, &(low, high)) in BLOCKS.iter().enumerate() {
                if wide.iter().all(|c| (low..high).contains(c)) {
                    let bound = longest(block as u8, wide.len() as u32, chars.len() as u32);
                    prop_assert!(4 + encoded.len() as u32 <= bound, "{} {}", encoded, bound);
                }
            }
        }
    }
}
