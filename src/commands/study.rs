//! `regard study`: measured comparisons around the Transformer.

use super::numbers::whole_u16;
use super::{CommandResult, Output, Usage, cores, print_line};
use clap::Args;
use regard::Isa;
use regard_studies::{Report, Scale, Setup, Study, find, studies, write_index};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard study\n  \
    regard study smooth-maximum\n  \
    regard study positions --out positions\n  \
    regard study all --out studies\n\n\
    Without a name the studies are listed. Each takes at most about five minutes on two cores. Tables go to standard output;\n\
    --out also writes a page (index.html) with text, tables and pictures, a CSV file for each table and an SVG for each picture.\n\
    Several studies get a folder each, and a page that links to them.")]
pub(crate) struct Arguments {
    /// Which studies to run, or `all`
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Write the report into this folder
    #[arg(long, short, value_name = "DIR", requires = "names")]
    out: Option<PathBuf>,
    /// Run at full size, which takes longer than five minutes
    #[arg(long, requires = "names")]
    full: bool,
    /// Run each study for about a second, to check that it works
    #[arg(long, hide = true, requires = "names", conflicts_with = "full")]
    smoke: bool,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole_u16(1..=1024))]
    threads: Option<u16>,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    if arguments.names.is_empty() {
        return list();
    }
    let chosen = choose(&arguments.names)?;
    let listener = |text: &str| note!("{text}");
    let setup = Setup {
        scale: match (arguments.smoke, arguments.full) {
            (true, _) => Scale::Smoke,
            (_, true) => Scale::Full,
            _ => Scale::Quick,
        },
        seed: arguments.seed,
        threads: arguments.threads.map_or_else(cores, usize::from),
        isa: Isa::from_env()?,
        listener: &listener,
    };
    let out = arguments.out.as_deref();
    match &chosen[..] {
        [study] => run_one(study, &setup, out).map(|_| ()),
        studies => run_several(studies, &setup, out),
    }
}

/// The studies with these names, in order.
fn choose(names: &[String]) -> Result<Vec<&'static Study>, Usage> {
    if names.iter().any(|name| name == "all") {
        return Ok(studies().iter().collect());
    }
    let find = |name: &String| {
        find(name).ok_or_else(|| {
            let known: Vec<&str> = studies().iter().map(|study| study.name).collect();
            Usage(format!("{name}: no such study; accepted: {}, all", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

fn list() -> CommandResult {
    let width = studies().iter().map(|study| study.name.len()).max().unwrap_or(0);
    let mut output = Output::new();
    for study in studies() {
        output.line(format_args!("{:width$}  {}", study.name, study.about))?;
    }
    output
        .line(format_args!("{:width$}  every one of them, and a page that links to their reports", "all"))?;
    output.flush()
}

fn run_several(studies: &[&Study], setup: &Setup<'_>, out: Option<&Path>) -> CommandResult {
    let mut reports = Vec::new();
    for (i, study) in studies.iter().enumerate() {
        note!("study {} of {}: {}", i + 1, studies.len(), study.name);
        if i > 0 {
            print_line("")?;
        }
        let folder = out.map(|out| out.join(study.name));
        reports.push((*study, run_one(study, setup, folder.as_deref())?));
    }
    let Some(out) = out else { return Ok(()) };
    write_index(out, &reports)?;
    note!("all reports are in {}", out.join("index.html").display());
    Ok(())
}

/// Runs a study, prints its tables and writes its report.
fn run_one(
    study: &Study,
    setup: &Setup<'_>,
    out: Option<&Path>,
) -> Result<Report, Box<dyn std::error::Error>> {
    let start = Instant::now();
    let report = study.run(setup)?;
    let mut output = Output::new();
    output.bytes(report.tables_as_text().as_bytes())?;
    output.flush()?;
    if let Some(folder) = out {
        report.write(folder, &made(study, setup, start.elapsed().as_secs_f64()))?;
        note!("the report is in {}", folder.join("index.html").display());
    }
    Ok(report)
}

/// The command and the machine that produced a report.
fn made(study: &Study, setup: &Setup<'_>, seconds: f64) -> String {
    let scale = match setup.scale {
        Scale::Smoke => " --smoke",
        Scale::Quick => "",
        Scale::Full => " --full",
    };
    format!(
        "Made by: regard study {}{scale} --seed {} --threads {} (Regard {}, {seconds:.0} s, instruction set {}).",
        study.name,
        setup.seed,
        setup.threads,
        env!("CARGO_PKG_VERSION"),
        setup.isa
    )
}
