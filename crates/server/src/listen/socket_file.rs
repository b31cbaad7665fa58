//! A unix socket and its file: a dead server's is replaced, a live one's is not, ours goes with us.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixSocket};

/// The file of a socket, removed when dropped.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    id: FileId,
}

/// Tells our file from one that somebody put in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

/// Listens on `path`. Call it inside a runtime.
pub(super) fn bind(
    path: &Path,
    mode: Option<u32>,
    backlog: u32,
) -> io::Result<(UnixListener, SocketFile)> {
    let socket = UnixSocket::new_stream()?;
    match socket.bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            remove_stale(path)?;
            socket.bind(path)?;
        }
        bound => bound?,
    }
    let file = SocketFile {
        path: path.to_owned(),
        id: FileId::of(path)?,
    };
    // Nobody can connect before `listen`, so nobody gets in by the mode of the umask.
    if let Some(mode) = mode {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok((socket.listen(backlog)?, file))
}

/// Removes the socket of a server that is no more.
fn remove_stale(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        let words = "a file is there that is no socket; move it away";
        return Err(io::Error::new(ErrorKind::AlreadyExists, words));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(io::Error::new(
            ErrorKind::AddrInUse,
            "a running server listens there; stop it first",
        )),
    }
}

// === impl FileId ===

impl FileId {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

// === impl SocketFile ===

impl Drop for SocketFile {
    fn drop(&mut self) {
        if FileId::of(&self.path).is_ok_and(|id| id == self.id) {
            // If it cannot be removed, the next server finds it stale.
            let _ = fs::remove_file(&self.path);
        }
    }
}
