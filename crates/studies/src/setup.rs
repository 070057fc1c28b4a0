//! What a study is, and what it is given.

use crate::Report;
use regard_core::{Isa, Result};

/// How much work a study does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// A second or two, for tests: everything runs, but little can be concluded.
    Smoke,
    /// Within five minutes on two cores.
    #[default]
    Quick,
    /// As long as the question deserves.
    Full,
}

/// What a study is given.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// How much work.
    pub scale: Scale,
    /// All random numbers follow from it.
    pub seed: u64,
    /// How many cores to use.
    pub threads: usize,
    /// The instruction set of the kernels.
    pub isa: Isa,
    /// Gets what the study is doing, line by line.
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
    /// Seed 1, two threads, the machine's best instruction set, nobody who listens.
    pub fn new(scale: Scale) -> Self {
        Setup { scale, seed: 1, threads: 2, isa: Isa::best(), listener: &|_| {} }
    }
}

impl Setup<'_> {
    /// Says what is being done.
    pub fn progress(&self, text: impl AsRef<str>) {
        (self.listener)(text.as_ref());
    }

    /// The one of three values that belongs to the scale.
    pub fn choose<T>(&self, smoke: T, quick: T, full: T) -> T {
        match self.scale {
            Scale::Smoke => smoke,
            Scale::Quick => quick,
            Scale::Full => full,
        }
    }
}

/// One comparison that can be run.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// What stands above its report.
    pub title: &'static str,
    /// What it asks, in plain words.
    pub question: &'static str,
    /// Title and question in Chinese, the other language of the server's page.
    pub zh: [&'static str; 2],
    /// What it compares, in one line.
    pub about: &'static str,
    /// Makes the sentences, tables and pictures.
    pub body: fn(&Setup<'_>, &mut Report) -> Result<()>,
}

impl Study {
    /// Runs it.
    pub fn run(&self, setup: &Setup<'_>) -> Result<Report> {
        let mut report = Report::new(self.title).asking(self.question).in_chinese(self.zh);
        (self.body)(setup, &mut report)?;
        Ok(report)
    }
}
