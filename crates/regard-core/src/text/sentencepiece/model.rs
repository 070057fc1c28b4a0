//! The contents of a `.spm` file, validated: pieces, segmentation algorithm, normalisation.

use super::proto::{Fields, Problem, Value};

/// The kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::text) enum Kind {
    /// Found by the segmentation model.
    Normal,
    /// Stands for text that no piece covers.
    Unknown,
    /// Never found in text: `<s>`, `</s>`.
    Control,
    /// Found wherever the text has it.
    UserDefined,
    /// Used in merging but never in the output.
    Unused,
    /// A byte of an unknown character.
    Byte,
}

impl Kind {
    /// Its number in the file.
    pub(super) fn number(self) -> u64 {
        match self {
            Kind::Normal => 1,
            Kind::Unknown => 2,
            Kind::Control => 3,
            Kind::UserDefined => 4,
            Kind::Unused => 5,
            Kind::Byte => 6,
        }
    }

    /// Whether text can contain such a piece.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Kind::Normal | Kind::UserDefined | Kind::Unused)
    }
}

/// An entry of the vocabulary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    pub(super) score: f32,
    pub(super) kind: Kind,
}

/// The segmentation algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::text) enum Algorithm {
    Unigram,
    Bpe,
}

/// The normalisation of text before encoding, or after decoding.
#[derive(Clone, Copy, Debug)]
pub(super) struct NormaliserSpec<'a> {
    /// Compiled rules; empty for none.
    pub(super) charsmap: &'a [u8],
    /// Adds a space before the text.
    pub(super) add_dummy_prefix: bool,
    /// Removes spaces at the ends and repeated spaces.
    pub(super) remove_extra_whitespaces: bool,
    /// Replaces spaces by `▁`.
    pub(super) escape_whitespaces: bool,
}

impl Default for NormaliserSpec<'_> {
    fn default() -> Self {
        NormaliserSpec {
            charsmap: &[],
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
        }
    }
}

/// A whole file.
#[derive(Debug)]
pub(super) struct ModelFile<'a> {
    pub(super) pieces: Vec<Piece<'a>>,
    pub(super) algorithm: Algorithm,
    /// Whether the added space goes after the text.
    pub(super) whitespace_as_suffix: bool,
    /// Whether unknown text is encoded as bytes.
    pub(super) byte_fallback: bool,
    pub(super) normaliser: NormaliserSpec<'a>,
    pub(super) denormaliser: NormaliserSpec<'a>,
}

/// The limit of the length of a piece, as in the library.
const PIECE_BYTES_LIMIT: usize = 8000;

impl<'a> ModelFile<'a> {
    /// Reads and validates a file. If a message occurs twice, the second is merged into the first,
    /// as the format requires.
    pub(super) fn read(file: &'a [u8]) -> Result<Self, Problem> {
        let mut model = ModelFile {
            pieces: Vec::new(),
            algorithm: Algorithm::Unigram,
            whitespace_as_suffix: false,
            byte_fallback: false,
            normaliser: NormaliserSpec::default(),
            denormaliser: NormaliserSpec::default(),
        };
        for field in Fields::new(file) {
            let (number, value) = field?;
            match number {
                1 => {
                    let at = model.pieces.len();
                    let piece = value.bytes("a piece").and_then(read_piece);
                    model.pieces.push(piece.map_err(|problem| format!("piece {at}: {problem}"))?);
                }
                2 => model.read_trainer(value).map_err(|problem| format!("trainer_spec: {problem}"))?,
                3 => model.normaliser.read(value).map_err(|problem| format!("normalizer_spec: {problem}"))?,
                5 => model
                    .denormaliser
                    .read(value)
                    .map_err(|problem| format!("denormalizer_spec: {problem}"))?,
                _ => (),
            }
        }
        model.check()?;
        Ok(model)
    }

