//! `grpc-timeout`: how long a client will wait.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::timeout;

/// Reads a timeout: up to eight digits and a unit.
pub(super) fn parse(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits
        .iter()
        .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    let span = match unit {
        b'H' => Duration::from_secs(number * 3_600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    };
    Some(span)
}

/// What `future` comes to, or `None` after `most`. One that is ready at once costs no timer. It is asked for
/// pinned: moved in, a large one would be copied whole.
pub(super) async fn within<T>(
    most: Duration,
    mut future: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    match poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
        Poll::Ready(output) => Some(output),
        Poll::Pending => timeout(most, future).await.ok(),
    }
}

/// Lets `future` run to its end, or to the end of the client's patience; then it is dropped, and with it
/// the call is taken back.
pub(super) async fn until(patience: Option<Duration>, future: Pin<&mut impl Future<Output = ()>>) {
    match patience {
        Some(most) => within(most, future).await.unwrap_or_default(),
        None => future.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_digits_and_a_unit() {
        let check = |text: &str, expected| assert_eq!(parse(text.as_bytes()), expected, "{text}");
        check("20m", Some(Duration::from_millis(20)));
        check("1H", Some(Duration::from_hours(1)));
        check("2M", Some(Duration::from_mins(2)));
        check("3S", Some(Duration::from_secs(3)));
        check("4u", Some(Duration::from_micros(4)));
        check("99999999n", Some(Duration::from_nanos(99_999_999)));
        check("99999999H", Some(Duration::from_hours(99_999_999)));
        for text in [
            "",
            "m",
            "20",
            "20ms",
            "-1S",
            "1.5S",
            " 1S",
            "1 S",
            "123456789n",
            "1s",
            "+1S",
        ] {
            check(text, None);
        }
    }
}
