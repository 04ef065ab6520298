//! The GGUF container: typed metadata, and a table of tensors whose bytes follow.
//!
//! The file is read as hostile. Every count is held against what is left of the file before anything is allocated, every
//! tensor's extent is checked when the file is opened, so a truncated download is an error at once and not in the
//! middle of loading. Versions 2 and 3, little endian.

use crate::error::{Error, Result};
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Entries of metadata, and tensors, that a file may have.
const MAX_ENTRIES: u64 = 1 << 16;
/// Elements that an array of metadata may have; the largest vocabularies have a quarter of this.
const MAX_ARRAY: u64 = 1 << 20;
/// Bytes that a string may have; chat templates take a few thousand.
const MAX_STRING: u64 = 1 << 20;

/// One value of metadata. Integers of all widths are kept as `i64`, floats as `f64`.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Any integer.
    Integer(i64),
    /// Any float.
    Float(f64),
    /// A Boolean.
    Bool(bool),
    /// Text; ill-formed UTF-8 is refused.
    Text(String),
    /// Integers or Booleans.
    Integers(Vec<i64>),
    /// Floats.
    Floats(Vec<f32>),
    /// Texts.
    Texts(Vec<String>),
}

/// Where a tensor lies and how it is stored.
#[derive(Debug, Clone)]
pub struct TensorInfo {
    /// Rows and columns, slowest first (GGUF lists the fastest first).
    pub shape: Vec<usize>,
    /// The quantisation.
    pub dtype: GgmlDType,
    offset: u64,
    bytes: usize,
}

/// An open GGUF file.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    file: File,
    metadata: FxHashMap<String, Value>,
    tensors: FxHashMap<String, TensorInfo>,
}

impl Gguf {
    /// Reads the header, and checks that every tensor lies within the file.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(Error::Malformed { path: path.to_owned(), reason: "it is not a regular file".into() });
        }
        let mut reader = Header { inner: BufReader::with_capacity(1 << 16, file), left: metadata.len() };
        let (metadata, tensors) = reader.read(metadata.len()).map_err(|failure| match failure {
            Failure::Io(source) if source.kind() != std::io::ErrorKind::UnexpectedEof => io(source),
            Failure::Io(_) => Error::Malformed { path: path.to_owned(), reason: "it ends within its header".into() },
            Failure::Malformed(reason) => Error::Malformed { path: path.to_owned(), reason },
        })?;
        Ok(Self { path: path.to_owned(), file: reader.inner.into_inner(), metadata, tensors })
    }

    /// The file's path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error that says what this file lacks or has wrong.
    pub fn malformed(&self, reason: impl Into<String>) -> Error {
        Error::Malformed { path: self.path.clone(), reason: reason.into() }
    }

    /// An error that says what of this file is beyond this crate.
    pub fn unsupported(&self, what: impl Into<String>) -> Error {
        Error::Unsupported { path: self.path.clone(), what: what.into() }
    }

    /// A value of metadata.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    /// A text, or `None` where the key is absent or not a text.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// An integer that is not negative.
    pub fn size(&self, key: &str) -> Option<usize> {
        match self.value(key) {
            Some(&Value::Integer(value)) => usize::try_from(value).ok(),
            _ => None,
        }
    }

    /// An integer that is not negative and that the model cannot do without.
    pub fn required_size(&self, key: &str) -> Result<usize> {
        self.size(key).ok_or_else(|| self.malformed(format!("its metadata has no usable {key:?}")))
    }

    /// A number.
    pub fn float(&self, key: &str) -> Option<f64> {
        match self.value(key) {
            Some(&Value::Float(value)) => Some(value),
            Some(&Value::Integer(value)) => Some(value as f64),
            _ => None,
        }
    }

    /// A Boolean.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.value(key) {
            Some(&Value::Bool(value)) => Some(value),
            _ => None,
        }
    }

    /// A tensor's place and form.
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    /// Reads a tensor's bytes; its shape must be `shape`.
    pub fn bytes(&mut self, name: &str, shape: &[usize]) -> Result<(GgmlDType, Vec<u8>)> {
        let Some(info) = self.tensors.get(name) else {
            return Err(self.malformed(format!("it has no tensor {name:?}")));
        };
        if info.shape != shape {
            let reason = format!("tensor {name:?} has the shape {:?}, not {shape:?}", info.shape);
            return Err(self.malformed(reason));
        }
        let mut bytes = vec![0u8; info.bytes];
        let dtype = info.dtype;
        self.file
            .seek(SeekFrom::Start(info.offset))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|source| Error::Io { path: self.path.clone(), source })?;
        Ok((dtype, bytes))
    }

    /// Reads a vector of floats.
    pub fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>> {
        let (dtype, bytes) = self.bytes(name, &[len])?;
        let storage = QStorage::from_data(Cow::Owned(bytes), &candle_core::Device::Cpu, dtype)?;
        Ok(QTensor::new(storage, len)?.dequantize(&candle_core::Device::Cpu)?.to_vec1()?)
    }
}

