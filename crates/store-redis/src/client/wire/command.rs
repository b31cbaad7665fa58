//! Commands as bytes.

/// One command on its way out: its name and its arguments, in order.
#[derive(Debug)]
pub struct Command<'a> {
    body: &'a mut Vec<u8>,
    arguments: usize,
}

// === impl Command ===

impl<'a> Command<'a> {
    /// Writes a command to `out`, with `body` as room to work in: a command begins with the number of its
    /// arguments, which is known at its end.
    pub(crate) fn encode(
        out: &mut Vec<u8>,
        body: &'a mut Vec<u8>,
        write: impl FnOnce(&mut Command<'_>),
    ) {
        body.clear();
        let mut command = Command { body, arguments: 0 };
        write(&mut command);
        begin(out, command.arguments);
        out.extend_from_slice(command.body);
    }

    /// Adds an argument, or the name as the first one.
    pub fn arg(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        bulk(self.body, bytes.as_ref());
        self.arguments += 1;
        self
    }

    /// Adds a number in decimal.
    pub fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.arg(itoa::Buffer::new().format(number))
    }
}

/// Writes one argument.
pub(crate) fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Begins a command of so many arguments, its name among them.
pub(crate) fn begin(out: &mut Vec<u8>, arguments: usize) {
    header(out, b'*', arguments);
}

fn header(out: &mut Vec<u8>, kind: u8, number: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_how_many_arguments_it_has() {
        let (mut out, mut body) = (b"before".to_vec(), b"left over".to_vec());
        Command::encode(&mut out, &mut body, |command| {
            command.arg("SET").arg(b"a\r\nb").number(-12);
        });
        assert_eq!(
            out,
            b"before*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$3\r\n-12\r\n"
        );
    }
}
