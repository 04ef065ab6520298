//! JSON values with exact numbers, read by the grammar of RFC 8259 and nothing else.
//!
//! This shares nothing with the engine, on purpose: it says what a text is that the engine let through.

use std::cmp::Ordering;
use std::fmt::{self, Display, Write};

/// A JSON value.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    Array(Vec<Json>),
    /// Members in their order; no name comes twice.
    Object(Vec<(String, Json)>),
}

/// A number: `0.digits * 10^exponent`, without zeros at either end of the digits; zero has no digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    spelling: String,
    is_negative: bool,
    digits: String,
    exponent: i64,
}

impl Number {
    /// A number as JSON spells it; `None` if its exponent is out of reach.
    pub(crate) fn new(spelling: &str) -> Option<Number> {
        let (mantissa, exponent) = spelling.split_once(['e', 'E']).unwrap_or((spelling, "0"));
        let exponent: i64 = exponent.parse().ok().filter(|e: &i64| e.unsigned_abs() < 1 << 40)?;
        let (whole, fraction) = mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa, ""));
        let whole = whole.trim_start_matches('-');
        let all = format!("{whole}{fraction}");
        let leading = all.len() - all.trim_start_matches('0').len();
        let digits = all.trim_matches('0').to_string();
        let exponent = if digits.is_empty() { 0 } else { exponent + whole.len() as i64 - leading as i64 };
        let is_negative = spelling.starts_with('-') && !digits.is_empty();
        Some(Number { spelling: spelling.into(), is_negative, digits, exponent })
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.exponent >= self.digits.len() as i64
    }

    /// The number times `10^power`, if that is a whole number of less than 38 digits.
    fn scaled(&self, power: i64) -> Option<i128> {
        let zeros = self.exponent + power - self.digits.len() as i64;
        if self.digits.is_empty() {
            return Some(0);
        }
        let zeros = usize::try_from(zeros).ok().filter(|zeros| zeros + self.digits.len() < 38)?;
        format!("{}{}", self.digits, "0".repeat(zeros)).parse().ok()
    }

    /// Whether the number is a multiple of another, if that is easily told.
    pub(crate) fn is_multiple_of(&self, step: &Number) -> Option<bool> {
        if self.digits.is_empty() {
            return Some(true);
        }
        let places = |n: &Number| n.digits.len() as i64 - n.exponent;
        let power = places(self).max(places(step));
        let (value, step) = (self.scaled(power)?, step.scaled(power)?);
        (step != 0).then(|| value % step == 0)
    }

    /// A count, as keywords have it.
    pub(crate) fn as_count(&self) -> Option<u64> {
        let value = self.scaled(0).filter(|_| self.is_integer() && !self.is_negative)?;
        u64::try_from(value).ok()
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        let sign = |n: &Number| if n.digits.is_empty() { 0 } else { 1 - 2 * i32::from(n.is_negative) };
        let size = self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then(match sign(self) {
            0 => Ordering::Equal,
            1 => size,
            _ => size.reverse(),
        })
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Json {
    pub(crate) fn text(text: &str) -> Json {
        Json::Text(text.into())
    }

    pub(crate) fn number(spelling: &str) -> Json {
        Json::Number(Number::new(spelling).expect("a number"))
    }

    /// A member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(n, _)| n == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Equality as JSON Schema has it: numbers by value, objects without order.
    pub(crate) fn equals(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Null, Json::Null) => true,
            (Json::Bool(a), Json::Bool(b)) => a == b,
            (Json::Number(a), Json::Number(b)) => a.cmp(b) == Ordering::Equal,
            (Json::Text(a), Json::Text(b)) => a == b,
            (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b)),
            (Json::Object(a), Json::Object(b)) => {
                let has = |(name, value): &(String, Json)| other.get(name).is_some_and(|found| value.equals(found));
                a.len() == b.len() && a.iter().all(has)
            }
            _ => false,
        }
    }
}

