//! Translating on ranks: the same lines in the same order.

use super::*;
use std::io::Write;
use std::process::Stdio;

#[test]
fn lines_come_out_as_one_process_prints_them() {
    let _alone = alone();
    let folder = corpus();
    let out = path(&folder, "model");
    succeed(regard(&train(folder.path(), &out, &["--steps", "30"])));
    let pairs = builtin::corpus(5, 40).train;
    let mut text: String = pairs.iter().map(|(source, _)| format!("{source}\n")).collect();
    text += "\n\nThe last line has no end";
    let input = path(&folder, "input.en");
    fs::write(&input, &text).unwrap();
    let (model, input) = (out.display().to_string(), input.display().to_string());
    for more in [&[][..], &["--nbest", "2", "--scores"], &["--json", "--alignment"]] {
        let arguments = [&["translate", "--model", &model, "--threads", "1"], more, &[&input]].concat();
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let expected = succeed(regard(&arguments));
        for count in [2, 3] {
            assert_eq!(succeed(ranks(count, &arguments)), expected, "{more:?} on {count} ranks");
        }
    }

    // Standard input goes to rank 0.
    let arguments = ["translate", "--model", &model, "--threads", "1"].map(str::to_owned);
    let mut child = ranks(2, &arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let read = child.wait_with_output().unwrap();
    assert!(read.status.success());
    let lines = String::from_utf8(read.stdout).unwrap();
    assert_eq!(lines.lines().count(), 43);

    // Another model on another rank.
    let other = path(&folder, "other");
    succeed(regard(&train(folder.path(), &other, &["--steps", "31"])));
    let other = other.display().to_string();
    let mut command = mpirun();
    command.args(["-n", "1", REGARD, "translate", "--model", &model, &input, ":"]);
    command.args(["-n", "1", REGARD, "translate", "--model", &other, &input]);
    let refusal = fail(command);
    assert!(
        refusal.contains("rank 1 on ") && refusal.contains("the model's model.safetensors is "),
        "{refusal}"
    );
}
