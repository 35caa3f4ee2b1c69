//! Broken bodies: frames, records, the graph, regions.

use super::*;

#[test]
fn parts_of_a_body_are_named_if_the_function_is_sync() {
    let check = |body: &[u8], asynchronous: Expect, sync: Expect| {
        for (kind, expect) in [
            (FunctionKind::Async, asynchronous),
            (FunctionKind::Sync, sync),
        ] {
            let mut sections = writer().sections();
            let index = [1, kind as u8, 0, 0, 0, 1, 0];
            for (id, payload) in &mut sections {
                match SectionId::from_byte(*id) {
                    Some(SectionId::FunctionIndex) => {
                        *payload = Payload::from_bytes(index.to_vec(), 1)
                    }
                    Some(SectionId::Functions) => *payload = Payload::from_bytes(body.to_vec(), 4),
                    _ => {}
                }
            }
            expect.assert_eq(&open(assemble(&sections)));
        }
    };
    check(
        b"\x81",
        expect![
            "byte 0x64: invalid Function section in BEF file: integer runs past the end [TF0604]"
        ],
        expect![
            "byte 0x64: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Failed to read location_offset or num_registers): integer runs past the end [TF0604]"
        ],
    );
    check(
        b"\0",
        expect![
            "byte 0x65: invalid Function section in BEF file: integer runs past the end [TF0604]"
        ],
        expect![
            "byte 0x65: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Failed to read location_offset or num_registers): integer runs past the end [TF0604]"
        ],
    );
    check(
        b"\0\x01",
        expect![
            "byte 0x65: invalid Function section in BEF file: count of 1, but the bytes that are left hold at most 0 [TF0604]"
        ],
        expect![
            "byte 0x65: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Failed to read location_offset or num_registers): count of 1, but the bytes that are left hold at most 0 [TF0604]"
        ],
    );
    check(
        b"\0\x01\x81",
        expect![
            "byte 0x66: invalid Function section in BEF file: integer runs past the end [TF0604]"
        ],
        expect![
            "byte 0x66: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Failed to read register user_count): integer runs past the end [TF0604]"
        ],
    );
    check(
        b"\0\x01\x01",
        expect![
            "byte 0x67: invalid Function section in BEF file: integer runs past the end [TF0604]"
        ],
        expect![
            "byte 0x67: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Failed to read num_kernels): integer runs past the end [TF0604]"
        ],
    );
    check(
        b"\0\x01\x01\0",
        expect![
            "byte 0x68: invalid Function section in BEF file: there is no pseudo kernel [TF0610]"
        ],
        expect![
            "byte 0x68: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Failed to read num_kernels): there is no pseudo kernel [TF0610]"
        ],
    );
    check(
        b"\0\x01\x01\x01\0\0",
        expect![
            "byte 0x67: invalid Function section in BEF file: count of 1, but the bytes that are left hold at most 0 [TF0604]"
        ],
        expect![
            "byte 0x67: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Failed to read num_kernels): count of 1, but the bytes that are left hold at most 0 [TF0604]"
        ],
    );
    check(
        b"\0\x01\x01\x01\x03\0\0\0",
        expect![
            "byte 0x68: invalid Function section in BEF file: kernel record at 3 is not aligned by 4 [TF0609]"
        ],
        expect![
            "byte 0x68: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Failed to read kernel offset or num_operands): kernel record at 3 is not aligned by 4 [TF0609]"
        ],
    );
    check(
        b"\0\x01\x01\x01\0\0\0",
        expect![
            "byte 0x6b: invalid Function section in BEF file: integer runs past the end [TF0604]"
        ],
        expect![
            "byte 0x6b: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Failed to read result_reg): integer runs past the end [TF0604]"
        ],
    );
    check(
        b"\0\x01\x01\x01\0\0\0\0\0",
        expect![
            "byte 0x6c: invalid Function section in BEF file: kernel 0 of region function 0 runs past the end [TF0609]"
        ],
        expect![
            "byte 0x6c: invalid Function section in BEF file: kernel 0 of region function 0 runs past the end [TF0609]"
        ],
    );
    check(
        b"\0\x01\x01\x01\0\0\0\0",
        expect![
            "byte 0x6c: invalid Function section in BEF file: kernel 0 of region function 0 runs past the end [TF0609]"
        ],
        expect![
            "byte 0x6c: invalid Function section in BEF file: kernel 0 of region function 0 runs past the end [TF0609]"
        ],
    );
}

