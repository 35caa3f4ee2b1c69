//! What a file looks like to people.

use expect_test::expect;
use tfrt_bef::{BefBuffer, BefFile, dump};

#[test]
fn arguments_and_attributes_are_shown() {
    let buffer = BefBuffer::copy_from(include_bytes!("golden/arguments.bef"));
    expect![[r#"
        section 0 Strings: byte 0x5, 53 bytes
        section 1 Attributes: byte 0x40, 16 bytes
        section 2 Kernels: byte 0x52, 3 bytes
        section 3 Types: byte 0x57, 4 bytes
        section 4 FunctionIndex: byte 0x5d, 10 bytes
        section 5 Functions: byte 0x6c, 172 bytes
        section 6 LocationStrings: byte 0x11a, 7 bytes
        section 7 Locations: byte 0x123, 12 bytes
        section 8 AttributeTypes: byte 0x131, 5 bytes
        section 9 AttributeNames: byte 0x138, 4 bytes
        section 10 RegisterTypes: byte 0x13e, 6 bytes
        kernel 0: tfrt.add.i32
        kernel 1: tfrt_test.k
        type 0: i32
        type 1: f64
        type 2: !tfrt.chain
        attribute 0: str "hi"
        attribute 8: f64 2.0
        function 0 'g': async (!tfrt.chain, i32) -> (i32, i32)
          stream 0 at g.mlir:1:1
          register r0: used 0 !tfrt.chain
          register r1: used 3 i32
          register r2: used 1 i32
          register r3: used 2 i32
          k0 entry: starts []
             argument r0: users []
             argument r1: users [2, 1, 1]
          k1 0 tfrt.add.i32(r1, r1) stream 0 at g.mlir:2:8
             result r2: users [2]
          k2 1 tfrt_test.k(r2, r1) stream 0 at g.mlir:3:8
             attribute tag at 0: "hi"
             attribute w at 8: 2.0
             result r3: users []
          returns (r3, r3)
    "#]]
    .assert_eq(&dump(&BefFile::open(buffer).unwrap()));
}
