//! [`Writer`] and [`Reader`]: bytes of messages. Numbers are little-endian, texts stand behind their length.

use tfrt_async::{ClusterTask, Error, ErrorCode};

/// The most bytes of the message of an error; what is longer is cut.
const MAX_MESSAGE_BYTES: usize = 4096;

/// Bytes that are written.
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn len(&mut self, len: usize) {
        self.u32(u32::try_from(len).unwrap_or(u32::MAX));
    }

    pub fn text(&mut self, text: &str) {
        self.len(text.len());
        self.0.extend(text.as_bytes());
    }

    pub fn task(&mut self, task: &ClusterTask) {
        self.text(&task.job);
        self.u32(task.task);
    }

    pub fn error(&mut self, error: &Error) {
        self.u8(error.code() as u8);
        let message = error.message();
        let mut len = message.len().min(MAX_MESSAGE_BYTES);
        while !message.is_char_boundary(len) {
            len -= 1;
        }
        self.text(&message[..len]);
        self.u8(error.task().is_some().into());
        if let Some(task) = error.task() {
            self.task(task);
        }
    }
}

/// Bytes that are read.
pub struct Reader<'b> {
    /// A name of the bytes, for messages.
    what: &'static str,
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    /// Begins to read.
    pub fn new(what: &'static str, bytes: &'b [u8]) -> Reader<'b> {
        Reader { what, bytes, at: 0 }
    }

    /// Returns an error at this place.
    #[cold]
    pub fn wrong(&self, expected: &str) -> Error {
        let (what, at) = (self.what, self.at);
        Error::invalid_argument(format!("{what}, byte {at}: expected {expected}"))
    }

    /// Checks that nothing is left.
    pub fn end(&self) -> Result<(), Error> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            n_left => Err(self.wrong(&format!("the end, found {n_left} bytes"))),
        }
    }

    pub fn take(&mut self, len: usize) -> Result<&'b [u8], Error> {
        let end = self.at.checked_add(len);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| {
            let n_left = self.bytes.len() - self.at;
            self.wrong(&format!("{len} bytes, found {n_left}"))
        })?;
        self.at += len;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().expect("as many bytes were taken"))
    }

    pub fn u8(&mut self) -> Result<u8, Error> {
        self.array().map(|[byte]| byte)
    }

    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn usize(&mut self) -> Result<usize, Error> {
        let number = self.u64()?;
        usize::try_from(number)
            .map_err(|_| self.wrong(&format!("a size of this machine, found {number}")))
    }

    /// Reads a number of things that have so many bytes each or more.
    pub fn count(&mut self, min_bytes_each: usize) -> Result<usize, Error> {
        let count = self.u32()? as usize;
        let n_left = self.bytes.len() - self.at;
        match count <= n_left / min_bytes_each {
            true => Ok(count),
            false => Err(self.wrong(&format!("at most {n_left} bytes of things, found {count}"))),
        }
    }

    pub fn flag(&mut self) -> Result<bool, Error> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.wrong(&format!("0 or 1, found {other}"))),
        }
    }

    pub fn entry<T: Copy>(&mut self, table: &[T]) -> Result<T, Error> {
        let number = self.u8()?;
        let entry = table.get(usize::from(number)).copied();
        let len = table.len();
        entry.ok_or_else(|| self.wrong(&format!("a number below {len}, found {number}")))
    }

    pub fn text(&mut self) -> Result<&'b str, Error> {
        let len = self.count(1)?;
        let bytes = self.take(len)?;
        std::str::from_utf8(bytes).map_err(|_| self.wrong("a text in UTF-8 before"))
    }

    pub fn task(&mut self) -> Result<ClusterTask, Error> {
        let job = self.text()?.to_owned();
        let task = self.u32()?;
        Ok(ClusterTask { job, task })
    }

    pub fn error(&mut self) -> Result<Error, Error> {
        let code = self.entry(&ErrorCode::ALL)?;
        if code == ErrorCode::Ok {
            return Err(self.wrong("the code of an error before"));
        }
        let message = self.text()?;
        if message.len() > MAX_MESSAGE_BYTES {
            let len = message.len();
            return Err(self.wrong(&format!(
                "a message of at most {MAX_MESSAGE_BYTES} bytes before, found {len}"
            )));
        }
        let error = Error::new(code, message);
        match self.flag()? {
            true => Ok(error.with_task(self.task()?)),
            false => Ok(error),
        }
    }
}
