//! What can be wrong with a file.

use super::Format;

/// Why a file cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The format is known, but cannot be read yet.
    #[error("{format} files cannot be translated yet")]
    Unsupported {
        /// The format.
        format: Format,
    },
    /// The file is of another kind.
    #[error("this is no {format} file: {found}")]
    OtherFormat {
        /// What was expected.
        format: Format,
        /// What it is instead, and what would help.
        found: String,
    },
    /// The file can be opened with a password or a licence only.
    #[error("the {format} file is encrypted; save a copy without a password and translate that")]
    Encrypted {
        /// What kind of file it is.
        format: Format,
    },
    /// The file as a whole is damaged.
    #[error("the {format} file is damaged: {problem}")]
    Damaged {
        /// What kind of file it is.
        format: Format,
        /// What is wrong.
        problem: String,
    },
    /// A part of a package (docx, odt, epub, …) is damaged or missing.
    #[error("{part} in the {format} file: {problem}")]
    Part {
        /// What kind of file it is.
        format: Format,
        /// The name of the part in the package.
        part: String,
        /// What is wrong.
        problem: String,
    },
    /// A line of a text file breaks the rules of its format.
    #[error("line {line} of the {format} file: {problem}")]
    Line {
        /// What kind of file it is.
        format: Format,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The value of a key breaks the rules of its format.
    #[error("`{key}` in the {format} file: {problem}")]
    Key {
        /// What kind of file it is.
        format: Format,
        /// The key, with those it lies in.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// The file would need more memory than a file is allowed.
    #[error("{what} in the {format} file is larger than {limit} bytes, which is the limit")]
    TooLarge {
        /// What kind of file it is.
        format: Format,
        /// The part, or all of them.
        what: String,
        /// The most bytes.
        limit: u64,
    },
    /// There are more or fewer translations than sentences.
    #[error("the document has {wanted} sentences, but there are {found} translations")]
    Translations {
        /// The number of sentences.
        wanted: usize,
        /// The number of translations.
        found: usize,
    },
}
