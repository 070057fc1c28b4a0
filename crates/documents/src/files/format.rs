//! The supported file formats and how they are recognised.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A file format that contains text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Plain text.
    Text,
    /// HTML pages.
    Html,
    /// Markdown.
    Markdown,
    /// SubRip subtitles.
    Srt,
    /// WebVTT subtitles.
    Vtt,
    /// gettext messages.
    Po,
    /// XLIFF 1.2 and 2.
    Xliff,
    /// Translation memories.
    Tmx,
    /// The strings in JSON files.
    Json,
    /// The strings in YAML files.
    Yaml,
    /// Java properties.
    Properties,
    /// Android's `strings.xml`.
    AndroidStrings,
    /// `Localizable.strings` of iOS and macOS.
    IosStrings,
    /// Word documents.
    Docx,
    /// OpenDocument text.
    Odt,
    /// PowerPoint presentations.
    Pptx,
    /// OpenDocument presentations.
    Odp,
    /// Excel workbooks.
    Xlsx,
    /// OpenDocument spreadsheets.
    Ods,
    /// Electronic books (EPUB).
    Epub,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 20] = [
        Format::Text,
        Format::Html,
        Format::Markdown,
        Format::Srt,
        Format::Vtt,
        Format::Po,
        Format::Xliff,
        Format::Tmx,
        Format::Json,
        Format::Yaml,
        Format::Properties,
        Format::AndroidStrings,
        Format::IosStrings,
        Format::Docx,
        Format::Odt,
        Format::Pptx,
        Format::Odp,
        Format::Xlsx,
        Format::Ods,
        Format::Epub,
    ];

    /// The name of the format in messages and settings.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "txt",
            Format::Html => "html",
            Format::Markdown => "markdown",
            Format::Srt => "srt",
            Format::Vtt => "vtt",
            Format::Po => "po",
            Format::Xliff => "xliff",
            Format::Tmx => "tmx",
            Format::Json => "json",
            Format::Yaml => "yaml",
            Format::Properties => "properties",
            Format::AndroidStrings => "android",
            Format::IosStrings => "ios",
            Format::Docx => "docx",
            Format::Odt => "odt",
            Format::Pptx => "pptx",
            Format::Odp => "odp",
            Format::Xlsx => "xlsx",
            Format::Ods => "ods",
            Format::Epub => "epub",
        }
    }

    /// The file name extensions, without the dot and in lower case; the most common one comes
    /// first.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Format::Text => &["txt", "text"],
            Format::Html => &["html", "htm", "xhtml"],
            Format::Markdown => &["md", "markdown"],
            Format::Srt => &["srt"],
            Format::Vtt => &["vtt"],
            Format::Po => &["po", "pot"],
            Format::Xliff => &["xlf", "xliff"],
            Format::Tmx => &["tmx"],
            Format::Json => &["json"],
            Format::Yaml => &["yaml", "yml"],
            Format::Properties => &["properties"],
            Format::AndroidStrings => &["xml"],
            Format::IosStrings => &["strings"],
            Format::Docx => &["docx", "docm", "dotx", "dotm"],
            Format::Odt => &["odt", "ott"],
            Format::Pptx => &["pptx", "pptm", "ppsx", "potx"],
            Format::Odp => &["odp", "otp"],
            Format::Xlsx => &["xlsx", "xlsm", "xltx"],
            Format::Ods => &["ods", "ots"],
            Format::Epub => &["epub"],
        }
    }

    /// The media type of the format.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain",
            Format::Html => "text/html",
            Format::Markdown => "text/markdown",
            Format::Srt => "application/x-subrip",
            Format::Vtt => "text/vtt",
            Format::Po => "text/x-gettext-translation",
            Format::Xliff => "application/xliff+xml",
            Format::Tmx => "application/x-tmx+xml",
            Format::Json => "application/json",
            Format::Yaml => "application/yaml",
            Format::Properties => "text/x-java-properties",
            Format::AndroidStrings => "application/xml",
            Format::IosStrings => "text/plain",
            Format::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Format::Odt => "application/vnd.oasis.opendocument.text",
            Format::Pptx => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            Format::Odp => "application/vnd.oasis.opendocument.presentation",
            Format::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Format::Ods => "application/vnd.oasis.opendocument.spreadsheet",
            Format::Epub => "application/epub+zip",
        }
    }

    /// The format of a file, from its extension, or from its first bytes if several formats share
    /// the extension (`.xml`). `None` if no format matches.
    pub fn of_name(name: &Path, start: &[u8]) -> Option<Self> {
        let extension = name.extension()?.to_str()?.to_ascii_lowercase();
        let found =
            Format::ALL.into_iter().find(|format| format.extensions().contains(&extension.as_str()))?;
        match found {
            Format::AndroidStrings => {
                let start = String::from_utf8_lossy(&start[..start.len().min(4096)]);
                start.contains("<resources").then_some(found)
            }
            found => Some(found),
        }
    }

    /// Whether files of this format are zip packages of XML parts.
    pub fn is_package(self) -> bool {
        matches!(
            self,
            Format::Docx
                | Format::Odt
                | Format::Pptx
                | Format::Odp
                | Format::Xlsx
                | Format::Ods
                | Format::Epub
        )
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    /// Parses the name of a format or one of its extensions.
    fn from_str(name: &str) -> Result<Self, String> {
        let lower = name.trim_start_matches('.').to_ascii_lowercase();
        let known = |format: &Format| format.name() == lower || format.extensions().contains(&lower.as_str());
        Format::ALL.into_iter().find(known).ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
            format!("`{name}` is not a document format; the formats are {}", names.join(", "))
        })
    }
}
