//! The training loop.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::data::Data;
use super::folder::Folder;
use super::plan::Plan;
use super::progress::{End, Outcome, Progress};
use super::state::{self, Best, Snapshot, State, Store};
use super::validate::Validator;
use crate::batches::plan_epoch;
use crate::config::{Every, TrainConfig, ValidationMetric};
use crate::distributed::{BatchPlace, Workers};
use crate::optimizer::{MovingAverage, Schedule, ScheduleKind};
use crate::report::{self, Card, CardCommands, Log, RunStatus, Trend};
use crate::step::{StepReport, Trainer};
use regard_core::formats::{Languages, Model};
use regard_core::formats::{Record, StepRecord, ValidationRecord};
use regard_core::{Error, Result};

/// Seconds since this process started its part of a run. Tests substitute their own.
pub(super) type Clock = Box<dyn Fn() -> f64>;

/// A plan that has changed by more than this share is reported to the user.
const REPORTED_CHANGE: f64 = 0.2;
/// The number of steps over which the running mean of the loss averages.
const LOOK_BACK: f64 = 50.0;
/// A run that starts from another model drops the initial weights if they cost more BLEU or chrF
/// than this, or the corresponding loss: then the text is too different for an average of the two
/// models.
const MARGIN: f64 = 5.0;
const MARGIN_OF_LOSS: f64 = 0.3;

pub(super) struct Run<'a> {
    pub(super) config: TrainConfig,
    pub(super) folder: Folder,
    pub(super) data: Data,
    pub(super) trainer: Trainer,
    /// The other processes of the job.
    pub(super) workers: Workers,
    pub(super) ema: Option<MovingAverage>,
    /// The weights of the model that the run started from, if a share of them is kept.
    pub(super) initial: Option<Vec<f32>>,
    pub(super) validator: Validator,
    pub(super) store: Store,
    pub(super) log: Log,
    pub(super) state: State,
    pub(super) stop: &'a AtomicBool,
    pub(super) progress: &'a mut dyn Progress,
    pub(super) clock: Clock,
    /// The total time of earlier parts of the run, in seconds.
    pub(super) before: f64,
    /// Whether another rank was asked to stop.
    pub(super) asked_to_stop: bool,
    /// The number of steps in the last message about the plan.
    pub(super) reported_steps: u64,
    pub(super) languages: Languages,
    pub(super) commands: CardCommands,
    /// The trend in the last message.
    pub(super) reported_trend: Trend,
}

/// Saves everything that the run needs to continue exactly.
pub(super) fn save_state(
    store: &mut Store,
    log: &mut Log,
    state: &mut State,
    trainer: &Trainer,
    ema: Option<&[f32]>,
) -> Result<()> {
    log.sync()?;
    state.log_length = log.length();
    let (first, second) = trainer.moments();
    let mut vectors = vec![trainer.weights(), first, second];
    vectors.extend(ema);
    store.save(state, &vectors)
}

