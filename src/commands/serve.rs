//! `regard serve`: serves models over HTTP.

mod resources;

use super::dtypes::{DECODING, one_of};
use super::numbers::{THREADS, decimal, whole, whole_u16, whole_u32};
use super::search::SearchFlags;
use super::{CommandResult, Usage, cores, resolve};
use clap::{Args, ValueEnum};
use regard::DType;
use regard::Isa;
use regard::store::ModelStore;
use regard::translator::Translator;
use regard_serve::{
    AddressRange, App, Batching, Keys, Limits, LoadedModel, Loader, ModelSource, ServeError, Settings,
    Shutdown, Tls,
};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard serve --model model\n  \
    regard serve --model en-de --model de-en --port 8080\n  \
    regard serve --models-dir models --unload-after 600\n  \
    regard serve --config serve.toml\n  \
    regard serve --model en-de --glossary it=terms.tsv --memory known.tmx\n  \
    regard serve --model en-de=my-folder --host 0.0.0.0 --api-keys keys.txt --requests-per-minute 60\n  \
    regard serve --model en-de --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem\n\n  \
    curl http://127.0.0.1:5000/translate -d q='A dog runs.' -d source=en -d target=de\n  \
    curl http://127.0.0.1:5000/translate -H 'Content-Type: application/json' \\\n    \
    -d '{\"q\": [\"A <b>dog</b> runs.\"], \"source\": \"auto\", \"target\": \"de\", \"format\": \"html\", \"alternatives\": 2}'\n\n\
    The API is LibreTranslate's, so its clients can be used; http://127.0.0.1:5000/docs shows it, http://127.0.0.1:5000/ is the\n\
    page. Where there is no model from one language to another, two in a row are used. Addresses, placeholders such as\n\
    {name} and %s, numbers and emoji are preserved. SIGTERM and Ctrl-C finish requests in progress. SIGHUP reads models, keys and\n\
    the certificate again without losing a request, unless standard error is a terminal.\n\n\
    Every flag is also a variable of the environment (--max-batch is REGARD_MAX_BATCH, lists are separated by commas) and a key of\n\
    --config (max-batch = 32): flags override the environment, and the environment overrides the file. LibreTranslate's LT_HOST,\n\
    LT_PORT, LT_THREADS, LT_CHAR_LIMIT, LT_BATCH_LIMIT, LT_REQ_LIMIT and LT_ALTERNATIVES_LIMIT are understood, too.")]
pub(crate) struct Arguments {
    /// Model folder, or name of a model; repeat the flag to serve several language pairs.
    /// SOURCE-TARGET=DIR names the languages of a model that does not name its own, or one pair of
    /// a multilingual model, which otherwise serves every pair. A folder that holds nothing
    /// but folders stands for all the models in it [default: all models of `regard models`]
    #[arg(long, short, value_name = "DIR", num_args = 1..)]
    model: Vec<String>,
    /// Serve every model in this folder: folders of models and packages of Argos Translate
    #[arg(long, value_name = "DIR")]
    models_dir: Option<PathBuf>,
    /// Free the memory of a model that nobody has used for N seconds; the next request loads it
    /// again [default: models stay in memory]
    #[arg(long, value_name = "SECONDS", value_parser = decimal(WAIT))]
    unload_after: Option<f64>,
    /// Settings file in TOML
    #[arg(long, value_name = "FILE")]
    #[allow(dead_code, reason = "`commands::settings` reads it before the flags are parsed")]
    config: Option<PathBuf>,
    /// Folder of studies to show on the page, as `regard study all --out DIR` writes it
    #[arg(long, value_name = "DIR")]
    studies: Option<PathBuf>,
    /// Ask the server at --host and --port whether it works, instead of serving: exit status 0 or 1
    #[arg(long)]
    health_check: bool,
    /// Address to listen on; 0.0.0.0 for all interfaces
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port to listen on; 0 for any free port
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = whole_u16(0..=65_535))]
    port: u16,
    /// Glossary that requests can name: lines of a term, a tab and its translation, or = for a term
    /// that is not translated; may be repeated
    #[arg(long, value_name = "NAME=FILE", num_args = 1..)]
    glossary: Vec<String>,
    /// Translation memory (TMX; plain, .gz or .zst) for the pairs of languages of the models, or
    /// with SOURCE-TARGET=FILE for one pair; may be repeated
    #[arg(long, value_name = "FILE", num_args = 1..)]
    memory: Vec<String>,
    /// Number of cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    threads: Option<usize>,
    /// Number format of matrix multiplications [default: int8 for a quantized model, else f32]
    #[arg(long, value_parser = one_of(DECODING))]
    precision: Option<DType>,
    /// Format of the log on standard error; it never contains users' text
    #[arg(long, value_enum, default_value = "text")]
    log: Log,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    gathering: BatchFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    search: SearchFlags,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Log {
    /// One line per request
    Text,
    /// One JSON object per request
    Json,
    /// Errors only
    Quiet,
}

