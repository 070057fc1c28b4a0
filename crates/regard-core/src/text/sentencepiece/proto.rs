//! The part of the protocol buffer format that model files use: a message is a sequence of numbered
//! fields.
//!
//! Nothing is copied and nothing recurses: a nested message is a slice, read on demand.

/// A description of what is wrong with a file.
pub(super) type Problem = String;

/// The fields of a message, in the order of the file.
pub(super) struct Fields<'a>(&'a [u8]);

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// Integers, booleans and enumerations.
    Integer(u64),
    /// Texts, bytes and messages.
    Bytes(&'a [u8]),
    /// Four bytes: a float.
    Four([u8; 4]),
    /// Eight bytes: a double; no supported field has this type.
    Eight,
}

impl<'a> Fields<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Fields(message)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Problem> {
        let left = self.0.len();
        let split = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let Some((taken, rest)) = split else {
            return Err(format!("is cut off: {length} bytes should follow, but there are {left}"));
        };
        self.0 = rest;
        Ok(taken)
    }

    /// A varint: seven bits per byte, the lowest first.
    fn integer(&mut self) -> Result<u64, Problem> {
        let mut value = 0;
        for (i, &byte) in self.0.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                self.0 = &self.0[i + 1..];
                return Ok(value);
            }
        }
        Err("holds an integer that does not end".into())
    }

    fn field(&mut self) -> Result<(u64, Value<'a>), Problem> {
        let tag = self.integer()?;
        let number = tag >> 3;
        if number == 0 {
            return Err("holds a field with the number 0".into());
        }
        let value = match tag & 7 {
            0 => Value::Integer(self.integer()?),
            1 => {
                self.take(8)?;
                Value::Eight
            }
            2 => {
                let length = self.integer()?;
                Value::Bytes(self.take(length)?)
            }
            5 => {
                let mut four = [0; 4];
                four.copy_from_slice(self.take(4)?);
                Value::Four(four)
            }
            kind => return Err(format!("holds field {number} of the kind {kind}, which is not known")),
        };
        Ok((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Value<'a> {
    pub(super) fn integer(self, name: &str) -> Result<u64, Problem> {
        match self {
            Value::Integer(value) => Ok(value),
            _ => Err(format!("{name} should be an integer")),
        }
    }

    pub(super) fn boolean(self, name: &str) -> Result<bool, Problem> {
        Ok(self.integer(name)? != 0)
    }

    pub(super) fn float(self, name: &str) -> Result<f32, Problem> {
        match self {
            Value::Four(bytes) => Ok(f32::from_le_bytes(bytes)),
            _ => Err(format!("{name} should be a float")),
        }
    }

    pub(super) fn bytes(self, name: &str) -> Result<&'a [u8], Problem> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(format!("{name} should be a text or a message")),
        }
    }
}

/// A message to write.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn integer(mut self, number: u64, value: u64) -> Self {
        self.push_integer(number << 3);
        self.push_integer(value);
        self
    }

    /// Writes a negative number in the format's form: 64 bits wide.
    pub(super) fn signed(self, number: u64, value: i64) -> Self {
        self.integer(number, value.cast_unsigned())
    }

    pub(super) fn boolean(self, number: u64, value: bool) -> Self {
        self.integer(number, u64::from(value))
    }

    pub(super) fn float(mut self, number: u64, value: f32) -> Self {
        self.push_integer(number << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, number: u64, value: &[u8]) -> Self {
        self.push_integer(number << 3 | 2);
        self.push_integer(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub(super) fn message(self, number: u64, value: Message) -> Self {
        self.bytes(number, &value.0)
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn push_integer(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &[u8]) -> Result<Vec<(u64, Value<'_>)>, Problem> {
        Fields::new(message).collect()
    }

    #[test]
    fn fields_of_every_kind_are_read() {
        let message = [
            &[0x08, 0x96, 0x01][..],                                 // 1: 150
            &[0x12, 2, b'h', b'i'],                                  // 2: "hi"
            &[0x1d, 0, 0, 0x80, 0x3f],                               // 3: 1.0
            &[0x21, 1, 2, 3, 4, 5, 6, 7, 8],                         // 4: eight bytes
            &[0x80, 0x7d, 1],                                        // 2000: 1
            &[0x28, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], // 5: the largest
        ]
        .concat();
        let found = fields(&message).unwrap();
        assert_eq!(
            found,
            [
                (1, Value::Integer(150)),
                (2, Value::Bytes(b"hi")),
                (3, Value::Four([0, 0, 0x80, 0x3f])),
                (4, Value::Eight),
                (2000, Value::Integer(1)),
                (5, Value::Integer(u64::MAX)),
            ]
        );
        assert_eq!(found[2].1.float("score"), Ok(1.0));
        assert_eq!(found[0].1.boolean("flag"), Ok(true));
        assert_eq!(found[0].1.bytes("piece"), Err("piece should be a text or a message".into()));
        assert_eq!(found[1].1.integer("type"), Err("type should be an integer".into()));
        assert_eq!(found[1].1.float("score"), Err("score should be a float".into()));
    }

    #[test]
    fn what_is_written_is_read() {
        let inner = Message::default().float(7, -1.5).boolean(16, true);
        let message = Message::default().integer(1, 300).signed(2, -1).bytes(3, b"hi").message(4000, inner);
        let message = message.finish();
        let found = fields(&message).unwrap();
        let Value::Bytes(inner) = found[3].1 else { panic!("{found:?}") };
        assert_eq!(
            found[..3],
            [(1, Value::Integer(300)), (2, Value::Integer(u64::MAX)), (3, Value::Bytes(b"hi"))]
        );
        assert_eq!(found[3].0, 4000);
        assert_eq!(
            fields(inner).unwrap(),
            [(7, Value::Four((-1.5f32).to_le_bytes())), (16, Value::Integer(1))]
        );
    }

    #[test]
    fn broken_messages_say_what_is_wrong() {
        for (message, want) in [
            (&[0x12, 200, 1, b'x'][..], "is cut off: 200 bytes should follow, but there are 1"),
            (&[0x1d, 0, 0], "is cut off: 4 bytes should follow, but there are 2"),
            (
                &[0x12, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
                "is cut off: 18446744073709551615 bytes",
            ),
            (&[0x08, 0x80], "holds an integer that does not end"),
            (&[0xff; 12], "holds an integer that does not end"),
            (&[0x00, 1], "holds a field with the number 0"),
            (&[0x0b, 1], "holds field 1 of the kind 3, which is not known"),
        ] {
            let problem = fields(message).unwrap_err();
            assert!(problem.starts_with(want), "{problem}");
        }
    }
}
