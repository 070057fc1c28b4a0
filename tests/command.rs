//! The program as the tests start it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The program, without arguments.
pub(crate) fn regard() -> Command {
    Command::new(env!("CARGO_BIN_EXE_regard"))
}

/// What comes of a command that is given some input.
pub(crate) fn output(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    answer(command, input)
}

/// The same of one that has its pipes, or files in their place.
pub(crate) fn answer(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A thread of its own: the command may answer before it has read everything, or not read at
    // all.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}
