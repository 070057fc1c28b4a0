//! The settings of a training run: their definition, how they are read from files and the command
//! line, and the number format they choose.

mod check;
mod precision;
mod settings;
mod train_config;

pub(crate) use precision::TRAINABLE;
pub use precision::{BF16_VARIABLE, Choice, choose_dtype};
pub use train_config::{
    BatchConfig, CheckpointConfig, DataConfig, Every, OptimizerConfig, TermsConfig, TokenizerConfig,
    TrainConfig, ValidationConfig, ValidationMetric,
};
