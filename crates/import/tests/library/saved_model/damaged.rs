//! Directories that are damaged, and graphs that make no sense: each is refused with its place.

use super::*;

#[test]
fn damaged_checkpoints_are_refused_with_what_is_wrong() {
    let variable = "node 'called/c/value' (ReadVariableOp): variable 'v': tensor 'variables/0/value' of the checkpoint: ";
    let flipped = refusal(|files| files.get_mut(SHARD).unwrap()[6] ^= 1);
    assert_eq!(
        flipped,
        format!("{variable}has a wrong checksum: the file is damaged")
    );
    let flipped = refusal(|files| files.get_mut("variables/variables.index").unwrap()[7] ^= 1);
    assert!(
        flipped.contains("has a block at byte 0 whose checksum is wrong"),
        "{flipped}"
    );
    let missing = refusal(|files| drop(files.remove(SHARD)));
    assert!(
        missing.contains("'variables/variables.data-00000-of-00001', which is not given"),
        "{missing}"
    );
    let short = refusal(|files| files.get_mut(SHARD).unwrap().truncate(8));
    assert_eq!(
        short,
        format!(
            "{variable}takes 8 bytes from byte 4 of '{SHARD}', which has 8: 1 of its 1 tensors end beyond the file, which may have been cut short; copy it again"
        )
    );
    let set =
        |index: Vec<u8>| refusal(|files| drop(files.insert("variables/variables.index", index)));
    let big = set(index(|entry, header| (entry, header.int(2, 1))));
    assert!(big.contains("is of a big-endian machine"), "{big}");
    let elsewhere = set(index(|entry, header| (entry.int(3, 7), header)));
    assert!(elsewhere.contains("lies in shard 7 of 1"), "{elsewhere}");
    let wide = set(index(|entry, header| {
        (entry.message(2, shape(&[9])), header)
    }));
    assert!(
        wide.contains("expected 72 for 18 of type float") || wide.contains("has 8 bytes, expected"),
        "{wide}"
    );
    let parts = set(index(|entry, header| {
        (entry.message(7, Wire::new()), header)
    }));
    assert!(
        parts.contains("lacks a part that its entry lists"),
        "{parts}"
    );
    let none = set(Vec::new());
    assert!(
        none.contains("'variables/variables.index' has 0 bytes, expected 48 or more"),
        "{none}"
    );
}

#[test]
fn one_error_tells_of_all_tensors_beyond_the_end_of_a_shard() {
    let told = refusal(|files| {
        let reads_twice = vec![
            node("first", "ReadVariableOp", &["r"], &[("dtype", ty(FLOAT))]),
            node("second", "ReadVariableOp", &["r"], &[("dtype", ty(FLOAT))]),
            node(
                "out",
                "AddV2",
                &["first:value:0", "second:value:0"],
                &[("T", ty(FLOAT))],
            ),
        ];
        files.insert("saved_model.pb", model_file(reads_twice));
        let entries = [
            (&b""[..], Wire::new().int(1, 1).0),
            (b"another", part(&[1], 0)),
            (KEY.as_bytes(), part(&[2], 4)),
        ];
        files.insert("variables/variables.index", table(&entries));
        files.get_mut(SHARD).unwrap().truncate(8);
    });
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(
        told.contains("1 of its 2 tensors end beyond the file"),
        "{told}"
    );
}

#[test]
fn bytes_of_a_model_without_its_directory_are_imported_or_told_what_to_give() {
    let reads_twice = vec![
        node("first", "ReadVariableOp", &["r"], &[("dtype", ty(FLOAT))]),
        node("second", "ReadVariableOp", &["r"], &[("dtype", ty(FLOAT))]),
        node("out", "Neg", &["first:value:0", "^second"], &[]),
    ];
    for body in [sum(), reads_twice] {
        let told = import_bytes(model_file(body)).unwrap_err().to_string();
        assert_eq!(told.matches("error:").count(), 1, "{told}");
        assert!(told.contains("give the path of the directory"), "{told}");
    }
    let without_variables = model_file(vec![node("out", "Neg", &["a"], &[])]);
    let text = import_bytes(without_variables).unwrap();
    assert!(text.contains("tf.Neg"), "{text}");
}

#[test]
fn each_prefix_of_an_index_is_refused() {
    let whole = index(|entry, header| (entry, header));
    for len in 0..whole.len() {
        let cut = whole[..len].to_vec();
        refusal(|files| drop(files.insert("variables/variables.index", cut)));
    }
}

