//! A timer finer than tokio's, which ticks in milliseconds.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Ticks.
pub struct Ticker(AsyncFd<OwnedFd>);

// === impl Ticker ===

impl Ticker {
    /// Ticks that often.
    pub fn every(period: Duration) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let period = Timespec::try_from(period).map_err(io::Error::other)?;
        let course = Itimerspec {
            it_interval: period,
            it_value: period,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &course)?;
        #[expect(
            deprecated,
            reason = "what it warns of, a descriptor that changes, an OwnedFd does not do"
        )]
        let timer = AsyncFd::new(timer)?;
        Ok(Self(timer))
    }

    /// Waits for the next tick, or none if there were some since the last.
    pub async fn tick(&mut self) -> io::Result<()> {
        let mut ticks = [0; 8];
        loop {
            let mut ready = self.0.readable().await?;
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut ticks)?));
            // Someone else's error is an early wake: wait on.
            if let Ok(read) = read {
                // It has given all its ticks: another look before the next one would be in vain.
                ready.clear_ready();
                return read.map(|_| ());
            }
        }
    }
}
