//! Events of folders, where the system has them.

#[cfg(target_os = "linux")]
pub(super) use inotify::Events;
#[cfg(not(target_os = "linux"))]
pub(super) use none::Events;

#[cfg(target_os = "linux")]
mod inotify {
    use std::fs::File;
    use std::io;
    use std::path::PathBuf;

    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    use tokio::net::unix::pipe::Receiver;

    /// Waits for something to happen in folders. The queue of events is not a pipe, but to wait for is
    /// the same, and tokio has no safe type of its own for it.
    #[derive(Debug)]
    pub(in crate::watch) struct Events(Receiver);

    // === impl Events ===

    impl Events {
        /// Listens to folders; `None` if the system has no more listeners to give. A folder that is not
        /// there is not listened to.
        pub(in crate::watch) fn of(folders: &[PathBuf]) -> Option<Self> {
            Self::try_of(folders).ok()
        }

        fn try_of(folders: &[PathBuf]) -> io::Result<Self> {
            let queue = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let wanted = WatchFlags::CLOSE_WRITE
                | WatchFlags::MODIFY
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVE
                | WatchFlags::MOVE_SELF
                | WatchFlags::DELETE_SELF
                | WatchFlags::ONLYDIR;
            for folder in folders {
                let _ = add_watch(&queue, folder, wanted);
            }
            Receiver::from_file_unchecked(File::from(queue)).map(Self)
        }

        /// Ready when anything happens. What it is does not matter, so the queue is never read: it is
        /// thrown away with the listener.
        pub(in crate::watch) async fn any(&self) {
            // An error is as good a reason to look at the files as an event.
            let _ = self.0.readable().await;
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod none {
    use std::path::PathBuf;

    /// There are none.
    #[derive(Debug)]
    pub(in crate::watch) enum Events {}

    // === impl Events ===

    impl Events {
        pub(in crate::watch) fn of(_folders: &[PathBuf]) -> Option<Self> {
            None
        }

        pub(in crate::watch) async fn any(&self) {
            match *self {}
        }
    }
}