#[test]
fn functions_section_must_be_aligned() {
    check_sections(
        |sections| {
            let mut bytes = sections[5].1.as_bytes().to_vec();
            sections.insert(0, (0x70, Payload::from_bytes(vec![0; 3], 1)));
            bytes.truncate(bytes.len());
            sections[6].1 = Payload::from_bytes(bytes, 1);
        },
        expect![
            "byte 0x7f: invalid Function section in BEF file: the section is not aligned by 4 [TF0609]"
        ],
    );
}

#[test]
fn bodies_and_records_must_not_overlap() {
    let mut sections = writer().sections();
    let index = sections[4].1.as_bytes().to_vec();
    // The body of the second function starts where that of the first does.
    let mut shared = index.clone();
    assert!(shared[8] > 0);
    shared[8] = 0;
    sections[4].1 = Payload::from_bytes(shared, 1);
    expect![
        "byte 0x7c: invalid Function section in BEF file: the body of 'main' starts inside another [TF0609]"
    ]
    .assert_eq(&open(assemble(&sections)));

    // It starts with the last word of the first.
    let len_bytes = index[8];
    let mut shared = index;
    shared[8] = len_bytes - 4;
    sections[4].1 = Payload::from_bytes(shared, 1);
    expect!["byte 0xcc: invalid Function section in BEF file: the body of 'main' starts inside another [TF0609]"]
    .assert_eq(&open(assemble(&sections)));

    // Two kernels of one record.
    let mut sections = writer().sections();
    let mut bytes = sections[5].1.as_bytes().to_vec();
    // Location, register count, one use count, two kernels; then the second's offset.
    assert_eq!(bytes[7], 36);
    bytes[7] = 0;
    sections[5].1 = Payload::from_bytes(bytes.clone(), 4);
    expect!["byte 0x88: invalid Function section in BEF file: kernel 1 of region function 0 starts inside the one before it [TF0609]"].assert_eq(&open(assemble(&sections)));
    bytes[7] = 0x7c;
    sections[5].1 = Payload::from_bytes(bytes, 4);
    expect!["byte 0x88: register 0 of region function 0 is never written [TF0613]"]
        .assert_eq(&open(assemble(&sections)));
}

#[test]
fn records_must_lie_inside() {
    check_body(
        QUICK,
        |body| body.kernels[2].operands.extend([1; 9]),
        expect!["byte 0x208: kernel 2 of 'quick' waits for 1 operands, but has 10 [TF0615]"],
    );
    check_body(
        QUICK,
        |body| {
            body.kernels[2].users = vec![];
        },
        expect![
            "byte 0x200: invalid Function section in BEF file: kernel 2 of 'quick' runs past the end [TF0609]"
        ],
    );
    check_body(
        REGION,
        |body| body.kernels[1].users[0] = vec![1; 3],
        expect![
            "byte 0xd0: register 0 of region function 0 does not list kernel 1 as a user as often as the kernel reads it [TF0616]"
        ],
    );
}

#[test]
fn record_that_the_section_cuts_off_is_refused() {
    let mut writer = writer();
    // The last list of the last record says who reads the first register: the kernel before.
    let kernels = vec![kernel(1, &[1], &[2]), kernel(1, &[0], &[1])];
    let body = FunctionBody::new(3, 1, kernels, vec![2]);
    writer.functions[QUICK].kind = FunctionKind::Async;
    writer.functions[QUICK].body = Some(body.into());
    let sections = writer.sections();
    let bytes = sections[5].1.as_bytes();
    // Six words of the header, and a count, an operand, a result and a user.
    for n_words in 0..=10 {
        let mut sections = sections.clone();
        let left = bytes[..bytes.len() - 4 * n_words].to_vec();
        sections[5].1 = Payload::from_bytes(left, 4);
        let found = open(assemble(&sections));
        let is_refused = found.contains("kernel 2 of 'quick' runs past the end");
        assert_eq!(is_refused, n_words > 0, "{n_words}: {found}");
    }
}

