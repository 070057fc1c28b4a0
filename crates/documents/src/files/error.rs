//! Errors about document files.

use super::Format;

/// Why a file cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The format is known, but not supported yet.
    #[error("{format} files cannot be translated yet")]
    Unsupported {
        /// The format.
        format: Format,
    },
    /// The file has another format.
    #[error("this is no {format} file: {found}")]
    OtherFormat {
        /// The expected format.
        format: Format,
        /// What the file is instead, and what to do.
        found: String,
    },
    /// The file is protected by a password or a licence.
    #[error("the {format} file is encrypted; save a copy without a password and translate that")]
    Encrypted {
        /// The format of the file.
        format: Format,
    },
    /// The file as a whole is damaged.
    #[error("the {format} file is damaged: {problem}")]
    Damaged {
        /// The format of the file.
        format: Format,
        /// What is wrong.
        problem: String,
    },
    /// A part of a package (docx, odt, epub, …) is damaged or missing.
    #[error("{part} in the {format} file: {problem}")]
    Part {
        /// The format of the file.
        format: Format,
        /// The name of the part in the package.
        part: String,
        /// What is wrong.
        problem: String,
    },
    /// A line of a text file is invalid.
    #[error("line {line} of the {format} file: {problem}")]
    Line {
        /// The format of the file.
        format: Format,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The value of a key is invalid.
    #[error("`{key}` in the {format} file: {problem}")]
    Key {
        /// The format of the file.
        format: Format,
        /// The key with its parent keys.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// The decompressed file would exceed the size limit.
    #[error("{what} in the {format} file is larger than {limit} bytes, which is the limit")]
    TooLarge {
        /// The format of the file.
        format: Format,
        /// The name of the part, or a phrase for all parts.
        what: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The number of translations differs from the number of sentences.
    #[error("the document has {wanted} sentences, but there are {found} translations")]
    Translations {
        /// The number of sentences.
        wanted: usize,
        /// The number of translations.
        found: usize,
    },
}
