//! `regard models`: models on this machine, and models to download.

use super::{CommandResult, Output, Usage};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use regard::formats::{Languages, Licence, find_on_hub};
use regard::store::{Installed, ModelStore, Progress, RemoteModel, read_index};
use serde::Serialize;
use std::error::Error;
use std::io::IsTerminal;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  \
    regard models\n  \
    regard models download Helsinki-NLP/opus-mt-en-de\n  \
    regard models list --index https://raw.githubusercontent.com/argosopentech/argospm-index/main/index.json\n  \
    regard models download en-de --index index.json\n  \
    regard translate --model en-de \"A dog runs.\"\n  \
    regard models remove en-de\n\n\
    Models are kept in REGARD_MODELS [default: regard/models in XDG_DATA_HOME or ~/.local/share]; a model folder that is put\n\
    there is found, too. --model takes their names, and `regard serve --models-dir DIR` serves all of them.\n\
    An index is a file or a URL: the index of Argos Translate, the records of Firefox's Remote Settings\n\
    (…/collections/translations-models-v2/records), or the registry of Firefox's models (models.json).\n\
    A download that was interrupted continues where it stopped. Files are checked against the SHA-256 of the index or the hub.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListFlags,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the models on this machine, or those of an index; this is what `regard models` does
    #[command(
        after_help = "Examples:\n  regard models list\n  regard models list --index index.json\n  regard models list --verify"
    )]
    List(ListFlags),
    /// Download models
    #[command(after_help = "Examples:\n  \
        regard models download Helsinki-NLP/opus-mt-en-de\n  \
        regard models download en-de --index index.json --as argos-en-de")]
    Download(DownloadFlags),
    /// Remove models, or what interrupted downloads left
    #[command(after_help = "Examples:\n  regard models remove en-de Helsinki-NLP/opus-mt-en-de")]
    Remove(RemoveFlags),
}

#[derive(Debug, Args)]
struct ListFlags {
    /// List what can be downloaded from this index, a file or a URL
    #[arg(long, value_name = "FILE|URL")]
    index: Option<String>,
    /// Check the files of downloaded models against their SHA-256; exit status 1 if one has changed
    #[arg(long, conflicts_with = "index")]
    verify: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DownloadFlags {
    /// Names on the Hugging Face hub, as organisation/model; with --index, pairs of languages, as
    /// en-de
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Index to look the names up in, a file or a URL
    #[arg(long, value_name = "FILE|URL")]
    index: Option<String>,
    /// Where the files of the index are, a folder or a URL [default: where the index says]
    #[arg(long, value_name = "DIR|URL", requires = "index")]
    files: Option<String>,
    /// Name of the model on this machine [default: its own name]
    #[arg(long = "as", value_name = "NAME")]
    called: Option<String>,
}

#[derive(Debug, Args)]
struct RemoveFlags {
    /// Names of models on this machine
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let store = ModelStore::from_env();
    match arguments.action.unwrap_or(Action::List(arguments.list)) {
        Action::List(flags) => list(&store, &flags),
        Action::Download(flags) => download(&store, &flags),
        Action::Remove(RemoveFlags { names }) => {
            for name in names {
                store.remove(&name)?;
                note!("regard: {name} is removed");
            }
            Ok(())
        }
    }
}

/// A line of the list.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    name: &'a str,
    languages: &'a Languages,
    version: Option<&'a str>,
    bytes: Option<u64>,
    model_type: Option<&'static str>,
    licence: Option<Licence>,
    origin: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
    /// Files that differ from the download.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<String>>,
}

impl<'a> Entry<'a> {
    fn installed(model: &'a Installed) -> Self {
        Entry {
            name: &model.name,
            languages: &model.languages,
            version: model.version.as_deref(),
            bytes: Some(model.bytes),
            model_type: model.model_type,
            licence: model.licence.clone(),
            origin: model.origin.as_deref(),
            folder: Some(model.folder.display().to_string()),
            problem: model.problem.as_deref(),
            changed: None,
        }
    }

    fn remote(model: &'a RemoteModel) -> Self {
        Entry {
            name: &model.name,
            languages: &model.languages,
            version: model.version.as_deref(),
            bytes: model.bytes(),
            model_type: None,
            licence: model.licence.as_deref().map(Licence::new),
            origin: Some(&model.origin),
            folder: None,
            problem: None,
            changed: None,
        }
    }

    fn cells(&self) -> [String; 5] {
        let code = |code: &Option<String>| code.clone().unwrap_or_else(|| "?".into());
        let pair = match (&self.languages.source, &self.languages.target) {
            (None, None) => "many, or unknown".into(),
            (source, target) => format!("{} → {}", code(source), code(target)),
        };
        let licence = self.licence.as_ref().map_or_else(|| "not stated".into(), Licence::to_string);
        let size = self.bytes.map_or_else(|| "?".into(), size);
        [self.name.to_owned(), pair, size, self.model_type.unwrap_or("").to_owned(), licence]
    }
}

/// A human-readable size.
fn size(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e6 => format!("{:.1} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.2} GB", bytes / 1e9),
    }
}

