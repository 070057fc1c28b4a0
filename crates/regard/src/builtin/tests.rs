use super::*;

#[test]
#[ignore]
fn dump() {
    let c = default();
    for (e, f) in &c.train {
        println!("T\t{e}\t{f}");
    }
    for (e, f) in &c.held_out {
        println!("H\t{e}\t{f}");
    }
}
