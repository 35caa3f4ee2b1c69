//! Runs the examples in Rust, so that they stay true.

#[path = "../custom_allocator.rs"]
mod custom_allocator;
#[path = "../custom_handler.rs"]
mod custom_handler;
#[path = "../custom_queue.rs"]
mod custom_queue;

#[test]
fn custom_queue_keeps_the_contract_and_runs_programs() {
    custom_queue::main();
}

#[test]
fn custom_allocator_is_used_and_gets_everything_back() {
    custom_allocator::main();
}

#[test]
fn custom_handler_keeps_the_contract_and_sees_every_call() {
    custom_handler::main();
}