enum Failure {
    Io(std::io::Error),
    Malformed(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

fn malformed<T>(reason: impl Into<String>) -> std::result::Result<T, Failure> {
    Err(Failure::Malformed(reason.into()))
}

type Parsed<T> = std::result::Result<T, Failure>;
type Tables = (FxHashMap<String, Value>, FxHashMap<String, TensorInfo>);

/// Reads forward and knows how many bytes of the file are left.
struct Header {
    inner: BufReader<File>,
    left: u64,
}

impl Header {
    fn bytes<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let mut buffer = [0; N];
        self.inner.read_exact(&mut buffer)?;
        self.left = self.left.saturating_sub(N as u64);
        Ok(buffer)
    }

    fn u32(&mut self) -> Parsed<u32> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Parsed<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn text(&mut self) -> Parsed<String> {
        let len = self.u64()?;
        if len > self.left.min(MAX_STRING) {
            return malformed(format!("it has a text of {len} bytes, with {} left in the file", self.left));
        }
        let mut buffer = vec![0; len as usize];
        self.inner.read_exact(&mut buffer)?;
        self.left -= len;
        String::from_utf8(buffer).or_else(|_| malformed("it has a text that is not UTF-8"))
    }

    /// A scalar of the type with GGUF's number `kind`.
    fn scalar(&mut self, kind: u32) -> Parsed<Value> {
        Ok(match kind {
            0 => Value::Integer(self.bytes::<1>()?[0].into()),
            1 => Value::Integer((self.bytes::<1>()?[0] as i8).into()),
            2 => Value::Integer(u16::from_le_bytes(self.bytes()?).into()),
            3 => Value::Integer(i16::from_le_bytes(self.bytes()?).into()),
            4 => Value::Integer(self.u32()?.into()),
            5 => Value::Integer(i32::from_le_bytes(self.bytes()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.bytes()?).into()),
            7 => Value::Bool(self.bytes::<1>()?[0] != 0),
            8 => Value::Text(self.text()?),
            10 => match i64::try_from(self.u64()?) {
                Ok(value) => Value::Integer(value),
                Err(_) => return malformed("it has an integer beyond 63 bits"),
            },
            11 => Value::Integer(i64::from_le_bytes(self.bytes()?)),
            12 => Value::Float(f64::from_le_bytes(self.bytes()?)),
            _ => return malformed(format!("it has a value of the unknown type {kind}")),
        })
    }

    fn array(&mut self) -> Parsed<Value> {
        let kind = self.u32()?;
        let count = self.u64()?;
        let least = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            _ => return malformed(format!("it has an array of the unknown type {kind}")),
        };
        if count > MAX_ARRAY || count * least > self.left {
            return malformed(format!("it has an array of {count} elements, with {} bytes left", self.left));
        }
        let mut array = match kind {
            6 | 12 => Value::Floats(Vec::new()),
            8 => Value::Texts(Vec::new()),
            _ => Value::Integers(Vec::new()),
        };
        for _ in 0..count {
            match (&mut array, self.scalar(kind)?) {
                (Value::Integers(all), Value::Integer(one)) => all.push(one),
                (Value::Integers(all), Value::Bool(one)) => all.push(one.into()),
                (Value::Floats(all), Value::Float(one)) => all.push(one as f32),
                (Value::Texts(all), Value::Text(one)) => all.push(one),
                _ => return malformed("it has an array of mixed types"),
            }
        }
        Ok(array)
    }