impl From<Log> for regard_serve::Log {
    fn from(log: Log) -> Self {
        match log {
            Log::Text => regard_serve::Log::Text,
            Log::Json => regard_serve::Log::Json,
            Log::Quiet => regard_serve::Log::Quiet,
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
struct Access {
    /// A file of keys, as `regard keys` writes it, or with one key per line. Requests that
    /// translate, detect a language or look inside a model then need a key: in an
    /// `Authorization: Bearer` header, as `api_key` in the query, or as `api_key` in the body. A
    /// changed file is noticed within a second
    #[arg(long, value_name = "FILE")]
    api_keys: Option<PathBuf>,
    /// Serve over HTTPS with this certificate: a PEM file, the server's certificate first, then
    /// those that lead to its authority. A changed file is noticed within a second
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, a PEM file
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// The origin whose pages may call the server: one, * for any, or none
    #[arg(long, value_name = "ORIGIN", default_value = "*")]
    cors: String,
    /// Requests per minute of one client: of one key, or else of one address (IPv6: one /64)
    /// [default: no limit]
    #[arg(long, value_name = "N", value_parser = whole_u32(1..=1_000_000))]
    requests_per_minute: Option<u32>,
    /// Wrong keys per minute of one address; after that, keys that it has not used before are
    /// refused unchecked
    #[arg(long, value_name = "N", default_value_t = Limits::default().wrong_keys_per_minute)]
    #[arg(value_parser = whole_u32(1..=1_000_000))]
    wrong_keys_per_minute: u32,
    /// Proxies in front of the server, as addresses or ranges such as 10.0.0.0/8. From them, and
    /// from nobody else, the client's address is taken from X-Forwarded-For or Forwarded: the
    /// right-most one that is not itself a trusted proxy
    #[arg(long, value_name = "RANGE", num_args = 1.., value_delimiter = ',')]
    trusted_proxy: Vec<AddressRange>,
}

impl Access {
    /// The certificate and its key, which must be given together.
    #[cfg(feature = "tls")]
    fn tls(&self) -> Result<Option<Tls>, Box<dyn Error>> {
        match (&self.tls_cert, &self.tls_key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(Tls::load(certificate, key)?)),
            (Some(_), None) => Err(Usage("--tls-cert needs --tls-key".into()).into()),
            (None, Some(_)) => Err(Usage("--tls-key needs --tls-cert".into()).into()),
        }
    }

    #[cfg(not(feature = "tls"))]
    fn tls(&self) -> Result<Option<Tls>, Box<dyn Error>> {
        Ok(None)
    }

    /// The certificate of the server.
    fn certificate(&self) -> Option<&Path> {
        #[cfg(feature = "tls")]
        return self.tls_cert.as_deref();
        #[cfg(not(feature = "tls"))]
        return None;
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Batches")]
struct BatchFlags {
    /// Maximum sentences per batch, of one request or several; 1 turns batching off
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = whole(1..=10_000))]
    max_batch: usize,
    /// Milliseconds that a worker waits for more sentences
    #[arg(long, value_name = "MS", default_value_t = 2.0, value_parser = decimal(0.0..=60_000.0))]
    batch_wait_ms: f64,
    /// Threads that run batches, for each model [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    workers: Option<usize>,
    /// Maximum sentences that wait for a model; requests beyond it get status 503. Requests take
    /// turns, so a long one delays the others by one batch and counts for no more
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = whole(1..=1_000_000))]
    queue: usize,
    /// Maximum seconds in the queue, estimated from the speed of recent batches; a request that
    /// would wait longer gets status 503 at once
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0, value_parser = decimal(WAIT))]
    max_wait: f64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitFlags {
    /// Maximum characters per request
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = whole(1..=100_000_000))]
    char_limit: usize,
    /// Maximum texts per request
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = whole(1..=1_000_000))]
    batch_limit: usize,
    /// Maximum alternatives per text
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole(0..=100))]
    alternatives_limit: usize,
    /// Maximum size of a request's body
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20, value_parser = whole(1..=1 << 30))]
    max_body_bytes: usize,
    /// Maximum tokens of a text whose attention is shown
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = whole(1..=2_000))]
    attention_limit: usize,
    /// Give up on a request after N seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = decimal(WAIT))]
    timeout: f64,
    /// Seconds that a client may take to begin a request; an idle connection is closed
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = decimal(WAIT))]
    idle_timeout: f64,
    /// Seconds without progress (4 kB) after which a request's body is refused with status 408
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = decimal(WAIT))]
    stall_timeout: f64,
    /// Maximum connections at a time. A new one replaces the one that has been idle longest; if
    /// none is idle, it gets status 503
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = whole(1..=1_000_000))]
    max_connections: usize,
    /// Maximum connections at a time from one address (IPv6: one /64); more get status 429
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = whole(1..=1_000_000))]
    max_connections_per_address: usize,
}

