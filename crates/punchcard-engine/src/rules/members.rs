//! Members of JSON objects, as their text comes in.

use super::events::Event;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Container {
    /// The name of the member whose value is being read.
    Object(Option<String>),
    /// How many items were begun.
    Array(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Between tokens.
    #[default]
    Between,
    /// In a number or word.
    Scalar,
    /// In a string; `escaped` after a backslash.
    Text { escaped: bool },
    /// In a member name.
    Name { escaped: bool },
}

/// Follows JSON text, which is taken to be right, and tells where the values of members begin and end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members {
    containers: Vec<Container>,
    state: State,
    /// A colon was read, and its value has not begun.
    before_value: bool,
    name: Vec<u8>,
}

impl Members {
    /// One more byte, at a position of the text.
    pub(crate) fn take(&mut self, byte: u8, position: usize) -> Vec<Event> {
        let mut out = Vec::new();
        match (self.state, byte) {
            (State::Text { escaped: true }, _) => self.state = State::Text { escaped: false },
            (State::Text { .. }, b'\\') => self.state = State::Text { escaped: true },
            (State::Text { .. }, b'"') => self.end_value(position + 1, &mut out),
            (State::Text { .. }, _) => {}
            (State::Name { escaped: true }, _) => {
                self.name.push(byte);
                self.state = State::Name { escaped: false };
            }
            (State::Name { .. }, b'"') => {
                self.name.push(byte);
                let name = serde_json::from_slice(&self.name);
                let name = name.unwrap_or_else(|_| String::from_utf8_lossy(&self.name).into_owned());
                if let Some(Container::Object(open)) = self.containers.last_mut() {
                    *open = Some(name);
                }
                self.state = State::Between;
            }
            (State::Name { .. }, _) => {
                self.name.push(byte);
                self.state = State::Name { escaped: byte == b'\\' };
            }
            (State::Scalar, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') => {
                self.end_value(position, &mut out);
                self.between(byte, position, &mut out);
            }
            (State::Scalar, _) => {}
            (State::Between, _) => self.between(byte, position, &mut out),
        }
        out
    }

    /// The value ends at a position.
    pub(crate) fn finish(&mut self, position: usize) -> Vec<Event> {
        let mut out = Vec::new();
        if self.state == State::Scalar {
            self.end_value(position, &mut out);
        }
        out
    }

    fn between(&mut self, byte: u8, position: usize, out: &mut Vec<Event>) {
        let names = matches!(self.containers.last(), Some(Container::Object(None)));
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b',' => {}
            b':' => self.before_value = true,
            b'}' | b']' => {
                self.containers.pop();
                self.end_value(position + 1, out);
            }
            b'"' if names => {
                self.name = vec![byte];
                self.state = State::Name { escaped: false };
            }
            _ => {
                if std::mem::take(&mut self.before_value) {
                    out.push(self.event(false, position));
                }
                if let Some(Container::Array(count)) = self.containers.last_mut() {
                    *count += 1;
                }
                match byte {
                    b'{' => self.containers.push(Container::Object(None)),
                    b'[' => self.containers.push(Container::Array(0)),
                    b'"' => self.state = State::Text { escaped: false },
                    _ => self.state = State::Scalar,
                }
            }
        }
    }

    fn end_value(&mut self, position: usize, out: &mut Vec<Event>) {
        self.state = State::Between;
        if let Some(Container::Object(Some(_))) = self.containers.last() {
            out.push(self.event(true, position));
            if let Some(Container::Object(name)) = self.containers.last_mut() {
                *name = None;
            }
        }
    }

    /// The member whose value is being read.
    fn event(&self, is_end: bool, position: usize) -> Event {
        let mut pointer = String::new();
        for container in &self.containers {
            pointer.push('/');
            match container {
                Container::Object(name) => {
                    pointer.push_str(&name.as_deref().unwrap_or_default().replace('~', "~0").replace('/', "~1"));
                }
                Container::Array(count) => pointer.push_str(&count.saturating_sub(1).to_string()),
            }
        }
        Event { kind: Arc::from("property"), name: pointer.into(), is_end, position }
    }
}
