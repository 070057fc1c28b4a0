//! Overlaps the gradient exchange with the backward pass.
//!
//! A replica sends copies of the buckets whose gradients are final to a thread that adds those of
//! all replicas and exchanges the sum with the other ranks. The order of the buckets depends only
//! on the model, and every sum has the same order as in a step without overlap: the training is
//! bitwise the same, and only speed decides between the two.

use super::exchange::Bucket;
use regard_core::model::Transformer;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Whether to exchange gradients while the backward pass still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// Measures both in the first steps, and then uses the faster.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// The number of steps with and without overlap that are compared, after one warm-up step each.
const TRIALS: usize = 4;

/// Decides whether the next step overlaps. All ranks have the same timings and reach the same
/// decision.
#[derive(Debug)]
pub(super) struct OverlapTuner {
    overlap: Overlap,
    /// Seconds per target token in the trials without and with overlap.
    tried: [Vec<f64>; 2],
}

impl OverlapTuner {
    pub(super) fn new(overlap: Overlap) -> Self {
        OverlapTuner { overlap, tried: Default::default() }
    }

    /// Whether the next step overlaps.
    pub(super) fn overlaps(&self) -> bool {
        let [without, with] = &self.tried;
        match self.overlap {
            Overlap::On => true,
            Overlap::Off => false,
            Overlap::Auto if without.len() <= TRIALS => false,
            Overlap::Auto if with.len() <= TRIALS => true,
            Overlap::Auto => median(&with[1..]) < median(&without[1..]),
        }
    }

    /// Records the seconds per target token of a step.
    pub(super) fn record(&mut self, overlapped: bool, seconds: f64) {
        let tried = &mut self.tried[usize::from(overlapped)];
        if tried.len() <= TRIALS {
            tried.push(seconds);
        }
    }
}

fn median(x: &[f64]) -> f64 {
    let mut sorted = x.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// A bucket, and the mark of the backward pass after which its gradients are final; without a mark,
/// they are final at the end.
#[derive(Clone, Debug)]
pub(super) struct GradientBucket {
    pub(super) bucket: Bucket,
    pub(super) mark: Option<usize>,
}

impl GradientBucket {
    fn is_final(&self, passed: Option<usize>) -> bool {
        passed.is_none_or(|passed| self.mark.is_some_and(|mark| passed <= mark))
    }
}

/// The buckets in the order in which their gradients become final.
pub(super) fn gradient_buckets(
    model: &Transformer,
    buckets: impl Iterator<Item = Bucket>,
) -> Arc<[GradientBucket]> {
    let with_mark = |bucket: Bucket| GradientBucket { mark: model.final_after(bucket.range.clone()), bucket };
    let mut buckets: Vec<GradientBucket> = buckets.map(with_mark).collect();
    buckets.sort_by_key(|bucket| Reverse(bucket.mark));
    buckets.into()
}

/// The buckets that a replica has not sent yet.
#[derive(Debug)]
pub(crate) struct BucketQueue {
    buckets: Arc<[GradientBucket]>,
    next: usize,
    to: Sender<Vec<f32>>,
}

/// The sending and the receiving end of a replica's buckets.
pub(super) fn bucket_queue(buckets: &Arc<[GradientBucket]>) -> (BucketQueue, Receiver<Vec<f32>>) {
    let (to, from) = channel();
    (BucketQueue { buckets: Arc::clone(buckets), next: 0, to }, from)
}

impl BucketQueue {
    /// Sends the buckets that are final once the backward pass has passed this mark, or has ended.
    pub(crate) fn release(&mut self, passed: Option<usize>, gradients: &[f32]) {
        while let Some(next) = self.buckets.get(self.next).filter(|bucket| bucket.is_final(passed)) {
            // The receiver is gone only if another replica has failed, which ends the step.
            let _ = self.to.send(gradients[next.bucket.range.clone()].to_vec());
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_way_is_kept_after_both_were_tried() {
        for (with, wanted) in [(0.5, true), (2.0, false)] {
            let mut tuner = OverlapTuner::new(Overlap::Auto);
            let mut ways = Vec::new();
            for step in 0..30 {
                let overlapped = tuner.overlaps();
                ways.push(overlapped);
                // A slow first step of either kind decides nothing, nor does a single slow step in
                // between.
                let slow = if step % (TRIALS + 1) == 0 || step == 2 || step == 8 { 9.0 } else { 1.0 };
                tuner.record(overlapped, slow * if overlapped { with } else { 1.0 });
            }
            assert!(!ways[..=TRIALS].contains(&true) && !ways[TRIALS + 1..=2 * TRIALS + 1].contains(&false));
            assert!(ways[2 * TRIALS + 2..].iter().all(|&way| way == wanted), "{ways:?}");
        }
        assert!(OverlapTuner::new(Overlap::On).overlaps() && !OverlapTuner::new(Overlap::Off).overlaps());
    }
}