/// The range of waits in seconds: a millisecond to a day.
const WAIT: std::ops::RangeInclusive<f64> = 0.001..=86_400.0;

impl Arguments {
    fn settings(&self, models: &[ModelSource]) -> Result<Settings, Box<dyn Error>> {
        let cores = self.threads.unwrap_or_else(cores).max(1);
        let BatchFlags { max_batch, batch_wait_ms, workers, queue, max_wait } = self.gathering;
        let limits = &self.limits;
        if let Some(folder) = self.studies.as_deref().filter(|folder| !folder.is_dir()) {
            return Err(format!("--studies {}: this is not a folder", folder.display()).into());
        }
        Ok(Settings {
            limits: Limits {
                body_bytes: limits.max_body_bytes,
                characters: limits.char_limit,
                texts: limits.batch_limit,
                alternatives: limits.alternatives_limit,
                attention_tokens: limits.attention_limit,
                timeout: Duration::from_secs_f64(limits.timeout),
                idle: Duration::from_secs_f64(limits.idle_timeout),
                stall: Duration::from_secs_f64(limits.stall_timeout),
                connections: limits.max_connections,
                connections_per_address: limits.max_connections_per_address,
                requests_per_minute: self.access.requests_per_minute,
                wrong_keys_per_minute: self.access.wrong_keys_per_minute,
                trusted_proxies: self.access.trusted_proxy.clone(),
            },
            batching: Batching {
                max_batch,
                wait: Duration::from_secs_f64(batch_wait_ms / 1e3),
                queue,
                max_wait: Duration::from_secs_f64(max_wait),
                workers: workers.unwrap_or(cores),
                cores,
            },
            keys: self.access.api_keys.as_deref().map(Keys::load).transpose()?,
            tls: self.access.tls()?,
            cors: (self.access.cors != "none").then(|| self.access.cors.clone()),
            memories: resources::memories(&self.memory, models)?,
            glossaries: resources::glossaries(&self.glossary)?,
            guard: true,
            unload_after: self.unload_after.map(Duration::from_secs_f64),
            studies: self.studies.clone(),
        })
    }

    fn models(&self) -> Result<Vec<ModelSource>, Box<dyn Error>> {
        let isa = Isa::from_env()?;
        let threads = self.threads.unwrap_or_else(cores);
        let load = |argument: &String| -> Result<ModelSource, Box<dyn Error>> {
            let (languages, folder) = languages(argument);
            let (place, precision, search) = (resolve(folder)?, self.precision, self.search.clone());
            let loader = Loader::new(move || {
                let translator = Translator::load_as(&[&place], precision, isa, threads)?;
                let options = search.options(&translator)?;
                Ok(LoadedModel { translator, options })
            });
            let LoadedModel { translator, options } = loader.load()?;
            let loader = Some(loader);
            Ok(ModelSource { folder: folder.to_owned(), translator, options, languages, loader })
        };
        self.model_arguments()?.iter().map(load).collect()
    }

    /// The values of `--model`, one for each model.
    fn model_arguments(&self) -> Result<Vec<String>, Box<dyn Error>> {
        let none_in = |folder: &Path| format!("{}: there are no models in this folder", folder.display());
        let mut arguments = Vec::new();
        for argument in &self.model {
            match models_in(Path::new(argument)) {
                Some(folders) if folders.is_empty() => return Err(none_in(Path::new(argument)).into()),
                Some(folders) => arguments.extend(folders),
                None => arguments.push(argument.clone()),
            }
        }
        if let Some(folder) = &self.models_dir {
            let found = entries_of(folder)?;
            if found.is_empty() {
                return Err(none_in(folder).into());
            }
            arguments.extend(found);
        }
        if arguments.is_empty() {
            arguments = ModelStore::from_env().list()?.into_iter().map(|model| model.name).collect();
        }
        // Not a requirement of clap: models may come from a file, and a health check needs none.
        if arguments.is_empty() {
            let message = "there is no model to serve: give --model, or REGARD_MODEL, or model in --config, or download one with \
                 `regard models download`";
            return Err(Usage(message.into()).into());
        }
        Ok(arguments)
    }
}

