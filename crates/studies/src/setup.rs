//! Studies and their settings.

use crate::Report;
use regard_core::{Isa, Result};

/// The amount of work for a study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// One or two seconds, for tests: everything runs, but the results are not conclusive.
    Smoke,
    /// At most five minutes on two cores.
    #[default]
    Quick,
    /// As long as the question needs.
    Full,
}

/// The settings of a run.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// The amount of work.
    pub scale: Scale,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of cores to use.
    pub threads: usize,
    /// The instruction set of the kernels.
    pub isa: Isa,
    /// Called with a progress message for each step.
    pub listener: &'a (dyn Fn(&str) + Sync),
}

impl std::fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Setup { scale, seed, threads, isa, .. } = self;
        f.debug_struct("Setup")
            .field("scale", scale)
            .field("seed", seed)
            .field("threads", threads)
            .field("isa", isa)
            .finish_non_exhaustive()
    }
}

impl Setup<'static> {
    /// Seed 1, two threads, the best instruction set of the machine, and no progress messages.
    pub fn new(scale: Scale) -> Self {
        Setup { scale, seed: 1, threads: 2, isa: Isa::best(), listener: &|_| {} }
    }
}

impl Setup<'_> {
    /// Reports progress.
    pub fn progress(&self, text: impl AsRef<str>) {
        (self.listener)(text.as_ref());
    }

    /// Selects one of three values by scale.
    pub fn choose<T>(&self, smoke: T, quick: T, full: T) -> T {
        match self.scale {
            Scale::Smoke => smoke,
            Scale::Quick => quick,
            Scale::Full => full,
        }
    }
}

/// A study that can be run.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// The name on the command line.
    pub name: &'static str,
    /// The title of its report.
    pub title: &'static str,
    /// The question in plain words.
    pub question: &'static str,
    /// The title and question in Chinese, the second language of the server's page.
    pub zh: [&'static str; 2],
    /// A one-line description of the comparison.
    pub about: &'static str,
    /// Adds the text, tables and pictures to the report.
    pub body: fn(&Setup<'_>, &mut Report) -> Result<()>,
}

impl Study {
    /// Runs the study.
    pub fn run(&self, setup: &Setup<'_>) -> Result<Report> {
        let mut report = Report::new(self.title).asking(self.question).in_chinese(self.zh);
        (self.body)(setup, &mut report)?;
        Ok(report)
    }
}