#[test]
fn graphs_that_make_no_sense_are_refused_with_their_place() {
    let of =
        |body: Vec<Wire>| refusal(|files| drop(files.insert("saved_model.pb", model_file(body))));
    let twice = of(vec![
        node("out", "Neg", &["a"], &[]),
        node("out", "Neg", &["a"], &[]),
    ]);
    assert!(
        twice.contains(
            "node 'called/c' (StatefulPartitionedCall): has two nodes with the name 'out'"
        ),
        "{twice}"
    );
    let nothing = of(vec![node("out", "Neg", &["b:y:0"], &[])]);
    assert_eq!(
        nothing,
        "node 'called/c/out' (Neg): takes 'b:y:0', which nothing here makes"
    );
    let cycle = of(vec![
        node("out", "Neg", &["m:y:0"], &[]),
        node("m", "Abs", &["out:y:0"], &[]),
    ]);
    assert!(cycle.contains("is in a cycle of nodes"), "{cycle}");
    let calls = of(vec![node(
        "out",
        "PartitionedCall",
        &["a", "r"],
        &[("f", call("outer"))],
    )]);
    assert!(
        calls.contains("calls the function 'outer', which calls itself"),
        "{calls}"
    );
    let writes = of(vec![
        node("write", "ResourceApplyAddSign", &["r", "a"], &[]),
        node("out", "Identity", &["a", "^write"], &[]),
    ]);
    assert!(
        writes.contains(
            "changes the variable 'v' in a way that nothing here runs: 'ResourceApplyAddSign'"
        ),
        "{writes}"
    );
    let unnamed = of(vec![node(
        "out",
        "PartitionedCall",
        &["a"],
        &[("f", call("gone"))],
    )]);
    assert!(
        unnamed.contains("calls the function 'gone', which the model does not have"),
        "{unnamed}"
    );
}

