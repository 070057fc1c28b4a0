//! Estimates the quality of a translation from the log-probabilities of its tokens.

/// The chrF score, from 0 to 1, expected of a translation whose tokens have these
/// log-probabilities; `None` if there are no tokens.
///
/// This is a logistic function of the mean log-probability per token, with each token clamped below
/// at −8. `tools/confidence.py` fitted its two coefficients on FLORES, as `docs/translating.md`
/// describes. With another model or domain the same confidence may mean a better or worse
/// translation, but the ranking of sentences stays similar.
///
/// ```
/// use regard_documents::confidence;
/// assert!(confidence(&[-0.1, -0.2]).unwrap() > confidence(&[-1.0, -3.0]).unwrap());
/// assert_eq!(confidence(&[]), None);
/// ```
pub fn confidence(token_scores: &[f32]) -> Option<f32> {
    if token_scores.is_empty() {
        return None;
    }
    let bounded = |score: f32| if score.is_nan() { -8.0 } else { score.clamp(-8.0, 0.0) };
    let mean = token_scores.iter().map(|&score| bounded(score)).sum::<f32>() / token_scores.len() as f32;
    Some(1.0 / (1.0 + (-(INTERCEPT + OF_MEAN * mean)).exp()))
}

const INTERCEPT: f32 = 1.263;
const OF_MEAN: f32 = 5.966;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_share_and_grows_with_the_probabilities() {
        let of = |mean: f32| confidence(&[mean; 4]).unwrap();
        assert!(of(0.0) <= 1.0 && of(-100.0) >= 0.0 && of(f32::NAN) >= 0.0);
        assert!((1..30).all(|i| of(-0.1 * i as f32) < of(-0.1 * (i - 1) as f32)));
        // The mean log-probability of the Firefox model on FLORES, where its chrF is 0.70.
        assert!((of(-0.07) - 0.70).abs() < 0.01);
    }
}
