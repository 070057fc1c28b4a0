//! Tests that programs are not run, and of damaged pickles.

use super::*;

fn refusal(bytes: &[u8]) -> String {
    Pickle::read(bytes).unwrap_err()
}

#[test]
fn nothing_is_run_and_everything_unknown_is_named() {
    let system = b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.";
    assert_eq!(
        refusal(system),
        "the pickle at its byte 2: it refers to \"os.system\", which no table of tensors needs; nothing of it was run"
    );
    // The same with names on the stack, and with functions inside torch.
    for (pickle, name) in [
        (&b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93."[..], "builtins.eval"),
        (b"\x80\x02ctorch\nload\n.", "torch.load"),
        (b"\x80\x02ctorch.storage\n_load_from_bytes\n.", "torch.storage._load_from_bytes"),
        (b"\x80\x02ccollections\ndefaultdict\n.", "collections.defaultdict"),
        (b"\x80\x02ctorch._utils\n_rebuild_qtensor\n.", "torch._utils._rebuild_qtensor"),
    ] {
        assert!(refusal(pickle).contains(&format!("it refers to {name:?}")), "{}", refusal(pickle));
    }
    // Long and unusual names do not fill the screen.
    let long = [b"c", "x\u{1b}[2J".repeat(500).as_bytes(), b"\ny\n."].concat();
    assert!(refusal(&long).len() < 900 && !refusal(&long).contains('\u{1b}'));
    // Instructions that create objects in other ways.
    for code in [b'i', b'o', 0x81, 0x92, 0x82, b'P', b'2', b'F', b'I', b'L', b'S', b'V', 0x8f, 0x96, 0xff, 0]
    {
        let error = refusal(&[0x80, 2, b'(', code, 1, 1, 1, 1, b'.']);
        assert!(error.contains(&format!("instruction {code:#04x} is not one")), "{error}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (pickle, problem) in [
        (&b""[..], "it is cut off"),
        (b"\x80", "it is cut off"),
        (b"\x80\x06.", "protocol 6 is not known"),
        (b".", "it takes a value that is not there"),
        (b"N(.", "it takes a value that is not there"),
        (b"t.", "it goes back to a mark that is not there"),
        (b"h\x07.", "it recalls a value that was never kept"),
        (b"q\x07.", "it keeps a value that is not there"),
        (b"NNa.", "values are added to what is neither table nor list"),
        (b"}(Nu.", "a key has no value"),
        (b"NR.", "a tuple of at most 16 values is expected"),
        (b"N)R.", "it calls something that is not supported"),
        (b"ccollections\nOrderedDict\nN\x85R.", "it calls something that is not supported"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n)R.", "a tensor that makes no sense"),
        (b"ctorch._utils\n_rebuild_parameter\n)R.", "a parameter that is no tensor"),
        (b")Q.", "a reference to something else than a storage"),
        (b"X\xff\xff\xff\xffa.", "it is cut off"),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.", "it is cut off"),
        (b"X\x01\x00\x00\x00\xff.", "a text is not UTF-8"),
        (b"\x8b\xff\xff\xff\x7f\x01.", "a number of 2147483647 bytes"),
        (b"cos", "it is cut off"),
    ] {
        assert!(
            refusal(pickle).ends_with(problem) || refusal(pickle).contains(problem),
            "{}",
            refusal(pickle)
        );
    }
}

#[test]
fn a_pickle_without_end_has_one() {
    let endless = b"N".repeat(MAX_INSTRUCTIONS + 5);
    assert!(refusal(&endless).ends_with("this is not a table of tensors"));
    // A list that contains itself is harmless: nothing follows references.
    let circle = Pickle::read(b"]q\x00h\x00a.").unwrap();
    assert!(matches!(circle.root(), Value::Sequence(items) if items.len() == 1));
    // Ten tuples, each with ten times the previous one: values are shared, not copied.
    let mut nested = b"N".to_vec();
    for level in 0..10 {
        nested.extend([b'q', level, b'(']);
        nested.extend([b'h', level].repeat(10));
        nested.push(b't');
    }
    nested.push(b'.');
    assert!(Pickle::read(&nested).unwrap().values.len() < 20);
}

#[test]
fn numbers_have_their_signs_and_widths() {
    for (pickle, want) in [
        (&b"K\xff."[..], 255),
        (b"M\x01\x02.", 513),
        (b"J\xff\xff\xff\xff.", -1),
        (b"\x8a\x00.", 0),
        (b"\x8a\x01\x80.", -128),
        (b"\x8a\x02\x80\x00.", 128),
        (b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", 0x1950_a86a_20f9_469c_fc6c),
    ] {
        let pickle = Pickle::read(pickle).unwrap();
        assert!(matches!(pickle.root(), Value::Int(n) if *n == want), "{:?} is not {want}", pickle.root());
    }
}
