//! `grpc-timeout`: how long a client will wait.

use std::pin::Pin;
use std::time::Duration;

use crate::within::within;

/// The time that an answer needs on its way back to a client: a quarter of its timeout, and no more than this.
const MOST_MARGIN: Duration = Duration::from_millis(5);

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

/// The time that a decision may take for a client with this timeout, so that the answer reaches it in time.
pub(super) fn less_margin(timeout: Duration) -> Duration {
    timeout.saturating_sub((timeout / 4).min(MOST_MARGIN))
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
    fn an_answer_has_time_for_its_way_back() {
        for (timeout, decision) in [(20, 15), (100, 95), (8, 6), (0, 0)] {
            let millis = Duration::from_millis;
            assert_eq!(less_margin(millis(timeout)), millis(decision));
        }
    }

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
