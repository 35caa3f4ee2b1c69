//! A walk over everything behind the gate.

use tfrt_bef::{
    AttributeOffset, AttributeView, BefFile, KernelIndex, RegisterIndex, dump, listing,
};

/// Reads everything that a file has, in every way that there is.
///
/// # Panics
///
/// If a view does, or if what views say does not fit together.
pub fn read_all(file: &BefFile) {
    for function in file.functions() {
        assert_eq!(function.name(), file.function(function.index()).name());
        for ty in function.argument_types().chain(function.result_types()) {
            file.type_name(ty);
        }
        let Some(body) = function.body() else {
            continue;
        };
        file.location(body.location());
        for register in (0..body.n_registers() as u32).map(RegisterIndex) {
            body.register_type(register);
            body.use_count(register);
        }
        let mut edges = body.result_registers().len();
        edges += (0..body.n_arguments())
            .map(|i| body.argument_users(i).len())
            .sum::<usize>();
        let mut operands = 0;
        for kernel in body.kernels() {
            assert!(!kernel.name().contains('\0'));
            file.location(kernel.location());
            file.debug_name(kernel.location());
            operands += kernel.operands().len();
            edges += (0..kernel.results().len())
                .map(|i| kernel.users(i).len())
                .sum::<usize>();
            for (position, offset) in kernel.attributes().iter().enumerate() {
                kernel.attribute_name(position);
                read_attribute(file.attribute(AttributeOffset(*offset)), 0);
            }
            file.nonstrict(function.index(), kernel.index());
        }
        assert_eq!(edges, operands + body.result_registers().len());
        assert_eq!(body.use_counts().iter().sum::<u32>() as usize, edges);
        file.nonstrict(function.index(), KernelIndex(u32::MAX));
    }
    for (offset, kind) in file.attribute_types() {
        assert_eq!(file.attribute_type(offset), Some(kind));
        read_attribute(file.attribute(offset), 0);
    }
    dump(file);
    pieces(file);
}

/// Reads an attribute as everything that it may be.
///
/// # Panics
///
/// If a reader does, or if aggregates nest deeper than the gate lets them.
pub fn read_attribute(attribute: AttributeView<'_>, depth: usize) {
    attribute.as_bool();
    attribute.as_i8();
    attribute.as_i16();
    attribute.as_i32();
    attribute.as_i64();
    attribute.as_f32();
    attribute.as_f64();
    attribute.as_f16_bits();
    attribute.as_dtype();
    attribute.as_str();
    attribute.as_bytes();
    attribute.dtypes();
    attribute.array::<u8>();
    attribute.array::<u16>();
    attribute.array::<i32>();
    attribute.array::<f64>();
    attribute.array::<[f64; 2]>();
    attribute.shape();
    attribute.dense();
    attribute.symbol();
    assert!(depth <= 64);
    if let Some(aggregate) = attribute.aggregate() {
        for (_, element) in aggregate.iter() {
            read_attribute(element, depth + 1);
        }
    }
}

/// Checks that the pieces of a file follow one another from its first byte to its last.
fn pieces(file: &BefFile) {
    let mut end = 0;
    listing::list(file, &mut |piece| {
        assert_eq!(piece.start, end, "{piece:?}");
        assert!(piece.start < piece.end, "{piece:?}");
        end = piece.end;
    });
    assert_eq!(end, file.buffer().as_bytes().len());
}