#[test]
fn pseudo_kernel_must_have_its_shape() {
    check_body(
        MAIN,
        |body| body.kernels[0].code = 7,
        expect![
            "byte 0xe8: invalid Function section in BEF file: the pseudo kernel of 'main' has code 0x7, not 0xabababab [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].wait_count = 1,
        expect![
            "byte 0xe8: invalid Function section in BEF file: the pseudo kernel of 'main' waits for 1 operands [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].operands.push(0),
        expect![
            "byte 0xe8: invalid Function section in BEF file: the pseudo kernel of 'main' has operands, attributes or functions [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].attributes.push(0),
        expect![
            "byte 0xe8: invalid Function section in BEF file: the pseudo kernel of 'main' has operands, attributes or functions [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].functions.push(0),
        expect![
            "byte 0xe8: invalid Function section in BEF file: the pseudo kernel of 'main' has operands, attributes or functions [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| {
            body.kernels[0].results.pop();
            body.kernels[0].users.pop();
        },
        expect![
            "byte 0xe8: invalid Function section in BEF file: the pseudo kernel of 'main' has 1 results for 1 arguments [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].results[0] = 3,
        expect![
            "byte 0x108: invalid Function section in BEF file: result 0 of the pseudo kernel of 'main' is register 3, not 4 [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].results[1] = 1,
        expect![
            "byte 0x10c: invalid Function section in BEF file: result 1 of the pseudo kernel of 'main' is register 1, not 0 [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels.clear(),
        expect![
            "byte 0xd7: invalid Function section in BEF file: there is no pseudo kernel [TF0610]"
        ],
    );
    check(
        |writer| writer.functions[MAIN].arguments = vec![],
        expect![
            "byte 0xe8: invalid Function section in BEF file: the pseudo kernel of 'main' has 2 results for 0 arguments [TF0610]"
        ],
    );
    check(
        |writer| {
            let main = &mut writer.functions[MAIN];
            main.arguments = vec![0; 5];
            let pseudo = &mut main.body.as_mut().unwrap().as_lists_mut().unwrap().kernels[0];
            pseudo.results = vec![4, 0, 1, 2, 3, 4];
            pseudo.users.resize(6, vec![]);
        },
        expect!["byte 0xec: 'main' takes 5 arguments, but has 4 registers [TF0610]"],
    );
}

#[test]
fn kernels_refer_to_what_exists() {
    check_body(
        MAIN,
        |body| body.kernels[2].code = 3,
        expect![
            "byte 0x144: kernel 2 of 'main' has code 3, but the file has 3 kernel names [TF0611]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[2].location = 2,
        expect!["byte 0x148: kernel 2 of 'main' has location 2, where no record starts [TF0611]"],
    );
    check_body(
        MAIN,
        |body| body.kernels[2].location = 0xffff_fffe,
        expect!["accepted"],
    );
    check_body(
        MAIN,
        |body| body.location = 1,
        expect![
            "byte 0xd0: invalid Function section in BEF file: no location record starts at 1 [TF0621]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[3].operands[0] = 7,
        expect!["byte 0x190: kernel 3 of 'main' reads register 7, but the function has 4 [TF0612]"],
    );
    check_body(
        MAIN,
        |body| body.kernels[3].results[0] = 7,
        expect![
            "byte 0x198: kernel 3 of 'main' writes register 7, but the function has 4 [TF0612]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[1].attributes[0] = 100,
        expect![
            "byte 0x134: kernel 1 of 'main' has an attribute at 100, but the Attributes section has 12 bytes [TF0611]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[1].attributes[0] = 1,
        expect![
            "byte 0x134: kernel 1 of 'main' has an attribute at 1, where the AttributeTypes section lists none [TF0611]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[3].functions[0] = 4,
        expect!["byte 0x194: kernel 3 of 'main' refers to function 4, but the file has 4 [TF0611]"],
    );
    check_body(
        MAIN,
        |body| body.results[0] = 4,
        expect!["byte 0xe8: result 0 of 'main' is register 4, but the function has 4 [TF0612]"],
    );
}

#[test]
fn wait_counts_are_the_numbers_of_operands() {
    check_body(
        MAIN,
        |body| body.kernels[2].wait_count = 2,
        expect!["byte 0x14c: kernel 2 of 'main' waits for 2 operands, but has 3 [TF0615]"],
    );
    check_body(
        MAIN,
        |body| body.kernels[2].wait_count = 4,
        expect!["byte 0x14c: kernel 2 of 'main' waits for 4 operands, but has 3 [TF0615]"],
    );
}

#[test]
fn registers_are_written_once() {
    check_body(
        MAIN,
        |body| body.kernels[3].results[0] = 2,
        expect!["byte 0x198: kernel 3 of 'main' writes register 2, which kernel 2 writes [TF0613]"],
    );
    check_body(
        MAIN,
        |body| body.kernels[3].results[0] = 0,
        expect![
            "byte 0x198: kernel 3 of 'main' writes register 0, which the caller writes [TF0613]"
        ],
    );
    check_body(
        MAIN,
        |body| {
            body.use_counts.push(0);
            body.register_types.push(0);
            body.kernels[0].results[0] = 5;
        },
        expect!["byte 0xe8: register 4 of 'main' is never written [TF0613]"],
    );
}

#[test]
fn use_counts_are_the_numbers_of_reads() {
    check_body(
        MAIN,
        |body| body.use_counts[1] = 1,
        expect!["byte 0xe8: register 1 of 'main' has a use count of 1, but 2 reads [TF0614]"],
    );
    check_body(
        MAIN,
        |body| body.use_counts[3] = 0,
        expect!["byte 0xe8: register 3 of 'main' has a use count of 0, but 1 reads [TF0614]"],
    );
    check_body(
        MAIN,
        |body| body.use_counts[3] = 2,
        expect!["byte 0xe8: register 3 of 'main' has a use count of 2, but 1 reads [TF0614]"],
    );
}

#[test]
fn users_are_the_readers() {
    // The list, an empty one, ends with the section.
    check_body(
        QUICK,
        |body| body.kernels[2].operands = vec![2],
        expect!["byte 0x1ac: register 1 of 'quick' has a use count of 1, but 0 reads [TF0614]"],
    );
    // It is read twice, and so from behind the section.
    check_body(
        QUICK,
        |body| {
            body.kernels[2].operands = vec![2, 2];
            body.kernels[2].wait_count = 2;
        },
        expect!["byte 0x1ac: register 1 of 'quick' has a use count of 1, but 0 reads [TF0614]"],
    );
    // Each of two registers lists the reader of the other.
    check_body(
        QUICK,
        |body| {
            body.kernels[0].users[1] = vec![2];
            body.kernels[1].users[0] = vec![1];
        },
        expect![
            "byte 0x1d4: register 0 of 'quick' does not list kernel 1 as a user as often as the kernel reads it [TF0616]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[1].users[0] = vec![2],
        expect![
            "byte 0x13c: register 1 of 'main' does not list kernel 2 as a user as often as the kernel reads it [TF0616]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[1].users[0] = vec![2, 3],
        expect![
            "byte 0x13c: register 1 of 'main' does not list kernel 2 as a user as often as the kernel reads it [TF0616]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[1].users[0] = vec![2, 2, 2],
        expect![
            "byte 0x13c: register 1 of 'main' does not list kernel 2 as a user as often as the kernel reads it [TF0616]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[1].users[0] = vec![2, 0],
        expect![
            "byte 0x140: kernel 0 is listed as a user in 'main', whose kernels are 1 to 3 [TF0616]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[1].users[0] = vec![2, 4],
        expect![
            "byte 0x140: kernel 4 is listed as a user in 'main', whose kernels are 1 to 3 [TF0616]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[3].users[0] = vec![3],
        expect![
            "byte 0x19c: register 3 of 'main' does not list kernel 3 as a user as often as the kernel reads it [TF0616]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].users[1] = vec![3],
        expect![
            "byte 0x114: register 0 of 'main' does not list kernel 2 as a user as often as the kernel reads it [TF0616]"
        ],
    );
}

#[test]
fn kernels_without_operands_are_started_once() {
    check_body(
        MAIN,
        |body| body.kernels[0].users[0] = vec![],
        expect![
            "byte 0x114: kernel 1 of 'main' has no operands, but the pseudo kernel does not start it [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].users[0] = vec![1, 1],
        expect![
            "byte 0x114: the pseudo kernel of 'main' starts kernel 1, which it has started [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].users[0] = vec![2],
        expect![
            "byte 0x110: the pseudo kernel of 'main' starts kernel 2, which has operands [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].users[0] = vec![2, 3],
        expect![
            "byte 0x110: the pseudo kernel of 'main' starts kernel 2, which has operands [TF0610]"
        ],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].users[0] = vec![9],
        expect![
            "byte 0x110: kernel 9 is listed as a user in 'main', whose kernels are 1 to 3 [TF0616]"
        ],
    );
}

#[test]
fn kernels_without_operands_are_started_in_any_order() {
    check(
        |writer| {
            let kernels = vec![
                kernel(0, &[], &[1]),
                kernel(0, &[], &[2]),
                kernel(1, &[1, 2], &[3]),
            ];
            let mut body = FunctionBody::new(4, 1, kernels, vec![3]);
            assert_eq!(body.kernels[0].users[0], [1, 2]);
            body.kernels[0].users[0].reverse();
            writer.functions[MAIN].body = Some(body.into());
        },
        expect!["accepted"],
    );
}

#[test]
fn cycles_are_refused() {
    let cycle = |kernels| {
        move |writer: &mut BefWriter| {
            let main = &mut writer.functions[MAIN];
            main.body = Some(FunctionBody::new(4, 1, kernels, vec![3]).into());
        }
    };
    let selfish = vec![
        kernel(0, &[], &[1]),
        kernel(1, &[2], &[2]),
        kernel(2, &[1], &[3]),
    ];
    check(
        cycle(selfish),
        expect![
            "byte 0x134: kernels of 'main' wait for each other in a cycle: 2 waits for 2 [TF0617]"
        ],
    );
    // Nobody reads anything else.
    let only_selfish = vec![
        kernel(0, &[1], &[1]),
        kernel(1, &[2], &[2]),
        kernel(2, &[3], &[3]),
    ];
    check(
        cycle(only_selfish),
        expect![
            "byte 0x10c: kernels of 'main' wait for each other in a cycle: 1 waits for 1 [TF0617]"
        ],
    );
    let pair = vec![
        kernel(0, &[3, 0], &[1]),
        kernel(1, &[1], &[2]),
        kernel(2, &[2], &[3]),
    ];
    check(
        cycle(pair),
        expect![
            "byte 0x114: kernels of 'main' wait for each other in a cycle: 1 waits for 3 waits for 2 waits for 1 [TF0617]"
        ],
    );
    let behind = vec![
        kernel(0, &[2], &[1]),
        kernel(1, &[3], &[2]),
        kernel(2, &[2], &[3]),
    ];
    check(
        cycle(behind),
        expect![
            "byte 0x130: kernels of 'main' wait for each other in a cycle: 2 waits for 3 waits for 2 [TF0617]"
        ],
    );
}

#[test]
fn long_cycles_are_named_in_part() {
    let n_kernels = 40;
    check(
        |writer| {
            let kernels: Vec<_> = (0..n_kernels)
                .map(|k| kernel(0, &[k], &[(k + 1) % n_kernels]))
                .collect();
            let body = FunctionBody::new(n_kernels, 0, kernels, vec![0]);
            writer.functions[REGION].body = Some(body.into());
        },
        expect![
            "byte 0x168: kernels of region function 0 wait for each other in a cycle: 1 waits for 40 waits for 39 waits for 38 waits for 37 waits for 36 waits for 35 waits for 34 waits for ... waits for 1 [TF0617]"
        ],
    );
}

#[test]
fn async_functions_need_no_textual_order() {
    check(
        |writer| {
            let kernels = vec![kernel(1, &[1], &[2]), kernel(0, &[0], &[1])];
            writer.functions[MAIN].body = Some(FunctionBody::new(3, 1, kernels, vec![2]).into());
        },
        expect!["accepted"],
    );
}

#[test]
fn sync_functions_have_rules_of_their_own() {
    let quick = |kernels: &[KernelEntry], results: &[u32]| {
        let body = FunctionBody::new(3, 1, kernels.to_vec(), results.to_vec());
        let n_results = results.len();
        move |writer: &mut BefWriter| {
            writer.functions[QUICK].results = vec![0; n_results];
            writer.functions[QUICK].body = Some(body.into());
        }
    };
    let ordered = [kernel(1, &[0], &[1]), kernel(1, &[1], &[2])];
    check(quick(&ordered, &[1, 2]), expect!["accepted"]);
    check(
        quick(&ordered, &[0]),
        expect![
            "byte 0x1ac: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Result cannot be an argument or another result): result 0 of 'quick' is register 0 [TF0619]"
        ],
    );
    check(
        quick(&ordered, &[2, 1, 2]),
        expect![
            "byte 0x1b4: invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Result cannot be an argument or another result): result 2 of 'quick' is register 2 [TF0619]"
        ],
    );
    let reversed = [kernel(1, &[1], &[2]), kernel(1, &[0], &[1])];
    check(
        quick(&reversed, &[2]),
        expect![
            "byte 0x1f4: kernel 1 of 'quick' reads register 1 before kernel 2 writes it [TF0618]"
        ],
    );
}

#[test]
fn regions_form_trees() {
    // Another kernel of the function holds the region, too.
    check_body(
        MAIN,
        |body| body.kernels[2].functions.push(REGION as u32),
        expect![
            "byte 0x198: kernel 3 of 'main' holds region function 0, which another kernel holds [TF0620]"
        ],
    );
    // The region holds itself.
    check(
        |writer| {
            writer.functions[MAIN]
                .body
                .as_mut()
                .unwrap()
                .as_lists_mut()
                .unwrap()
                .kernels[3]
                .functions
                .clear();
            let region = writer.functions[REGION]
                .body
                .as_mut()
                .unwrap()
                .as_lists_mut()
                .unwrap();
            region.kernels[1].functions.push(REGION as u32);
        },
        expect!["byte 0x7c: region function 0 holds itself [TF0620]"],
    );
    // No function has a name.
    check(
        |writer| {
            let mut holder = kernel(0, &[], &[0]);
            holder.functions = vec![REGION as u32];
            writer.functions.truncate(1);
            let body = FunctionBody::new(1, 0, vec![holder], vec![0]);
            writer.functions[REGION].body = Some(body.into());
        },
        expect!["byte 0x64: region function 0 holds itself [TF0620]"],
    );
    // Functions with names may call each other as they like.
    check_body(
        MAIN,
        |body| {
            body.kernels[2]
                .functions
                .extend([MAIN as u32, QUICK as u32, NATIVE as u32])
        },
        expect!["accepted"],
    );
}

#[test]
fn regions_nest_up_to_a_limit() {
    let nest = |depth: u32| {
        move |writer: &mut BefWriter| {
            let empty = writer.functions[REGION].name;
            let first = writer.functions.len() as u32;
            for level in 0..depth {
                let mut holder = kernel(0, &[], &[0]);
                if level > 0 {
                    holder.functions.push(first + level - 1);
                }
                writer.functions.push(FunctionEntry {
                    kind: FunctionKind::Async,
                    name: empty,
                    arguments: vec![],
                    results: vec![0],
                    body: Some(FunctionBody::new(1, 0, vec![holder], vec![0]).into()),
                });
            }
            let main = writer.functions[MAIN]
                .body
                .as_mut()
                .unwrap()
                .as_lists_mut()
                .unwrap();
            main.kernels[2].functions.push(first + depth - 1);
        }
    };
    check(nest(64), expect!["accepted"]);
    check(
        nest(65),
        expect!["byte 0x3f0: region function 4 lies in more than 64 regions [TF0620]"],
    );
}
