//! Checkpoint averaging: loads checkpoints of a run as models.

use std::path::{Path, PathBuf};

use super::checkpoint;
use super::state::{STATE, WEIGHTS};
use regard_core::formats::Model;
use regard_core::{Error, Result};

/// The prefix and the step of a checkpoint's name: `weights` and 12 for `weights-00000012.ckpt`.
fn name_and_step(path: &Path) -> Option<(&'static str, u64)> {
    let (prefix, step) = path.file_name()?.to_str()?.strip_suffix(".ckpt")?.split_once('-')?;
    let prefix = [STATE, WEIGHTS].into_iter().find(|known| *known == prefix)?;
    Some((prefix, step.parse().ok()?))
}

/// Selects the paths to average. Of the checkpoints in one folder these are the saved weights; the
/// saved training states, whose weights are mostly the same, are used only if there are no saved
/// weights, and the untrained state of step 0 only if it is the only one. Other paths are kept.
pub fn to_average(paths: &[PathBuf]) -> Vec<PathBuf> {
    let rank = |path: &Path| match name_and_step(path)? {
        (WEIGHTS, _) => Some(2),
        (_, 1..) => Some(1),
        (_, 0) => Some(0),
    };
    let best = |folder: Option<&Path>| paths.iter().filter(|p| p.parent() == folder).map(|p| rank(p)).max();
    let wanted = |path: &&PathBuf| match rank(path) {
        None => true,
        rank => best(path.parent()) == Some(rank),
    };
    paths.iter().filter(wanted).cloned().collect()
}

/// The model of a checkpoint in the folder `checkpoints` of a run: its weights, with everything
/// else from the model folder above.
pub fn load_checkpoint(path: &Path) -> Result<Model> {
    if name_and_step(path).is_none() {
        let message =
            "neither a model folder nor a checkpoint; a checkpoint is weights-STEP.ckpt or state-STEP.ckpt";
        return Err(Error::file(path, message));
    }
    let folder = match path.parent().and_then(Path::parent) {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => Path::new(".."),
    };
    let model = Model::load(folder)?;
    let (_, mut vectors) = checkpoint::read::<serde_json::Value>(path, model.weights.len())?;
    // Either weights alone, or weights, two moments and optionally the moving average, which is
    // what validation uses.
    let weights = match vectors.len() {
        1 | 3 => vectors.swap_remove(0),
        4 => vectors.swap_remove(3),
        count => {
            let message = format!("{count} vectors; a checkpoint has 1, 3 or 4");
            return Err(Error::file(path, message));
        }
    };
    Ok(Model { weights, ..model })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_weights_are_averaged_before_states() {
        let of = |names: &[&str]| {
            let paths: Vec<PathBuf> = names.iter().map(|name| Path::new("checkpoints").join(name)).collect();
            let name = |p: &PathBuf| p.file_name().unwrap().to_str().unwrap().to_owned();
            to_average(&paths).iter().map(name).collect::<Vec<_>>()
        };
        let all =
            ["state-00000000.ckpt", "state-00000020.ckpt", "weights-00000010.ckpt", "weights-00000020.ckpt"];
        assert_eq!(of(&all), all[2..]);
        assert_eq!(of(&all[..2]), all[1..2]);
        assert_eq!(of(&all[..1]), all[..1]);
        assert_eq!(
            of(&["model", "state-1.ckpt", "weights-x.ckpt"]),
            ["model", "state-1.ckpt", "weights-x.ckpt"]
        );
        let apart = ["a/state-1.ckpt", "b/weights-1.ckpt"].map(PathBuf::from);
        assert_eq!(to_average(&apart), apart);
    }
}
