//! Settings of `serve` and `train` from the environment and from a file: flags override the
//! environment, and the environment overrides the file.
//!
//! Every flag has a variable: `--max-batch` is `REGARD_MAX_BATCH`. A setting becomes the default of
//! its flag, so that everything else about it (its range, its message, its conflicts) stays where
//! the flag is defined.

use super::Usage;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The commands that read settings.
const COMMANDS: [&str; 2] = ["serve", "train"];

/// Flags that are not settings.
const ACTIONS: [&str; 4] = ["help", "version", "health-check", "resume"];

/// Variables of LibreTranslate that correspond to a flag of `serve`.
const LIBRETRANSLATE: [(&str, &str); 7] = [
    ("LT_HOST", "host"),
    ("LT_PORT", "port"),
    ("LT_THREADS", "threads"),
    ("LT_CHAR_LIMIT", "char-limit"),
    ("LT_BATCH_LIMIT", "batch-limit"),
    ("LT_REQ_LIMIT", "requests-per-minute"),
    ("LT_ALTERNATIVES_LIMIT", "alternatives-limit"),
];

/// A setting that is not a flag of this call.
#[derive(Clone, Debug, PartialEq)]
struct Setting {
    /// The long name of its flag.
    flag: String,
    /// Without a value, the flag keeps its own default, whatever the file says.
    values: Vec<String>,
    /// The name that the user knows: a variable, or a key of a file.
    name: String,
}

/// The definitions, with the settings of the environment and of a file as defaults of their flags,
/// for a call with these arguments.
pub(crate) fn with_settings(
    root: Command,
    arguments: &[OsString],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Command, Usage> {
    let name = arguments.first().and_then(|first| first.to_str()).filter(|name| COMMANDS.contains(name));
    let Some(command) = name.and_then(|name| root.find_subcommand(name)) else { return Ok(root) };
    let name = command.get_name().to_owned();
    let environment = from_environment(command, &name, &variable)?;
    check(&root, &name, &environment, "environment")?;
    let file = match given(arguments, "config").or_else(|| variable("REGARD_CONFIG").map(OsString::from)) {
        // The file of a training run has its own format.
        Some(file) if name == "serve" => {
            let settings = from_file(Path::new(&file))?;
            check(&root, &name, &settings, &Path::new(&file).display().to_string())?;
            settings
        }
        _ => Vec::new(),
    };
    let mut chosen: Vec<Setting> = Vec::new();
    for setting in environment.into_iter().chain(file) {
        let excluded = conflicts(command, &setting.flag);
        let is_known = |flag: &String| {
            let is_set = |known: &Setting| known.flag == *flag && !known.values.is_empty();
            chosen.iter().any(is_set) || given(arguments, flag).is_some()
        };
        if !chosen.iter().any(|known| known.flag == setting.flag) && !excluded.iter().any(is_known) {
            chosen.push(setting);
        }
    }
    Ok(root.mut_subcommand(name, |command| chosen.into_iter().fold(command, with_default)))
}

/// Makes the values of a setting the default of its flag.
fn with_default(command: Command, setting: Setting) -> Command {
    if setting.values.is_empty() {
        return command;
    }
    let id = command.get_arguments().find(|arg| arg.get_long() == Some(&setting.flag)).map(Arg::get_id);
    let Some(id) = id.map(|id| id.as_str().to_owned()) else { return command };
    // Definitions hold borrowed text; leaking it is fine because this runs once.
    let values: Vec<&'static str> = setting.values.into_iter().map(|value| &*value.leak()).collect();
    command.mut_arg(id, |arg| arg.required(false).default_values(values))
}

/// The flags that conflict with `flag`.
fn conflicts(command: &Command, flag: &str) -> Vec<String> {
    let excludes = |arg: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(arg).iter().any(|excluded| excluded.get_id() == other.get_id())
    };
    let Some(arg) = command.get_arguments().find(|arg| arg.get_long() == Some(flag)) else {
        return Vec::new();
    };
    let others = command.get_arguments().filter(|other| excludes(arg, other) || excludes(other, arg));
    others.filter_map(|other| other.get_long().map(str::to_owned)).collect()
}

/// The value of a flag among the arguments, empty if it has none; `None` if it is not given.
fn given(arguments: &[OsString], flag: &str) -> Option<OsString> {
    let flag = format!("--{flag}");
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        if *text == *flag {
            return Some(rest.next().cloned().unwrap_or_default());
        }
        if let Some(value) = text.strip_prefix(&flag).and_then(|rest| rest.strip_prefix('=')) {
            return Some(OsString::from(value));
        }
    }
    None
}