/// Whether an entry is not a model: hidden files, and the `lost+found` folder of every ext4 volume.
fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "lost+found" || name.to_string_lossy().starts_with('.'))
}

/// The models in a folder, by name: every folder or package in it, except hidden ones.
fn entries_of(folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let named = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(named)? {
        let path = entry.map_err(named)?.path();
        let is_package = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("argosmodel"));
        if is_hidden(&path) {
            continue;
        }
        match path.to_str().filter(|_| path.is_dir() || is_package) {
            Some(path) => found.push(path.to_owned()),
            None => note!("regard: {}: neither a folder nor a package, so not a model", path.display()),
        }
    }
    found.sort();
    Ok(found)
}

/// The models in a folder of folders, by name; empty for an empty folder, `None` for any other.
fn models_in(folder: &Path) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).ok()? {
        let path = entry.ok()?.path();
        if is_hidden(&path) {
            continue;
        }
        found.push(path.is_dir().then(|| path.to_str().map(str::to_owned))??);
    }
    found.sort();
    Some(found)
}

/// Parses `en-de=DIR` as a pair and a folder, unless a folder exists under the whole name.
fn languages(argument: &str) -> (Option<(String, String)>, &Path) {
    let pair = argument.split_once('=').and_then(|(pair, folder)| Some((pair.split_once('-')?, folder)));
    match pair.filter(|_| !Path::new(argument).exists()) {
        Some(((source, target), folder)) if !source.is_empty() && !target.is_empty() => {
            (Some((source.to_owned(), target.to_owned())), Path::new(folder))
        }
        _ => (None, Path::new(argument)),
    }
}

/// The languages of a model and its folder, for messages.
fn pair(model: &ModelSource) -> String {
    let own = &model.translator.model().languages;
    if let (None, Some(tokens)) = (&model.languages, model.translator.model().tokenizers.languages()) {
        return format!("all pairs of {} languages ({})", tokens.list.len(), model.folder.display());
    }
    let (source, target) = match &model.languages {
        Some((source, target)) => (Some(source), Some(target)),
        None => (own.source.as_ref(), own.target.as_ref()),
    };
    let name = |language: Option<&String>| language.map_or("?", String::as_str).to_owned();
    format!("{} → {} ({})", name(source), name(target), model.folder.display())
}

/// The address at which this machine reaches a server that listens on `host`: loopback if it
/// listens on all interfaces.
fn reachable(host: IpAddr) -> IpAddr {
    match host {
        IpAddr::V4(host) if host.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(host) if host.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        other => other,
    }
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    if arguments.health_check {
        let address = SocketAddr::new(reachable(arguments.host), arguments.port);
        return Ok(regard_serve::check_health(address, arguments.access.certificate())?);
    }
    regard_serve::start_log(arguments.log.into());
    regard_serve::hide_panic_messages();
    let scheme = if arguments.access.certificate().is_some() { "https" } else { "http" };
    let announce = |address: SocketAddr, pairs: &[String]| {
        note!("regard: serving on {scheme}://{address}");
        for pair in pairs {
            note!("regard: {pair}");
        }
        let shown = SocketAddr::new(reachable(address.ip()), address.port());
        note!("regard: page {scheme}://{shown}/, API {scheme}://{shown}/docs");
    };
    serve(&arguments, announce, Shutdown::Signals)?;
    note!("regard: finished what was under way");
    Ok(())
}

/// For a caller with its own log and its own way to stop.
pub(crate) fn run_with(
    arguments: Arguments,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()> + Send + 'static,
) -> CommandResult {
    serve(&arguments, |address, _| ready(address), Shutdown::When(Box::pin(stop)))
}

/// Serves until shutdown. `ready` receives the address, and a line for each model about its
/// languages.
fn serve(
    arguments: &Arguments,
    ready: impl FnOnce(SocketAddr, &[String]),
    shutdown: Shutdown,
) -> CommandResult {
    let models = arguments.models()?;
    let pairs: Vec<String> = models.iter().map(pair).collect();
    let settings = arguments.settings(&models)?;
    let app = App::new(models, settings)?;
    let address = SocketAddr::new(arguments.host, arguments.port);
    let mut ready = Some(ready);
    let mut announce = |address| {
        if let Some(ready) = ready.take() {
            ready(address, &pairs);
        }
    };
    regard_serve::serve(app, address, &mut announce, shutdown).map_err(|error| match error {
        ServeError::Listen { .. } => format!("{error}; choose another --host or --port").into(),
        error => error.into(),
    })
}
