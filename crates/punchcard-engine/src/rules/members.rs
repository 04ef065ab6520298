//! Members of JSON objects, as their text comes in.
//!
//! A copy is made for each token, so everything that grows with the text is shared between copies.

use super::chain::Chain;

/// What is around a value.
#[derive(Clone, Debug)]
pub(crate) enum Container {
    /// The name of the member whose value is being read, as it is written in a JSON pointer.
    Object(Option<Box<str>>),
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
    containers: Chain<Container>,
    state: State,
    /// A colon was read, and its value has not begun.
    before_value: bool,
    name: Chain<u8>,
}

/// The value of a member begins or ends.
#[derive(Debug)]
pub(crate) struct MemberEvent {
    /// What is around the value.
    pub(crate) path: Chain<Container>,
    pub(crate) is_end: bool,
    pub(crate) position: usize,
}

/// The JSON pointer to a value.
pub(crate) fn pointer(path: &Chain<Container>) -> String {
    let mut pointer = String::new();
    for container in path.from(0) {
        pointer.push('/');
        match container {
            Container::Object(name) => {
                pointer.push_str(name.as_deref().unwrap_or_default());
            }
            Container::Array(count) => pointer.push_str(&count.saturating_sub(1).to_string()),
        }
    }
    pointer
}

impl Members {
    /// How many arrays and objects are open.
    pub(crate) fn depth(&self) -> usize {
        self.containers.len()
    }

    /// One more byte, at a position of the text.
    pub(crate) fn take(&mut self, byte: u8, position: usize) -> Vec<MemberEvent> {
        let mut out = Vec::new();
        match (self.state, byte) {
            (State::Text { escaped: true }, _) => self.state = State::Text { escaped: false },
            (State::Text { .. }, b'\\') => self.state = State::Text { escaped: true },
            (State::Text { .. }, b'"') => self.end_value(position + 1, &mut out),
            (State::Text { .. }, _) => {}
            (State::Name { escaped: true }, _) => {
                self.extend_name(byte);
                self.state = State::Name { escaped: false };
            }
            (State::Name { .. }, b'"') => {
                let name: Vec<u8> = self.name.from(0).into_iter().copied().chain([byte]).collect();
                self.name = Chain::default();
                let name =
                    serde_json::from_slice(&name).unwrap_or_else(|_| String::from_utf8_lossy(&name).into_owned());
                if let Some(Container::Object(_)) = self.containers.last() {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    self.replace_last(Container::Object(Some(name.into())));
                }
                self.state = State::Between;
            }
            (State::Name { .. }, _) => {
                self.extend_name(byte);
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
    pub(crate) fn finish(&mut self, position: usize) -> Vec<MemberEvent> {
        let mut out = Vec::new();
        if self.state == State::Scalar {
            self.end_value(position, &mut out);
        }
        out
    }

    fn between(&mut self, byte: u8, position: usize, out: &mut Vec<MemberEvent>) {
        let names = matches!(self.containers.last(), Some(Container::Object(None)));
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b',' => {}
            b':' => self.before_value = true,
            b'}' | b']' => {
                self.containers = self.containers.without_last();
                self.end_value(position + 1, out);
            }
            b'"' if names => {
                self.extend_name(byte);
                self.state = State::Name { escaped: false };
            }
            _ => {
                if std::mem::take(&mut self.before_value) {
                    out.push(self.event(false, position));
                }
                if let Some(&Container::Array(count)) = self.containers.last() {
                    self.replace_last(Container::Array(count + 1));
                }
                match byte {
                    b'{' => self.containers = std::mem::take(&mut self.containers).with(Container::Object(None)),
                    b'[' => self.containers = std::mem::take(&mut self.containers).with(Container::Array(0)),
                    b'"' => self.state = State::Text { escaped: false },
                    _ => self.state = State::Scalar,
                }
            }
        }
    }

    fn end_value(&mut self, position: usize, out: &mut Vec<MemberEvent>) {
        self.state = State::Between;
        if let Some(Container::Object(Some(_))) = self.containers.last() {
            out.push(self.event(true, position));
            self.replace_last(Container::Object(None));
        }
    }

    fn extend_name(&mut self, byte: u8) {
        self.name = std::mem::take(&mut self.name).with(byte);
    }

    fn replace_last(&mut self, container: Container) {
        self.containers = self.containers.without_last().with(container);
    }

    /// The member whose value is being read.
    fn event(&self, is_end: bool, position: usize) -> MemberEvent {
        MemberEvent { path: self.containers.clone(), is_end, position }
    }
}
