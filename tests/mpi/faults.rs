//! Ranks that differ, and ranks that die.

use super::*;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A job whose rank 1 has other arguments, or is another program.
fn apart(first: &[String], program: &str, second: &[String]) -> String {
    let mut command = mpirun();
    command.args(["-n", "1", REGARD]).args(first).args([":", "-n", "1", program]).args(second);
    fail(command)
}

#[test]
fn ranks_that_differ_are_refused_with_the_difference() {
    let _alone = alone();
    let folder = corpus();
    let out = path(&folder, "out");
    let usual = train(folder.path(), &out, &["--steps", "5"]);

    let other = train(folder.path(), &out, &["--steps", "5", "--set", "label_smoothing=0.2"]);
    let refusal = apart(&usual, REGARD, &other);
    let expected = "optimizer.label_smoothing is 0.2, but 0.1 on rank 0; all ranks must have the same";
    assert!(refusal.contains("regard: rank 1 on ") && refusal.contains(expected), "{refusal}");
    assert_eq!(refusal.matches("label_smoothing").count(), 1, "said once: {refusal}");

    let copy = path(&folder, "regard");
    fs::copy(REGARD, &copy).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(&copy)
        .and_then(|mut f| std::io::Write::write_all(&mut f, b"x"))
        .unwrap();
    let refusal = apart(&usual, &copy.display().to_string(), &usual);
    assert!(refusal.contains("rank 1 on ") && refusal.contains("the program is regard "), "{refusal}");

    let moved = path(&folder, "moved");
    fs::create_dir(&moved).unwrap();
    for name in ["train.en", "train.fr", "valid.en", "valid.fr"] {
        fs::copy(folder.path().join(name), moved.join(name)).unwrap();
    }
    // The same text at another place is the same corpus; another line is not.
    let other = train(&moved, &out, &["--steps", "5"]);
    let mut command = mpirun();
    command.args(["-n", "1", REGARD]).args(&usual).args([":", "-n", "1", REGARD]).args(&other);
    succeed(command);
    let text = fs::read_to_string(moved.join("train.en")).unwrap();
    fs::write(moved.join("train.en"), text.replacen('\n', " again\n", 1)).unwrap();
    let again = path(&folder, "again");
    let (usual, other) =
        (train(folder.path(), &again, &["--steps", "5"]), train(&moved, &again, &["--steps", "5"]));
    let refusal = apart(&usual, REGARD, &other);
    assert!(refusal.contains("rank 1 on ") && refusal.contains("the corpus is "), "{refusal}");

    // A file that one rank lacks.
    fs::remove_file(moved.join("train.en")).unwrap();
    let refusal = apart(&usual, REGARD, &other);
    assert!(refusal.contains("rank 1 on ") && refusal.contains("train.en: "), "{refusal}");
    // None of that has claimed the folder.
    succeed(ranks(2, &usual));
}

/// The process that is a rank of the job that `mpirun` runs.
fn process_of_rank(mpirun: &Child, rank: usize) -> Option<u32> {
    let wanted = format!("OMPI_COMM_WORLD_RANK={rank}");
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find(|&pid| {
        parent(pid) == Some(mpirun.id())
            && fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|e| e.split(|b| *b == 0).any(|variable| variable == wanted.as_bytes()))
    })
}

/// Starts a job and kills one of its ranks as soon as `ready`; what it said, once it has ended.
fn kill(arguments: &[String], rank: usize, ready: impl Fn() -> bool) -> String {
    let mut command = ranks(2, arguments);
    let mut job = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while !ready() {
        assert!(job.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(120), "not ready");
        std::thread::sleep(Duration::from_millis(1));
    }
    let process = process_of_rank(&job, rank).expect("the rank's process");
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
    let killed = Instant::now();
    let out = job.wait_with_output().unwrap();
    assert!(!out.status.success());
    assert!(
        killed.elapsed() < Duration::from_secs(30),
        "the job outlived its rank by {:?}",
        killed.elapsed()
    );
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn steps_logged(out: &Path) -> usize {
    fs::read_to_string(out.join("logs/log.jsonl")).map_or(0, |log| log.lines().count())
}

fn resume(out: &Path) -> Vec<String> {
    ["train", "--resume", "--threads", "1", "--out", &out.display().to_string()].map(str::to_owned).to_vec()
}

#[test]
fn a_rank_that_dies_in_a_step_ends_the_job_and_the_run_goes_on() {
    let _alone = alone();
    let folder = corpus();
    let out = path(&folder, "out");
    let more = ["--steps", "1000", "--set", "checkpoints.every=5"];
    let said = kill(&train(folder.path(), &out, &more), 1, || steps_logged(&out) > 20);
    assert!(said.contains("rank 1"), "{said}");
    let arguments = [&resume(&out)[..], &["--steps".into(), "60".into()]].concat();
    let heard = output(ranks(2, &arguments));
    let heard = String::from_utf8_lossy(&heard.stderr);
    if steps_logged(&out) < 60 {
        // It came further than that before it died.
        assert!(heard.contains("continuing after step "), "{heard}");
    }
    let whole = path(&folder, "whole");
    succeed(ranks(2, &train(folder.path(), &whole, &["--steps", "60", "--set", "checkpoints.every=5"])));
    let (resumed, whole) = (losses(&out), losses(&whole));
    assert!(resumed.len() >= 60 && resumed[..60] == whole[..60], "{resumed:?}");
}

#[test]
fn rank_0_that_dies_while_it_saves_leaves_a_whole_checkpoint() {
    let _alone = alone();
    let folder = corpus();
    let out = path(&folder, "out");
    // A model that takes a while to write, after every step.
    let more = ["--steps", "1000", "--set", "checkpoints.every=1", "--set", "d_ff=60000"];
    let checkpoints = out.join("checkpoints");
    let states = |suffix: &str| {
        let entries = fs::read_dir(&checkpoints).into_iter().flatten().flatten();
        entries.filter(|e| e.file_name().to_string_lossy().ends_with(suffix)).count()
    };
    let said = kill(&train(folder.path(), &out, &more), 0, || states(".ckpt") >= 2 && states(".part") >= 1);
    assert!(said.contains("rank 0"), "{said}");
    let steps = losses(&out).len() as u64 + 2;
    let arguments = [&resume(&out)[..], &["--steps".into(), steps.to_string()]].concat();
    let heard = output(ranks(2, &arguments));
    let said = String::from_utf8_lossy(&heard.stderr);
    assert!(heard.status.success() && said.contains("continuing after step "), "{said}");
    assert_eq!(losses(&out).last().unwrap().0, steps);
}
