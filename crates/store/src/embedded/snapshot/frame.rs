//! Frames: pieces of a snapshot with a checksum that covers all pieces before it, too.

use std::io::{self, ErrorKind, Read, Write};

use super::super::sip::sip13;
use super::{MAGIC, SnapshotError, VERSION};

/// The longest body of a frame that is read. A shard with the longest logs in all its slots would
/// have more; memory for those ends long before.
const LONGEST_BODY: u64 = 1 << 32;

/// Writes frames.
pub(super) struct FrameWriter<W> {
    out: W,
    sum: u64,
    bytes: u64,
}

/// Reads frames.
pub(super) struct FrameReader<R> {
    input: R,
    version: u32,
    sum: u64,
    /// How many were read or begun.
    frames: u64,
    body: Vec<u8>,
}

/// The numbers of a body, one after the other.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    frame: u64,
}

// === impl FrameWriter ===

impl<W: Write> FrameWriter<W> {
    /// Begins a snapshot.
    pub(super) fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(Self {
            out,
            sum: u64::from(VERSION),
            bytes: (MAGIC.len() + size_of_val(&VERSION)) as u64,
        })
    }

    /// Writes the parts of a body as one frame.
    pub(super) fn write(&mut self, body: &[u8]) -> io::Result<()> {
        let length = body.len() as u64;
        self.sum = sip13([self.sum, length], body);
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(body)?;
        self.out.write_all(&self.sum.to_le_bytes())?;
        self.bytes += length + 16;
        Ok(())
    }

    /// Ends the snapshot and says how many bytes it has.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.out.flush()?;
        Ok(self.bytes)
    }
}

// === impl FrameReader ===

impl<R: Read> FrameReader<R> {
    /// Begins to read a snapshot.
    pub(super) fn begin(mut input: R) -> Result<Self, SnapshotError> {
        let magic: [u8; 8] = read_array(&mut input)?;
        if magic != MAGIC {
            return Err(SnapshotError::NotASnapshot);
        }
        let found = u32::from_le_bytes(read_array(&mut input)?);
        if !(1..=VERSION).contains(&found) {
            return Err(SnapshotError::UnknownVersion { found });
        }
        Ok(Self {
            input,
            version: found,
            sum: u64::from(found),
            frames: 0,
            body: Vec::new(),
        })
    }

    /// The version of the format.
    pub(super) fn version(&self) -> u32 {
        self.version
    }

    /// The next frame's body, checked.
    pub(super) fn next(&mut self) -> Result<Fields<'_>, SnapshotError> {
        self.frames += 1;
        let length = u64::from_le_bytes(read_array(&mut self.input)?);
        if length > LONGEST_BODY {
            return Err(self.damaged("a length that no part has"));
        }
        self.body.clear();
        // A length that lies takes no more memory than there are bytes.
        let read = self.input.by_ref().take(length).read_to_end(&mut self.body);
        if read.map_err(SnapshotError::Unreadable)? as u64 != length {
            return Err(SnapshotError::CutShort);
        }
        self.sum = sip13([self.sum, length], &self.body);
        if u64::from_le_bytes(read_array(&mut self.input)?) != self.sum {
            return Err(self.damaged("its checksum does not match"));
        }
        Ok(Fields {
            bytes: &self.body,
            frame: self.frames,
        })
    }

    /// Makes sure that nothing follows.
    pub(super) fn finish(mut self) -> Result<(), SnapshotError> {
        let mut more = Vec::new();
        let read = self.input.by_ref().take(1).read_to_end(&mut more);
        match read.map_err(SnapshotError::Unreadable)? {
            0 => Ok(()),
            _ => Err(self.damaged("something follows")),
        }
    }

    fn damaged(&self, what: &'static str) -> SnapshotError {
        SnapshotError::Damaged {
            what,
            frame: self.frames,
        }
    }
}

// === impl Fields ===

impl<'a> Fields<'a> {
    pub(super) fn u8(&mut self) -> Result<u8, SnapshotError> {
        self.take().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, SnapshotError> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, SnapshotError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, SnapshotError> {
        self.take().map(u64::from_le_bytes)
    }

    /// The next `count` words.
    pub(super) fn words(&mut self, count: usize) -> Result<&'a [[u8; 8]], SnapshotError> {
        let (words, rest) = count
            .checked_mul(8)
            .and_then(|length| self.bytes.split_at_checked(length))
            .ok_or_else(|| self.damaged("a block that is cut short"))?;
        self.bytes = rest;
        Ok(words.as_chunks().0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Makes sure that the body has no more.
    pub(super) fn finish(&self) -> Result<(), SnapshotError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(self.damaged("more than belongs there"))
        }
    }

    pub(super) fn damaged(&self, what: &'static str) -> SnapshotError {
        let frame = self.frame;
        SnapshotError::Damaged { what, frame }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (first, rest) = self
            .bytes
            .split_first_chunk()
            .ok_or_else(|| self.damaged("a number that is cut short"))?;
        self.bytes = rest;
        Ok(*first)
    }
}

fn read_array<const N: usize>(input: &mut impl Read) -> Result<[u8; N], SnapshotError> {
    let mut bytes = [0; N];
    input
        .read_exact(&mut bytes)
        .map_err(|reason| match reason.kind() {
            ErrorKind::UnexpectedEof => SnapshotError::CutShort,
            _ => SnapshotError::Unreadable(reason),
        })?;
    Ok(bytes)
}