fn list(store: &ModelStore, flags: &ListFlags) -> CommandResult {
    if let Some(index) = &flags.index {
        let models = read_index(index, None)?;
        return print(flags, &models.iter().map(Entry::remote).collect::<Vec<_>>());
    }
    let models = store.list()?;
    let mut entries: Vec<Entry<'_>> = models.iter().map(Entry::installed).collect();
    if flags.verify {
        for entry in &mut entries {
            entry.changed = store.changed_files(entry.name)?;
        }
    }
    print(flags, &entries)?;
    if models.is_empty() && !flags.json {
        let folder = store.folder().display();
        note!(
            "regard: there are no models in {folder}; `regard models download NAME` fetches one, `regard quickstart` trains one"
        );
    }
    for entry in &entries {
        if let Some(problem) = entry.problem {
            note!("regard: {}: {problem}", entry.name);
        }
    }
    verdict(&entries)
}

/// The result of a verification.
fn verdict(entries: &[Entry<'_>]) -> CommandResult {
    let is_changed = |entry: &&Entry<'_>| entry.changed.as_ref().is_some_and(|files| !files.is_empty());
    let changed: Vec<String> = (entries.iter().filter(is_changed))
        .map(|entry| {
            format!(
                "{} ({})",
                entry.name,
                entry.changed.iter().flatten().cloned().collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    match changed.is_empty() {
        true => Ok(()),
        false => Err(format!("not as they were downloaded: {}", changed.join("; ")).into()),
    }
}

fn print(flags: &ListFlags, entries: &[Entry<'_>]) -> CommandResult {
    let mut output = Output::new();
    if flags.json {
        for entry in entries {
            output.line(serde_json::to_string(entry)?)?;
        }
        return output.flush();
    }
    let rows: Vec<[String; 5]> = entries.iter().map(Entry::cells).collect();
    let titles = ["name", "languages", "size", "type", "licence of the weights"].map(str::to_owned);
    let all: Vec<&[String; 5]> = [&titles].into_iter().filter(|_| !rows.is_empty()).chain(&rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    for row in all {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let padding = width - cell.chars().count() + 2;
            line.push_str(cell);
            line.push_str(&" ".repeat(padding));
        }
        line.push_str(&row[4]);
        output.line(line.trim_end())?;
    }
    output.flush()
}

fn download(store: &ModelStore, flags: &DownloadFlags) -> CommandResult {
    if flags.called.is_some() && flags.names.len() > 1 {
        return Err(Usage("--as names one model; download the others separately".into()).into());
    }
    let index = flags.index.as_deref().map(|index| read_index(index, flags.files.as_deref())).transpose()?;
    for name in &flags.names {
        let mut model = match &index {
            Some(models) => find(models, name, flags.index.as_deref().unwrap_or_default())?.clone(),
            None => find_on_hub(name)?,
        };
        if let Some(called) = &flags.called {
            model.name.clone_from(called);
        }
        let mut bars = Bars::default();
        let installed = store.install(&model, &mut |progress| bars.show(progress));
        bars.end();
        let installed = installed?;
        note!("regard: {} is in {}", installed.name, installed.folder.display());
        match &installed.licence {
            Some(licence) if licence.commercial => note!("regard: licence of the weights: {licence}"),
            Some(licence) => {
                note!("regard: the licence of these weights, {}, forbids commercial use", licence.name)
            }
            None => {
                note!("regard: the licence of these weights is not stated; look it up before you use them")
            }
        }
    }
    Ok(())
}

/// The model with this name in an index; `en_de` and `en-de` are equivalent.
fn find<'a>(models: &'a [RemoteModel], name: &str, index: &str) -> Result<&'a RemoteModel, Box<dyn Error>> {
    let alike =
        |model: &&RemoteModel| model.name.replace('_', "-").eq_ignore_ascii_case(&name.replace('_', "-"));
    models.iter().find(alike).ok_or_else(|| {
        let known: Vec<&str> = models.iter().take(12).map(|model| model.name.as_str()).collect();
        let more = if models.len() > known.len() { ", …" } else { "" };
        format!("{index}: there is no {name}; it has {}{more}", known.join(", ")).into()
    })
}

/// A progress bar for each downloaded file.
#[derive(Default)]
pub(super) struct Bars {
    current: Option<(String, ProgressBar)>,
}

impl Bars {
    pub(super) fn show(&mut self, progress: Progress<'_>) {
        if self.current.as_ref().is_none_or(|(file, _)| *file != progress.file) {
            self.end();
            let bar = match std::io::stderr().is_terminal() {
                true => ProgressBar::new(progress.total.unwrap_or(0)),
                false => ProgressBar::hidden(),
            };
            let template = "{msg} {bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
            bar.set_style(
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar.set_message(progress.file.to_owned());
            self.current = Some((progress.file.to_owned(), bar));
        }
        if let Some((_, bar)) = &self.current {
            bar.set_position(progress.done);
        }
    }

    pub(super) fn end(&mut self) {
        if let Some((_, bar)) = self.current.take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::field_reassign_with_default, reason = "some of the fields are private")]
    fn a_pair_is_found_however_it_is_joined() {
        let model = |name: &str| {
            let mut model = RemoteModel::default();
            model.name = name.into();
            model
        };
        let models = [model("en-de"), model("en-zh_hant")];
        assert_eq!(find(&models, "en_de", "i").unwrap().name, "en-de");
        assert_eq!(find(&models, "EN-zh-Hant", "i").unwrap().name, "en-zh_hant");
        assert_eq!(
            find(&models, "fr-de", "i.json").unwrap_err().to_string(),
            "i.json: there is no fr-de; it has en-de, en-zh_hant"
        );
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([999, 17_140_755, 2_400_000_000].map(size), ["1.0 kB", "17.1 MB", "2.40 GB"]);
    }
}
