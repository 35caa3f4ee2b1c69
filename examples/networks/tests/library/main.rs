//! Networks beside plain calculations, in one program of tests.

mod adam;
mod digits;
mod mnist;
mod parallel;
mod resnet;