    fn read(&mut self, file_len: u64) -> Parsed<Tables> {
        if self.left < 24 || &self.bytes()? != b"GGUF" {
            return malformed("it does not begin with the mark \"GGUF\"");
        }
        let version = self.u32()?;
        if !(2..=3).contains(&version) {
            return malformed(format!("it has the version {version}; versions 2 and 3 are known"));
        }
        let (tensor_count, entry_count) = (self.u64()?, self.u64()?);
        if tensor_count > MAX_ENTRIES || entry_count > MAX_ENTRIES {
            return malformed(format!("it claims {tensor_count} tensors and {entry_count} entries of metadata"));
        }
        let mut metadata = FxHashMap::default();
        for _ in 0..entry_count {
            let key = self.text()?;
            let value = match self.u32()? {
                9 => self.array()?,
                kind => self.scalar(kind)?,
            };
            metadata.insert(key, value);
        }
        let mut tensors = FxHashMap::default();
        for _ in 0..tensor_count {
            let (name, info) = self.tensor_info()?;
            tensors.insert(name, info);
        }
        let alignment = match metadata.get("general.alignment") {
            None => 32,
            Some(&Value::Integer(value)) if value > 0 && value <= 1 << 20 => value as u64,
            Some(_) => return malformed("its \"general.alignment\" is out of range"),
        };
        let start = (file_len - self.left).next_multiple_of(alignment);
        for (name, info) in &mut tensors {
            let end = start.checked_add(info.offset).and_then(|offset| {
                info.offset = offset;
                offset.checked_add(info.bytes as u64)
            });
            match end {
                Some(end) if end <= file_len => {}
                Some(end) => {
                    return malformed(format!(
                        "it is cut short: tensor {name:?} reaches to byte {end}, but the file has {file_len}"
                    ));
                }
                None => return malformed(format!("tensor {name:?} lies beyond any file")),
            }
        }
        Ok((metadata, tensors))
    }

    fn tensor_info(&mut self) -> Parsed<(String, TensorInfo)> {
        let name = self.text()?;
        let rank = self.u32()?;
        if !(1..=4).contains(&rank) {
            return malformed(format!("tensor {name:?} has {rank} dimensions"));
        }
        let mut shape = Vec::new();
        for _ in 0..rank {
            match usize::try_from(self.u64()?) {
                Ok(extent) if extent > 0 => shape.push(extent),
                _ => return malformed(format!("tensor {name:?} has an extent that is out of range")),
            }
        }
        shape.reverse();
        let kind = self.u32()?;
        let Some(dtype) = quantisation(kind) else {
            return malformed(format!("tensor {name:?} has the unknown quantisation {kind}"));
        };
        let offset = self.u64()?;
        let columns = shape[shape.len() - 1];
        let elements = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
        let bytes = elements
            .filter(|_| columns.is_multiple_of(dtype.block_size()))
            .and_then(|elements| (elements / dtype.block_size()).checked_mul(dtype.type_size()));
        match bytes {
            Some(bytes) => Ok((name, TensorInfo { shape, dtype, offset, bytes })),
            None => malformed(format!("tensor {name:?} has the impossible shape {shape:?}")),
        }
    }
}

/// The quantisation with ggml's number `kind`.
fn quantisation(kind: u32) -> Option<GgmlDType> {
    Some(match kind {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        30 => GgmlDType::BF16,
        _ => return None,
    })
}
