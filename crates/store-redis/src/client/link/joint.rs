//! Calls of one script that wait at one moment, as one command: Redis takes far less time for it than for one
//! command each.

use crate::client::script::{Joinable, Script};
use crate::client::wire::{Command, begin, bulk};

/// What a [`Joinable`] is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) argument: &'a [u8],
    /// What a test tells the script besides.
    pub(crate) besides: Option<&'a [u8]>,
}

/// The calls that will be one command.
#[derive(Debug, Default)]
pub(super) struct Joint {
    /// What they call; kept when they are gone, for the next are most likely of the same.
    script: Option<Joinable>,
    calls: usize,
    /// What they are about, as it will be sent.
    keys: Vec<u8>,
    arguments: Vec<u8>,
    besides: Vec<u8>,
    /// How many words those are.
    words: usize,
}

/// The most calls in one command, so that Redis is not kept from others for long: about 0.1 ms.
pub(super) const MOST_JOINED: usize = 32;

// === impl Question ===

impl Question<'_> {
    /// Asks it alone.
    pub(crate) fn write(&self, command: &mut Command<'_>) {
        command.number(1).arg(self.key).arg(self.argument);
        if let Some(besides) = self.besides {
            command.arg(besides);
        }
    }
}

// === impl Joint ===

impl Joint {
    pub(super) fn is_empty(&self) -> bool {
        self.calls == 0
    }

    /// Whether there are calls that one of this script can be added to.
    pub(super) fn takes(&self, script: &Joinable) -> bool {
        (1..MOST_JOINED).contains(&self.calls) && self.is_of(script)
    }

    /// Adds a call. Those before it are of the same script, or there are none.
    pub(super) fn add(&mut self, script: &Joinable, question: Question<'_>) {
        if !self.is_of(script) {
            self.script = Some(script.clone());
        }
        self.calls += 1;
        bulk(&mut self.keys, question.key);
        bulk(&mut self.arguments, question.argument);
        self.words += 2;
        if let Some(besides) = question.besides {
            bulk(&mut self.besides, besides);
            self.words += 1;
        }
    }

    /// Writes the command, after which there are no calls, and says how many there were. A lone call is one of
    /// the script that takes no more.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> usize {
        let calls = self.calls;
        let script = match (&self.script, calls) {
            (Some(script), 1) => script.alone(),
            (Some(script), 2..) => script.joined(),
            _ => return 0,
        };
        begin(out, 3 + self.words);
        bulk(out, b"EVALSHA");
        bulk(out, script.sha().as_bytes());
        bulk(out, itoa::Buffer::new().format(calls).as_bytes());
        for words in [&self.keys, &self.arguments, &self.besides] {
            out.extend_from_slice(words);
        }
        self.clear();
        calls
    }

    /// Forgets the calls.
    pub(super) fn clear(&mut self) {
        (self.calls, self.words) = (0, 0);
        for words in [&mut self.keys, &mut self.arguments, &mut self.besides] {
            words.clear();
        }
    }

    fn is_of(&self, script: &Joinable) -> bool {
        let known = self.script.as_ref().map(Joinable::alone);
        known.is_some_and(|known: &Script| known == script.alone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script() -> Joinable {
        Joinable::new(Script::new("alone"), Script::new("joined"))
    }

    fn question(key: &str) -> Question<'_> {
        Question {
            key: key.as_bytes(),
            argument: b"n",
            besides: None,
        }
    }

    fn written(joint: &mut Joint) -> (usize, String) {
        let mut out = Vec::new();
        let calls = joint.write(&mut out);
        (calls, String::from_utf8(out).unwrap())
    }

    #[test]
    fn one_call_is_of_the_script_for_one_and_several_are_one_command() {
        let (script, mut joint) = (script(), Joint::default());
        joint.add(&script, question("a"));
        let (calls, text) = written(&mut joint);
        let sha = script.alone().sha();
        assert_eq!(calls, 1);
        assert_eq!(
            text,
            format!("*5\r\n$7\r\nEVALSHA\r\n$40\r\n{sha}\r\n$1\r\n1\r\n$1\r\na\r\n$1\r\nn\r\n")
        );
        joint.add(&script, question("a"));
        let besides = Some(&b"x"[..]);
        joint.add(
            &script,
            Question {
                besides,
                ..question("b")
            },
        );
        let (calls, text) = written(&mut joint);
        let sha = script.joined().sha();
        assert_eq!(calls, 2);
        assert_eq!(
            text,
            format!(
                "*8\r\n$7\r\nEVALSHA\r\n$40\r\n{sha}\r\n$1\r\n2\r\n$1\r\na\r\n$1\r\nb\r\n\
                 $1\r\nn\r\n$1\r\nn\r\n$1\r\nx\r\n"
            )
        );
        assert_eq!(written(&mut joint), (0, String::new()));
    }

    #[test]
    fn a_command_has_calls_of_one_script_and_not_too_many() {
        let (script, mut joint) = (script(), Joint::default());
        assert!(!joint.takes(&script), "it is of none yet");
        for _ in 0..MOST_JOINED - 1 {
            joint.add(&script, question("a"));
        }
        let other = Joinable::new(Script::new("other"), Script::new("joined"));
        assert!(joint.takes(&script));
        assert!(!joint.takes(&other));
        joint.add(&script, question("a"));
        assert!(!joint.takes(&script));
        joint.clear();
        assert!(
            !joint.takes(&script),
            "the script may have to be sent first"
        );
    }
}
