//! Training: from batches to a model, and what a user sees of it on the way.

pub mod tensorboard;