#[test]
fn calls_that_double_at_each_depth_are_refused_with_one_error() {
    const DEPTH: usize = 40;
    let call_next = |name: &str, depth: usize, input: &str| {
        let callee = format!("f{}", depth + 1);
        node(name, "PartitionedCall", &[input], &[("f", call(&callee))])
    };
    // One after the other, which makes no operation; and side by side.
    let in_a_row = |depth| {
        vec![
            call_next("first", depth, "a"),
            call_next("out", depth, "first:output:0"),
        ]
    };
    let side_by_side = |depth| {
        vec![
            call_next("first", depth, "a"),
            call_next("second", depth, "a"),
            node("out", "AddV2", &["first:output:0", "second:output:0"], &[]),
        ]
    };
    let bodies: [&dyn Fn(usize) -> Vec<Wire>; 2] = [&in_a_row, &side_by_side];
    for body in bodies {
        let outputs = [("b", "out:output:0")];
        let mut functions: Vec<Wire> = (0..DEPTH)
            .map(|depth| function(&format!("f{depth}"), &["a"], &outputs, body(depth)))
            .collect();
        let mut last = vec![node("out", "Identity", &["a"], &[])];
        last.extend((0..5000).map(|n| node(&format!("unneeded{n}"), "NoOp", &[], &[])));
        functions.push(function(&format!("f{DEPTH}"), &["a"], &outputs, last));
        let nodes = vec![
            node("given", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
            node(
                "called",
                "PartitionedCall",
                &["given"],
                &[("f", call("f0"))],
            ),
        ];
        let model = saved_model(nodes, functions, "serving_default");
        let told = import(Files::from([("saved_model.pb", model)])).unwrap_err();
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(
            told.contains("calls expand more than 1048576 nodes of functions"),
            "{told}"
        );
    }
}

#[test]
fn attributes_without_a_name_are_refused() {
    for (name, shown) in [("", "''"), ("a\0b", "'a\\0b'")] {
        let nodes = [
            node("x", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
            node("y", "Neg", &["x"], &[(name, ty(FLOAT))]),
        ];
        let told = frozen(Wire::new().messages(1, nodes)).unwrap_err();
        assert_eq!(
            told,
            format!("node 'y' (Neg): expected the name of an attribute, found {shown}")
        );
    }
}

#[test]
fn variables_without_values_are_refused() {
    let text = refusal(|files| {
        let nodes = vec![
            node("given", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
            node("w", "VarHandleOp", &[], &[]),
            node("called", "ReadVariableOp", &["w"], &[]),
        ];
        files.insert(
            "saved_model.pb",
            saved_model(nodes, Vec::new(), "serving_default"),
        );
    });
    assert_eq!(
        text,
        "node 'called' (ReadVariableOp): reads the variable 'w', for which the model has no value: nothing restores it"
    );
}

#[test]
fn places_outside_of_the_shards_are_refused() {
    let of = |change: fn(Wire, Wire) -> (Wire, Wire)| {
        refusal(|files| drop(files.insert("variables/variables.index", index(change))))
    };
    for (told, expected) in [
        (
            of(|entry, header| (entry.int(4, -8), header)),
            "lies at byte -8, 8 bytes long",
        ),
        (
            of(|entry, header| (entry.int(5, -8), header)),
            "lies at byte 4, -8 bytes long",
        ),
        (
            of(|entry, header| (entry.int(4, i64::MAX), header)),
            "takes 8 bytes from byte 9223372036854775807 of 'variables/variables.data-00000-of-00001', which has 12",
        ),
        (
            of(|entry, header| (entry.int(5, i64::MAX), header)),
            "has 9223372036854775807 bytes, expected 8 for 2 of type float",
        ),
        (
            of(|entry, header| (entry.int(1, 2), header)),
            "has 8 bytes, expected 16 for 2 of type double",
        ),
        (
            of(|entry, header| (entry.int(3, -1), header)),
            "lies in shard -1 of 1",
        ),
        (
            of(|entry, header| (entry, header.int(1, 0))),
            "lies in shard 0 of 0",
        ),
        (
            of(|entry, header| (entry, header.int(1, -1))),
            "lies in shard 0 of -1",
        ),
        (
            of(|entry, header| (entry.int(3, 1), header.int(1, 2))),
            "'variables/variables.data-00001-of-00002', which is not given",
        ),
        (
            of(|entry, header| (entry.message(2, shape(&[-2])), header)),
            "-2",
        ),
        (
            of(|entry, header| (entry.message(2, shape(&[i64::MAX, 4])), header)),
            "9223372036854775807",
        ),
    ] {
        let place = "variable 'v': tensor 'variables/0/value' of the checkpoint: ";
        assert!(
            told.contains(place) && told.contains(expected),
            "{expected} in {told}"
        );
    }
}

#[test]
fn tensors_that_share_bytes_are_refused() {
    let sharing = |second: usize| {
        refusal(|files| {
            let entries = [
                (&b""[..], Wire::new().int(1, 1).0),
                (b"another", part(&[1], second)),
                (KEY.as_bytes(), part(&[2], 4)),
            ];
            files.insert("variables/variables.index", table(&entries));
        })
    };
    for (second, expected) in [
        (
            8,
            "puts tensor 'another' at byte 8 of shard 0, where tensor 'variables/0/value' has bytes 4 to 12",
        ),
        (
            4,
            "puts tensor 'variables/0/value' at byte 4 of shard 0, where tensor 'another' has bytes 4 to 8",
        ),
    ] {
        let told = sharing(second);
        assert!(
            told.contains(&format!("'variables/variables.index' {expected}")),
            "{told}"
        );
    }
}

#[test]
fn graphs_are_chosen_by_all_of_their_tags() {
    let graph = |tags: &[&str], op: &str| {
        let nodes = [
            node("given", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
            node("called", op, &["given"], &[]),
        ];
        Wire::new()
            .message(1, Wire::new().texts(4, tags))
            .message(2, Wire::new().messages(1, nodes))
            .message(5, entry("serving_default", signature("called:0")))
    };
    let model = |graphs: Vec<Wire>| {
        Files::from([(
            "saved_model.pb",
            Wire::new().int(1, 1).messages(2, graphs).0,
        )])
    };
    let several = || {
        model(vec![
            graph(&["train"], "Abs"),
            graph(&["serve", "gpu"], "Neg"),
            graph(&["serve"], "Exp"),
        ])
    };
    let tagged = |tags| Part {
        signature: None,
        tags,
    };
    for (tags, op) in [
        (None, "Exp"),
        (Some("serve"), "Exp"),
        (Some("gpu,serve"), "Neg"),
        (Some(" serve , gpu,"), "Neg"),
        (Some("train"), "Abs"),
    ] {
        let text = import_part(several(), tagged(tags)).unwrap();
        assert!(text.contains(&format!("tf.{op}")), "{tags:?}: {text}");
    }
    for (tags, listed) in [("gpu", "'gpu'"), ("serve,tpu", "'serve,tpu'"), ("", "''")] {
        assert_eq!(
            import_part(several(), tagged(Some(tags))).unwrap_err(),
            format!("expected a graph with the tags {listed}, found 'train', 'gpu,serve', 'serve'")
        );
    }
    let trained = || model(vec![graph(&["train"], "Abs"), graph(&["eval"], "Neg")]);
    assert_eq!(
        import_part(trained(), tagged(None)).unwrap_err(),
        "expected a graph with the tags 'serve', found 'train', 'eval'"
    );
    // The only graph needs no tag.
    import_part(model(vec![graph(&[], "Abs")]), tagged(None)).unwrap();
}