impl Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(number) => f.write_str(&number.spelling),
            Json::Text(text) => quote(f, text),
            Json::Array(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { "," })?;
                }
                f.write_char(']')
            }
            Json::Object(members) => {
                f.write_char('{')?;
                for (i, (name, value)) in members.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    quote(f, name)?;
                    write!(f, ":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\0'..' ' => write!(f, "\\u{:04x}", c as u32)?,
            _ => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// Why a text is no JSON value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is none, or one that no schema admits: a name comes twice, or half a surrogate pair stands alone.
    Malformed(&'static str),
    /// It may be one, but nests too deep or has a number of too many digits for this reader.
    Unknown,
}

/// Reads a whole text.
pub(crate) fn read(text: &[u8]) -> Result<Json, Refused> {
    let text = std::str::from_utf8(text).map_err(|_| Refused::Malformed("not UTF-8"))?;
    let mut reader = Reader { rest: text, depth: 0 };
    reader.space();
    let value = reader.value()?;
    reader.space();
    if reader.rest.is_empty() { Ok(value) } else { Err(Refused::Malformed("something follows the value")) }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self) -> Result<Json, Refused> {
        const MOST: usize = 300;
        self.depth += 1;
        if self.depth > MOST {
            return Err(Refused::Unknown);
        }
        let value = match self.rest.bytes().next() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.text().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.eat("null") => Ok(Json::Null),
            _ if self.eat("true") => Ok(Json::Bool(true)),
            _ if self.eat("false") => Ok(Json::Bool(false)),
            _ => Err(Refused::Malformed("no value")),
        };
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Json, Refused> {
        self.eat("{");
        let mut members: Vec<(String, Json)> = Vec::new();
        self.space();
        if self.eat("}") {
            return Ok(Json::Object(members));
        }
        loop {
            self.space();
            let name = self.text()?;
            if members.iter().any(|(other, _)| *other == name) {
                return Err(Refused::Malformed("a name comes twice"));
            }
            self.space();
            if !self.eat(":") {
                return Err(Refused::Malformed("no colon"));
            }
            self.space();
            members.push((name, self.value()?));
            self.space();
            match self.rest.bytes().next() {
                _ if self.eat(",") => {}
                _ if self.eat("}") => return Ok(Json::Object(members)),
                _ => return Err(Refused::Malformed("an object is not closed")),
            }
        }
    }

    fn array(&mut self) -> Result<Json, Refused> {
        self.eat("[");
        let mut items = Vec::new();
        self.space();
        if self.eat("]") {
            return Ok(Json::Array(items));
        }
        loop {
            self.space();
            items.push(self.value()?);
            self.space();
            match self.rest.bytes().next() {
                _ if self.eat(",") => {}
                _ if self.eat("]") => return Ok(Json::Array(items)),
                _ => return Err(Refused::Malformed("an array is not closed")),
            }
        }
    }

    fn number(&mut self) -> Result<Json, Refused> {
        let bytes = self.rest.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is = |at: usize, set: &[u8]| bytes.get(at).is_some_and(|byte| set.contains(byte));
        let mut at = usize::from(is(0, b"-"));
        let whole = digits(at);
        if whole == 0 || whole > 1 && is(at, b"0") {
            return Err(Refused::Malformed("a number begins with no digit, or with a needless zero"));
        }
        at += whole;
        if is(at, b".") {
            let fraction = digits(at + 1);
            at += 1 + fraction;
            if fraction == 0 {
                return Err(Refused::Malformed("a number ends in a point"));
            }
        }
        if is(at, b"eE") {
            at += 1 + usize::from(is(at + 1, b"+-"));
            let exponent = digits(at);
            at += exponent;
            if exponent == 0 {
                return Err(Refused::Malformed("a number ends in an exponent without digits"));
            }
        }
        let (spelling, rest) = self.rest.split_at(at);
        self.rest = rest;
        Number::new(spelling).map(Json::Number).ok_or(Refused::Unknown)
    }

    fn text(&mut self) -> Result<String, Refused> {
        if !self.eat("\"") {
            return Err(Refused::Malformed("no string"));
        }
        let mut out = String::new();
        loop {
            let mut chars = self.rest.chars();
            let c = chars.next().ok_or(Refused::Malformed("a string is not closed"))?;
            self.rest = chars.as_str();
            match c {
                '"' => return Ok(out),
                '\\' => out.push(self.escape()?),
                '\0'..' ' => return Err(Refused::Malformed("a bare control character")),
                _ => out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Refused> {
        for (letter, c) in [
            ("\"", '"'),
            ("\\", '\\'),
            ("/", '/'),
            ("b", '\u{8}'),
            ("f", '\u{c}'),
            ("n", '\n'),
            ("r", '\r'),
            ("t", '\t'),
        ] {
            if self.eat(letter) {
                return Ok(c);
            }
        }
        let high = self.unit()?;
        if let 0xD800..0xDC00 = high {
            let before = self.rest;
            if self.eat("\\")
                && let low @ 0xDC00..0xE000 = self.unit()?
            {
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                return char::from_u32(code).ok_or(Refused::Malformed("no character"));
            }
            self.rest = before;
        }
        char::from_u32(high).ok_or(Refused::Malformed("half a surrogate pair"))
    }

    fn unit(&mut self) -> Result<u32, Refused> {
        let wrong = Refused::Malformed("a wrong escape");
        let digits = self.rest.strip_prefix('u').and_then(|rest| rest.get(..4));
        let Some(digits) = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) else {
            return Err(wrong);
        };
        self.rest = &self.rest[5..];
        u32::from_str_radix(digits, 16).map_err(|_| wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value() {
        let sorted = ["-1e3", "-10.5", "-0.2", "0", "1e-3", "0.01", "1", "1.5", "2", "10", "10.01", "1e2", "123e5"];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(Number::new(a).cmp(&Number::new(b)), i.cmp(&j), "{a} {b}");
            }
        }
        for (a, b) in [("1", "1.0"), ("10e-1", "1"), ("-0", "0.00"), ("0.5e3", "500")] {
            assert!(Json::number(a).equals(&Json::number(b)), "{a} {b}");
        }
        for (value, step, expected) in
            [("3", "1.5", true), ("0.3", "0.1", true), ("1", "0.3", false), ("1e3", "7", false)]
        {
            assert_eq!(Number::new(value).unwrap().is_multiple_of(&Number::new(step).unwrap()), Some(expected));
        }
    }

    #[test]
    fn what_is_json() {
        for text in ["null", " [1, {\"a\\u0062\": -0.5e+3}]\n", "\"\\ud83d\\ude00\"", "{}", "[[]]"] {
            assert!(read(text.as_bytes()).is_ok(), "{text}");
        }
        for text in
            ["", "01", "1.", "[1,]", "{\"a\":1,\"\\u0061\":2}", "\"\\ud83d\"", "\"\n\"", "nul", "1 2", "\u{a0}1"]
        {
            assert!(matches!(read(text.as_bytes()), Err(Refused::Malformed(_))), "{text}");
        }
        let text = r#"{"a":[1.50,"\u0001\"é",true,null],"b":{}}"#;
        assert_eq!(read(text.as_bytes()).unwrap().to_string(), text);
    }
}