fn from_environment(
    command: &Command,
    name: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<Setting>, Usage> {
    // An empty variable counts as not set.
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let mut found = Vec::new();
    for arg in command.get_arguments() {
        let Some(flag) = arg.get_long().filter(|flag| !ACTIONS.contains(flag)) else { continue };
        let own = format!("REGARD_{}", flag.to_uppercase().replace('-', "_"));
        let theirs =
            LIBRETRANSLATE.iter().find(|(_, of)| name == "serve" && *of == flag).map(|known| known.0);
        let mut named = [Some(own), theirs.map(str::to_owned)].into_iter().flatten();
        let Some((name, value)) = named.find_map(|name| variable(&name).map(|value| (name, value))) else {
            continue;
        };
        // LibreTranslate's notation for "no limit".
        if name.starts_with("LT_") && value.trim() == "-1" && name != "LT_REQ_LIMIT" {
            note!("regard: {name}=-1 is left aside: --{flag} has a limit in any case, and a default");
            continue;
        }
        let values = match arg.get_action() {
            // No limit is also the default here.
            _ if name == "LT_REQ_LIMIT" && matches!(value.trim(), "-1" | "0") => Vec::new(),
            ArgAction::SetTrue => match truth(&value) {
                Some(true) => vec!["true".to_owned()],
                Some(false) => Vec::new(),
                None => return Err(Usage(format!("{name}={value}: true or false is accepted"))),
            },
            ArgAction::Append => value.split(',').map(|value| value.trim().to_owned()).collect(),
            _ => vec![value],
        };
        found.push(Setting { flag: flag.to_owned(), values, name });
    }
    Ok(found)
}

fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// The settings of a TOML file: `max-batch = 16`; underscores and hyphens are equivalent.
fn from_file(file: &Path) -> Result<Vec<Setting>, Usage> {
    let wrong = |message: String| Usage(format!("{}: {message}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let table: toml::Table =
        toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
    let mut found = Vec::new();
    for (name, value) in table {
        let values = match value {
            toml::Value::Boolean(false) => continue,
            toml::Value::Array(values) => values.iter().map(scalar).collect::<Option<Vec<_>>>(),
            other => scalar(&other).map(|value| vec![value]),
        };
        let message =
            || wrong(format!("{name}: a text, a number, true, false or a list of texts is accepted"));
        let values = values.ok_or_else(message)?;
        found.push(Setting { flag: name.replace('_', "-"), values, name });
    }
    Ok(found)
}

fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(true) => Some("true".into()),
        _ => None,
    }
}

/// Rejects settings that their flags would reject, under the names that the user gave them.
fn check(root: &Command, name: &str, settings: &[Setting], origin: &str) -> Result<(), Usage> {
    let command = root.clone().mut_subcommand(name, |command| command.mut_args(|arg| arg.required(false)));
    let is_switch = |flag: &str| {
        let arg = root.find_subcommand(name)?.get_arguments().find(|arg| arg.get_long() == Some(flag))?;
        Some(matches!(arg.get_action(), ArgAction::SetTrue))
    };
    let mut line = vec![OsString::from("regard"), OsString::from(name)];
    for Setting { flag, values, .. } in settings {
        match (is_switch(flag), &values[..]) {
            (Some(true), [value]) if value == "true" => line.push(format!("--{flag}").into()),
            _ => line.extend(values.iter().map(|value| OsStr::new(&format!("--{flag}={value}")).to_owned())),
        }
    }
    let Err(error) = command.try_get_matches_from(line) else { return Ok(()) };
    // Flags may provide what is missing here.
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return Ok(());
    }
    let mut message = crate::cli::first_paragraph(&error.to_string());
    // Replace the longest names first: --host is a prefix of other flags.
    let mut by_length: Vec<&Setting> = settings.iter().collect();
    by_length.sort_by_key(|setting| std::cmp::Reverse(setting.flag.len()));
    for Setting { flag, name, .. } in by_length {
        message = message.replace(&format!("--{flag}"), name);
    }
    let message =
        message.replace("unexpected argument", "unknown setting").replace(" found\n\n  tip: ", "; ");
    Err(Usage(format!("{origin}: {}", message.replace("argument exists: '--", "one exists: '"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn parse(arguments: &[&str], variables: &[(&str, &str)]) -> Result<clap::ArgMatches, String> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let root = with_settings(crate::cli::definitions(), &arguments, variable).map_err(|e| e.0)?;
        let line = [OsString::from("regard")].into_iter().chain(arguments);
        let matches = root.try_get_matches_from(line).map_err(|e| e.to_string())?;
        matches.subcommand().map(|(_, matches)| matches.clone()).ok_or_else(|| "no command".into())
    }

    #[test]
    fn flags_override_the_environment_and_that_overrides_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("serve.toml");
        std::fs::write(&file, "model = [\"a\", \"b\"]\nport = 1\nmax_batch = 2\ntimeout = 3.5\n").unwrap();
        let config = format!("--config={}", file.display());
        let variables =
            [("REGARD_PORT", "7"), ("LT_PORT", "9"), ("LT_CHAR_LIMIT", "50"), ("REGARD_HOST", "")];
        let found = parse(&["serve", &config, "--max-batch", "4"], &variables).unwrap();
        assert_eq!(found.get_many::<String>("model").unwrap().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(found.get_one::<u16>("port"), Some(&7));
        assert_eq!(found.get_one::<usize>("max_batch"), Some(&4));
        assert_eq!(found.get_one::<usize>("char_limit"), Some(&50));
        assert_eq!(found.get_one::<f64>("timeout"), Some(&3.5));
        assert_eq!(found.get_one::<std::net::IpAddr>("host").unwrap().to_string(), "127.0.0.1");
        // The environment may name the file, and both may name models.
        let variables = [("REGARD_CONFIG", file.to_str().unwrap()), ("REGARD_MODEL", "x, y")];
        let found = parse(&["serve"], &variables).unwrap();
        assert_eq!(found.get_many::<String>("model").unwrap().collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(found.get_one::<u16>("port"), Some(&1));
    }

    #[test]
    fn what_the_environment_turns_off_stays_off_whatever_the_file_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("serve.toml");
        std::fs::write(&file, "sample = true\nrequests-per-minute = 60\nchar-limit = 70\n").unwrap();
        let config = format!("--config={}", file.display());
        let found = |variables: &[(&str, &str)]| {
            let found = parse(&["serve", &config], variables).unwrap();
            let requests = found.get_one::<u32>("requests_per_minute").copied();
            (found.get_flag("sample"), requests, found.get_one::<usize>("char_limit").copied())
        };
        assert_eq!(found(&[]), (true, Some(60), Some(70)));
        assert_eq!(found(&[("REGARD_SAMPLE", "false")]), (false, Some(60), Some(70)));
        for no_limit in ["-1", "0"] {
            assert_eq!(found(&[("LT_REQ_LIMIT", no_limit)]), (true, None, Some(70)));
        }
        // The number of characters is always limited.
        assert_eq!(found(&[("LT_CHAR_LIMIT", "-1")]), (true, Some(60), Some(70)));
        assert_eq!(found(&[("LT_REQ_LIMIT", "-1"), ("REGARD_REQUESTS_PER_MINUTE", "9")]).1, Some(9));
        // A flag that is off conflicts with nothing.
        std::fs::write(&file, "shortlist = \"lex.txt\"\n").unwrap();
        let found = parse(&["serve", &config], &[("REGARD_NO_SHORTLIST", "false")]).unwrap();
        assert!(found.get_one::<std::path::PathBuf>("shortlist").is_some());
        let found = parse(&["serve", &config], &[("REGARD_NO_SHORTLIST", "true")]).unwrap();
        assert!(found.get_one::<std::path::PathBuf>("shortlist").is_none());
    }

    #[test]
    fn a_training_run_reads_the_environment() {
        let found =
            parse(&["train", "--steps", "5"], &[("REGARD_OUT", "m"), ("REGARD_MINUTES", "3")]).unwrap();
        assert_eq!(found.get_one::<u64>("steps"), Some(&5));
        assert_eq!(found.get_one::<f64>("minutes"), None, "a flag that excludes it is given");
        assert!(parse(&["score"], &[("REGARD_HYP", "a")]).is_err(), "other commands do not");
    }

    #[test]
    fn wrong_settings_are_named_as_they_were_given() {
        let wrong = |variables: &[(&str, &str)]| parse(&["serve"], variables).unwrap_err();
        let message = wrong(&[("REGARD_PORT", "many")]);
        assert!(message.starts_with("environment: invalid value 'many' for 'REGARD_PORT"), "{message}");
        let message = wrong(&[("REGARD_SAMPLE", "perhaps")]);
        assert_eq!(message, "REGARD_SAMPLE=perhaps: true or false is accepted");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.toml");
        let of_file = |text: &str| {
            std::fs::write(&file, text).unwrap();
            wrong(&[("REGARD_CONFIG", file.to_str().unwrap())])
        };
        let message = of_file("prot = 3\n");
        assert!(
            message.ends_with("s.toml: unknown setting 'prot'; a similar one exists: 'port'"),
            "{message}"
        );
        assert!(of_file("port = {}\n").contains("s.toml: port: a text, a number"));
        assert!(of_file("port = \n").contains("s.toml: TOML parse error"));
        let message = wrong(&[("REGARD_CONFIG", "no-such.toml")]);
        assert!(message.starts_with("no-such.toml: "), "{message}");
        assert!(crate::cli::Arguments::try_parse_from(["regard", "serve", "--model", "m"]).is_ok());
    }
}
