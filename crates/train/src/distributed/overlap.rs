//! Gradients that leave for the other ranks while the backward pass still runs.
//!
//! A replica sends copies of the buckets that have become final to a thread that adds those of all
//! replicas and exchanges the sum with the other ranks. The order of the buckets follows from the
//! model alone, and the order of every sum is that of a step without overlap: the training is the
//! same bit for bit, and only its speed decides between the two.

use super::exchange::Bucket;
use regard_core::model::Transformer;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Whether gradients are sent while the backward pass still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// The first steps try both, the others use the faster one.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Steps with and without overlap that are compared, after one that is not.
const TRIALS: usize = 4;

/// Decides whether the next step overlaps. All ranks get the same timings and decide alike.
#[derive(Debug)]
pub(super) struct OverlapTuner {
    overlap: Overlap,
    /// Seconds of a target token in the steps tried without overlap, and with it.
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

    /// What a target token took in a step.
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

/// A bucket, and the mark of the backward pass behind which its gradients are final; those without
/// one are so at the end.
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

/// The buckets in the order in which they become final.
pub(super) fn gradient_buckets(
    model: &Transformer,
    buckets: impl Iterator<Item = Bucket>,
) -> Arc<[GradientBucket]> {
    let with_mark = |bucket: Bucket| GradientBucket { mark: model.final_after(bucket.range.clone()), bucket };
    let mut buckets: Vec<GradientBucket> = buckets.map(with_mark).collect();
    buckets.sort_by_key(|bucket| Reverse(bucket.mark));
    buckets.into()
}

/// What a replica still has to send.
#[derive(Debug)]
pub(crate) struct BucketQueue {
    buckets: Arc<[GradientBucket]>,
    next: usize,
    to: Sender<Vec<f32>>,
}

/// Where a replica's buckets go, and where they come out.
pub(super) fn bucket_queue(buckets: &Arc<[GradientBucket]>) -> (BucketQueue, Receiver<Vec<f32>>) {
    let (to, from) = channel();
    (BucketQueue { buckets: Arc::clone(buckets), next: 0, to }, from)
}

impl BucketQueue {
    /// Sends what is final once the backward pass is behind that mark, or over.
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
                // A first step of either way that takes long decides nothing, nor does a single one
                // on the way.
                let slow = if step % (TRIALS + 1) == 0 || step == 2 || step == 8 { 9.0 } else { 1.0 };
                tuner.record(overlapped, slow * if overlapped { with } else { 1.0 });
            }
            assert!(!ways[..=TRIALS].contains(&true) && !ways[TRIALS + 1..=2 * TRIALS + 1].contains(&false));
            assert!(ways[2 * TRIALS + 2..].iter().all(|&way| way == wanted), "{ways:?}");
        }
        assert!(OverlapTuner::new(Overlap::On).overlaps() && !OverlapTuner::new(Overlap::Off).overlaps());
    }
}
