//! Checks of single operations.

use crate::{diagnostic::Diagnostics, module::OpId, verifier::VerifyContext};

pub(super) fn module(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn function(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn call(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn func_return(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn cond(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn parallel_call(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn tfrt_return(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn if_(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn repeat(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn parallel_for(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn do_async(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn benchmark(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn sync_benchmark(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
pub(super) fn test_cost(_: &VerifyContext<'_>, _: OpId, _: &mut Diagnostics) {}
