//! The operations that come with this crate.

use std::sync::{Arc, OnceLock};

use crate::definition::OpRegistry;

mod arithmetic;
mod axes;
mod convolution;
mod elements;
mod integers;
mod movement;
mod norm;
mod pool;
mod product;
mod range;
mod reduction;
mod shapes;
mod softmax;
mod strings;
mod testing;
mod training;
mod windows;

/// The operations, made when first asked for.
pub fn registry() -> Arc<OpRegistry> {
    static REGISTRY: OnceLock<Arc<OpRegistry>> = OnceLock::new();
    let make = || {
        let mut registry = OpRegistry::new();
        arithmetic::register(&mut registry);
        convolution::register(&mut registry);
        movement::register(&mut registry);
        norm::register(&mut registry);
        pool::register(&mut registry);
        range::register(&mut registry);
        reduction::register(&mut registry);
        shapes::register(&mut registry);
        axes::register(&mut registry);
        product::register(&mut registry);
        softmax::register(&mut registry);
        testing::register(&mut registry);
        training::register(&mut registry);
        Arc::new(registry)
    };
    REGISTRY.get_or_init(make).clone()
}
