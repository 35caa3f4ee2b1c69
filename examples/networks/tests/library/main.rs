//! Networks beside plain calculations, in one program of tests.

mod digits;
mod mnist;
mod resnet;