impl Run<'_> {
    /// Runs from the current state to the end, or until it is stopped.
    pub(super) fn run(&mut self) -> Result<Outcome> {
        self.state.finished &= self.is_over();
        if self.state.finished {
            self.progress.message("this run is finished; a larger number of steps or epochs continues it");
            return Ok(self.outcome(End::Finished));
        }
        self.note_long_warmup();
        let (now, step) = (self.elapsed(), self.state.step);
        self.state.timings.restart(now, step);
        while !self.is_over() {
            let epoch = self.state.epoch;
            let plan = plan_epoch(&self.data.lengths, &self.config.batch.plan, self.config.seed, epoch);
            while self.state.epoch == epoch && !self.is_over() {
                if self.asked_to_stop || self.stop.load(Ordering::Relaxed) {
                    return self.interrupted();
                }
                let rest = &plan[(self.state.position as usize).min(plan.len() - 1)..];
                let group = &rest[..rest.len().min(self.config.batch.accumulate)];
                self.step(group, plan.len())?;
            }
        }
        self.finish()
    }

    /// Warns about a warm-up that is too long: it is meant for the recipe's own number of steps,
    /// and in a much shorter run the rate would never reach its peak.
    fn note_long_warmup(&mut self) {
        let tokens: u64 = self.data.lengths.iter().map(|l| u64::from(l.1)).sum();
        let a_step = (self.config.batch.plan.max_tokens * self.config.batch.accumulate).max(1) as u64;
        let by_epochs = self.config.epochs.map(|e| e.saturating_mul(tokens.div_ceil(a_step)));
        let warmup = self.config.schedule.warmup;
        if self.config.minutes.is_none()
            && let Some(steps) = [self.config.steps, by_epochs].into_iter().flatten().min()
            && warmup > steps / 2
        {
            self.progress.message(&format!(
                "a warm-up of {warmup} steps is too long for a run of about {steps}: the learning rate {}; \
                 schedule.warmup={} would fit",
                if warmup >= steps { "never reaches its peak" } else { "reaches its peak late" },
                (steps / 8).max(1)
            ));
        }
    }

    /// The last step, if known.
    fn last_step(&self) -> Option<u64> {
        match (&self.state.plan, self.config.minutes) {
            (Some(plan), _) => Some(plan.steps),
            (None, Some(_)) => None,
            (None, None) => self.config.steps,
        }
    }

    fn is_over(&self) -> bool {
        let timed = self.config.minutes.is_some();
        self.last_step().is_some_and(|last| self.state.step >= last)
            || (!timed && self.config.epochs.is_some_and(|e| self.state.epoch >= e))
            || self.config.validation.patience.is_some_and(|p| self.state.validations_since_best >= p)
    }

    fn schedule(&self) -> Schedule {
        self.state.plan.as_ref().map_or(self.config.schedule, |plan| plan.schedule)
    }

    /// One step on a few batches of the epoch's plan, and whatever is due after it.
    fn step(&mut self, group: &[Vec<u32>], in_epoch: usize) -> Result<()> {
        let start = (self.clock)();
        let number = self.state.step + 1;
        let rate = self.schedule().rate(number, self.config.model.d_model, self.last_step());
        let batch = |pairs: &Vec<u32>| self.data.batch(&self.config, self.state.epoch, pairs);
        let batches = match group.iter().map(batch).collect::<Result<Vec<_>>>() {
            Ok(batches) => batches,
            Err(error) => return Err(self.saved_before(error)),
        };
        let place = BatchPlace { epoch: self.state.epoch, position: self.state.position };
        self.trainer.set_r_drop(self.config.optimizer.r_drop_in(place.epoch));
        let report = self.workers.step(&mut self.trainer, place, &batches, rate as f32)?;
        self.asked_to_stop |= report.stop;
        self.check_divergence(number, &report)?;
        if let Some(ema) = &mut self.ema {
            ema.update(number, self.trainer.weights());
        }
        self.state.step = number;
        self.state.position += group.len() as u64;
        let epochs_done = (self.state.position as usize >= in_epoch).then(|| {
            (self.state.epoch, self.state.position) = (self.state.epoch + 1, 0);
            self.state.epoch
        });
        self.record_step(&report, rate, (self.clock)() - start, in_epoch)?;
        self.update_plan()?;
        self.after_step(epochs_done)
    }

    /// Records a step that took this long, and logs it if a line is due.
    fn record_step(&mut self, report: &StepReport, rate: f64, seconds: f64, in_epoch: usize) -> Result<()> {
        let number = self.state.step;
        self.state.seconds += seconds;
        self.state.tokens += report.target_tokens as u64;
        let pending = &mut self.state.pending;
        pending.0 += report.loss * report.target_tokens as f64;
        pending.1 += report.target_tokens as u64;
        pending.2 += seconds;
        self.state.pending_nll += report.nll * report.target_tokens as f64;
        let record = StepRecord {
            step: number,
            epoch: self.state.epoch as f64 + self.state.position as f64 / in_epoch as f64,
            loss: pending.0 / pending.1.max(1) as f64,
            nll: Some(self.state.pending_nll / pending.1.max(1) as f64),
            rate,
            gradient_norm: report.gradient_norm,
            tokens_per_second: pending.1 as f64 / pending.2.max(1e-9),
            seconds: self.state.seconds,
        };
        let total = self.last_step();
        self.progress.step(&record, total);
        let due = number.is_multiple_of(self.config.log_every);
        let last = total == Some(number);
        // The loss falls fastest in the first steps, so log these more often.
        if due || last || (number < self.config.log_every && number.is_power_of_two()) {
            (self.state.pending, self.state.pending_nll) = ((0.0, 0, 0.0), 0.0);
            if due {
                self.progress.logged(&record, total);
            }
            self.log.write(&Record::Step(record))?;
        }
        Ok(())
    }

    /// Saves everything because a step failed with `error`.
    fn saved_before(&mut self, error: Error) -> Error {
        match self.save() {
            Ok(()) => {
                let text = format!("stopped after step {}; everything up to it is saved", self.state.step);
                self.progress.message(&text);
            }
            Err(e) => self.progress.message(&format!("the state could not be saved either: {e}")),
        }
        error
    }

    /// Runs validation, saves weights for averaging and writes the checkpoint, where due.
    fn after_step(&mut self, epochs_done: Option<u64>) -> Result<()> {
        let step = self.state.step;
        let (validate, save) = match &mut self.state.plan {
            Some(plan) => plan.due(step),
            // A plan will be made soon.
            None if self.config.minutes.is_some() => (false, false),
            None => {
                let (validation, checkpoints) = (&self.config.validation, &self.config.checkpoints);
                (validation.every.due(step, epochs_done), checkpoints.every.due(step, epochs_done))
            }
        };
        let (validate, save) = (validate || self.is_over(), save || self.is_over());
        let score = if validate { Some(self.validate()?) } else { None };
        if validate {
            self.write_records(true, "Running")?;
        }
        let n = self.config.checkpoints.average;
        if (save || validate) && n > 0 {
            self.store.save_weights(step, self.weights())?;
            self.state.snapshots.push(Snapshot { step, score });
            state::keep(&mut self.state.snapshots, n);
        }
        if save || validate {
            self.save()?;
        }
        Ok(())
    }

    /// Stops a diverged run before it saves anything.
    fn check_divergence(&mut self, step: u64, report: &StepReport) -> Result<()> {
        // Without R-Drop's divergence, which a run may begin to add later.
        let loss = report.nll;
        let why = if report.applied {
            let (mean, least) = self.state.running.unwrap_or((loss, loss));
            let mean = mean + (loss - mean) / LOOK_BACK.min(step as f64);
            let least = least.min(mean);
            self.state.running = Some((mean, least));
            // Far above noise, and below the loss of an untrained model.
            let exploded = step > LOOK_BACK as u64 && mean > 1.3 * least + 1.0;
            exploded.then(|| format!("the loss has risen from {least:.2} to {mean:.2}"))
        } else {
            Some(format!("loss or gradient is no longer a number (loss {})", report.loss))
        };
        let Some(why) = why else { return Ok(()) };
        let resumable = self.config.minutes.is_none();
        // What a time limit makes of the schedule in the configuration is planned anew.
        let schedule = if resumable { self.schedule() } else { self.config.schedule };
        let peak = schedule.peak(self.config.model.d_model);
        let message = format!(
            "{why} at step {step}; the model in {} and the last checkpoint are from before. What helps most is a lower \
             learning rate, then a longer warm-up, then clipping",
            self.folder.out.display()
        );
        let kind = match schedule.kind {
            ScheduleKind::Linear => "linear",
            ScheduleKind::Constant => "constant",
            _ => "inverse-sqrt",
        };
        let settings = vec![
            format!("schedule.kind={kind}"),
            format!("schedule.peak={}", (peak / 2.0) as f32),
            format!("schedule.warmup={}", 2 * schedule.warmup.max(500)),
            "optimizer.clip=1".into(),
        ];
        Err(Error::Diverged { message, settings, resumable })
    }

    /// In a run with a time limit, estimates the number of steps.
    fn update_plan(&mut self) -> Result<()> {
        let (step, now) = (self.state.step, self.elapsed());
        let State { plan, timings, .. } = &mut self.state;
        let first = plan.is_none();
        if !Plan::update(plan, timings, &self.config, now, step) {
            return Ok(());
        }
        let (Some(plan), Some(minutes)) = (&*plan, self.config.minutes) else { return Ok(()) };
        let change = (plan.steps as f64 / self.reported_steps.max(1) as f64 - 1.0).abs();
        if first || change > REPORTED_CHANGE {
            self.reported_steps = plan.steps;
            self.progress.message(&format!(
                "{minutes} minutes are about {} steps of {:.0} ms, with a validation every {} steps{}",
                plan.steps,
                1e3 * timings.per_step,
                plan.interval,
                if first { "; the number is revised as steps are timed" } else { "" }
            ));
        }
        if first { self.save() } else { Ok(()) }
    }

    /// The weights to validate and average: the moving average, if there is one.
    fn weights(&self) -> &[f32] {
        self.ema.as_ref().map_or_else(|| self.trainer.weights(), MovingAverage::weights)
    }

    /// The given weights, averaged with the initial ones if a share of these is kept.
    fn with_initial<'w>(&self, weights: &'w [f32]) -> Cow<'w, [f32]> {
        let Some(initial) = &self.initial else { return Cow::Borrowed(weights) };
        let share = self.config.checkpoints.init_share;
        weights.iter().zip(initial).map(|(new, old)| new + share * (old - new)).collect()
    }

    fn elapsed(&self) -> f64 {
        self.before + (self.clock)()
    }

    fn save(&mut self) -> Result<()> {
        self.state.all_seconds = self.elapsed();
        self.workers.collect_moments(&mut self.trainer);
        let ema = self.ema.as_ref().map(MovingAverage::weights);
        save_state(&mut self.store, &mut self.log, &mut self.state, &self.trainer, ema)
    }

    /// Validates the current weights; the best so far become the model in the folder. Returns the
    /// score.
    fn validate(&mut self) -> Result<f64> {
        let weights = self.weights().to_vec();
        let (best, better) = self.try_weights(&self.with_initial(&weights), "step", 0.0)?;
        let score = best.score;
        if better {
            self.state.best = Some(best);
            self.state.validations_since_best = 0;
        } else {
            self.state.validations_since_best += 1;
        }
        Ok(score)
    }

    /// Validates any weights, and saves them as the model if they beat the best so far by more than
    /// `margin`.
    fn try_weights(&mut self, weights: &[f32], name: &str, margin: f64) -> Result<(Best, bool)> {
        let (step, start) = (self.state.step, (self.clock)());
        // Validation needs memory of its own: free the trainer's first.
        self.trainer.release_memory();
        let found = self.validator.run(self.trainer.model(), weights)?;
        let score = match self.config.validation.metric {
            ValidationMetric::Bleu => found.bleu,
            ValidationMetric::Chrf => found.chrf,
            ValidationMetric::Loss => -found.loss,
        };
        let best = Best { step, score, loss: found.loss, bleu: found.bleu, chrf: found.chrf };
        let better =
            self.state.best.as_ref().is_none_or(|old| best.beats(old, margin)) && found.loss.is_finite();
        if better {
            let file = self.folder.out.join("model.safetensors");
            Model::save_weights(self.trainer.model(), weights, &file, self.config.checkpoints.store)?;
        }
        let record = ValidationRecord {
            step,
            loss: found.loss,
            perplexity: found.loss.exp(),
            bleu: found.bleu,
            chrf: found.chrf,
            seconds: self.state.seconds,
            weights: name.to_owned(),
            samples: found.samples,
        };
        self.progress.validated(&record, better);
        self.log.write(&Record::Validation(record))?;
        self.state.timings.validated((self.clock)() - start);
        Ok((best, better))
    }

    fn interrupted(&mut self) -> Result<Outcome> {
        self.save()?;
        self.write_records(false, "Interrupted")?;
        self.progress.message(&format!("stopped after step {}, everything is saved", self.state.step));
        Ok(self.outcome(End::Interrupted))
    }

    /// Tries the averages of the kept weights; then writes the report.
    fn finish(&mut self) -> Result<Outcome> {
        let n = self.config.checkpoints.average;
        let last = state::last(&self.state.snapshots, n);
        let best = state::best(&self.state.snapshots, n);
        let mut tried: Vec<(Vec<u64>, &str)> = vec![(last.clone(), "last")];
        if best != last {
            tried.push((best, "best"));
        }
        let length = self.trainer.weights().len();
        for (steps, which) in tried {
            let Some(weights) = self.store.average(&steps, length) else { continue };
            let name = format!("average of the {which} {}", steps.len());
            let (found, better) = self.try_weights(&self.with_initial(&weights), &name, 0.0)?;
            if better {
                self.state.best = Some(found);
            }
        }
        if self.initial.is_some() {
            let weights = self.store.average(&last, length).unwrap_or_else(|| self.weights().to_vec());
            let margin = match self.config.validation.metric {
                ValidationMetric::Bleu | ValidationMetric::Chrf => MARGIN,
                ValidationMetric::Loss => MARGIN_OF_LOSS,
            };
            let name = format!("average of the last {} without the original model", last.len());
            let (found, better) = self.try_weights(&weights, &name, margin)?;
            if better {
                self.state.best = Some(found);
            }
        }
        self.state.finished = true;
        self.save()?;
        self.write_records(false, "Finished")?;
        Ok(self.outcome(End::Finished))
    }

    /// Writes the report and the model card, and reports how the run is going if that has changed.
    fn write_records(&mut self, running: bool, what: &str) -> Result<()> {
        let best = self.state.best.as_ref().map_or(String::new(), |b| {
            format!(
                " The model in the folder has BLEU {:.2} and chrF {:.2} on the validation sentences.",
                b.bleu, b.chrf
            )
        });
        let summary = format!(
            "{what} after {} steps, {:.1} epochs and {:.1} minutes, {:.1} of them in training steps \
             at {:.0} target tokens per second.{best}",
            self.state.step,
            self.epochs(),
            self.elapsed() / 60.0,
            self.state.seconds / 60.0,
            self.state.tokens as f64 / self.state.seconds.max(1e-9)
        );
        let status = RunStatus { summary, running, remaining: self.remaining(), memory: report::resident() };
        let verdict = report::write(&self.folder.logs, &self.config, &status)?;
        let bad = matches!(verdict.trend, Trend::Overfitting | Trend::RateTooHigh | Trend::Stalled);
        if bad && verdict.trend != self.reported_trend {
            self.progress.message(&format!("{} {}", verdict.text, verdict.advice));
        }
        self.reported_trend = verdict.trend;
        self.card().write(&self.folder.out)
    }

    /// The current contents of the model card.
    fn card(&self) -> Card<'_> {
        let model = self.trainer.model();
        Card {
            config: &self.config,
            languages: &self.languages,
            commands: &self.commands,
            corpus: self.data.corpus.summary(),
            weights: model.parameters().len(),
            vocabulary: (model.config().source_vocabulary, model.config().target_vocabulary),
            steps: self.state.step,
            minutes: self.elapsed() / 60.0,
            scores: self.state.best.as_ref().map(|best| (best.bleu, best.chrf, best.loss)),
            validation_pairs: self.validator.len(),
        }
    }

    /// The remaining seconds, if known: steps, and the validations among them.
    fn remaining(&self) -> Option<f64> {
        if let Some(minutes) = self.config.minutes {
            return Some((60.0 * minutes - self.elapsed()).max(0.0));
        }
        let left = self.last_step()?.saturating_sub(self.state.step) as f64;
        let per_step = self.state.seconds / self.state.step.max(1) as f64;
        let validations = match self.config.validation.every {
            Every::Steps(every) => left / every as f64,
            Every::Epochs(_) => 0.0,
        };
        Some(left * per_step + validations * self.state.timings.validation)
    }

    /// The number of passes over the corpus, with the fraction of the last one.
    fn epochs(&self) -> f64 {
        let per_epoch =
            self.state.tokens as f64 / self.data.lengths.iter().map(|l| f64::from(l.1)).sum::<f64>();
        (self.state.epoch as f64).max(per_epoch.min(self.state.epoch as f64 + 1.0))
    }

    fn outcome(&self, end: End) -> Outcome {
        Outcome {
            end,
            steps: self.state.step,
            bleu: self.state.best.as_ref().map(|b| b.bleu),
            chrf: self.state.best.as_ref().map(|b| b.chrf),
            seconds: self.state.seconds,
            all_seconds: self.elapsed(),
            target_tokens: self.state.tokens,
        }
    }
}

#[cfg(test)]
mod tests;