    fn read_trainer(&mut self, value: Value<'a>) -> Result<(), Problem> {
        for field in Fields::new(value.bytes("it")?) {
            let (number, value) = field?;
            match number {
                3 => {
                    self.algorithm = match value.integer("model_type")? {
                        1 => Algorithm::Unigram,
                        2 => Algorithm::Bpe,
                        3 => {
                            return Err("a model of whole words is not supported; unigram and BPE are".into());
                        }
                        4 => return Err("a model of characters is not supported; unigram and BPE are".into()),
                        other => {
                            return Err(format!("model_type {other} is neither unigram (1) nor BPE (2)"));
                        }
                    }
                }
                24 => self.whitespace_as_suffix = value.boolean("treat_whitespace_as_suffix")?,
                35 => self.byte_fallback = value.boolean("byte_fallback")?,
                _ => (),
            }
        }
        Ok(())
    }

    /// Checks what the library requires of a vocabulary, except that no piece occurs twice, which
    /// is checked later.
    fn check(&self) -> Result<(), Problem> {
        let mut bytes = [false; 256];
        let mut unknown = None;
        for (at, piece) in self.pieces.iter().enumerate() {
            match piece.kind {
                Kind::Unknown => match unknown.replace(at) {
                    None => (),
                    Some(first) => {
                        return Err(format!(
                            "pieces {first} and {at} both have the type of the unknown piece"
                        ));
                    }
                },
                Kind::Byte if !self.byte_fallback => {
                    return Err(format!("piece {at} is a byte, but byte_fallback is false"));
                }
                Kind::Byte => match byte_of(piece.text) {
                    Some(byte) => bytes[usize::from(byte)] = true,
                    None => {
                        return Err(format!(
                            "piece {at} is a byte, but {:?} is not <0x00> to <0xFF>",
                            piece.text
                        ));
                    }
                },
                Kind::Normal | Kind::Control | Kind::UserDefined | Kind::Unused => (),
            }
        }
        if !self.pieces.iter().any(|piece| piece.kind.is_text()) {
            return Err("not a SentencePiece model: it has no pieces".into());
        }
        if unknown.is_none() {
            return Err("none of the pieces is the unknown one".into());
        }
        if let Some(byte) = bytes.iter().position(|there| self.byte_fallback && !there) {
            return Err(format!("byte_fallback is true, but there is no piece <0x{byte:02X}>"));
        }
        Ok(())
    }
}

impl<'a> NormaliserSpec<'a> {
    fn read(&mut self, value: Value<'a>) -> Result<(), Problem> {
        for field in Fields::new(value.bytes("it")?) {
            let (number, value) = field?;
            match number {
                2 => self.charsmap = value.bytes("precompiled_charsmap")?,
                3 => self.add_dummy_prefix = value.boolean("add_dummy_prefix")?,
                4 => self.remove_extra_whitespaces = value.boolean("remove_extra_whitespaces")?,
                5 => self.escape_whitespaces = value.boolean("escape_whitespaces")?,
                _ => (),
            }
        }
        Ok(())
    }
}

fn read_piece(message: &[u8]) -> Result<Piece<'_>, Problem> {
    let mut piece = Piece { text: "", score: 0.0, kind: Kind::Normal };
    for field in Fields::new(message) {
        let (number, value) = field?;
        match number {
            1 => {
                let text = value.bytes("its text")?;
                piece.text = str::from_utf8(text).map_err(|_| "its text is not UTF-8")?;
            }
            2 => piece.score = value.float("its score")?,
            3 => {
                piece.kind = match value.integer("its type")? {
                    1 => Kind::Normal,
                    2 => Kind::Unknown,
                    3 => Kind::Control,
                    4 => Kind::UserDefined,
                    5 => Kind::Unused,
                    6 => Kind::Byte,
                    other => return Err(format!("the type {other} is not one of 1 to 6")),
                }
            }
            _ => (),
        }
    }
    if piece.text.is_empty() || piece.text.contains('\0') {
        return Err("its text is empty or has a zero byte".into());
    }
    if piece.text.len() >= PIECE_BYTES_LIMIT {
        return Err(format!(
            "its text has {} bytes; fewer than {PIECE_BYTES_LIMIT} are allowed",
            piece.text.len()
        ));
    }
    if piece.score.is_nan() {
        return Err("its score is not a number".into());
    }
    Ok(piece)
}

/// The byte of a piece such as `<0x3A>`.
pub(in crate::text) fn byte_of(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    let upper = |c: u8| c.is_ascii_digit() || (b'A'..=b'F').contains(&c);
    (digits.len() == 2 && digits.bytes().all(upper)).then(|| u8::from_str_radix(digits, 16).ok())?
}
