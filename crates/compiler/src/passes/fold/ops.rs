//! Folds executions of the core runtime's operations that are constants with any handler.

use tfrt_ir::{Attribute, Module, OpId, OpState};

/// Makes a constant of an execution of `tf.Const`, whose result is its attribute `value`.
///
/// An attribute `dtype` that says otherwise stays for the op to complain about.
pub(super) fn constant(module: &mut Module, op: OpId) -> Option<OpId> {
    let data = module.op(op);
    let is_execution = matches!(
        data.name().as_str(),
        "corert.executeop" | "corert_sync.executeop"
    );
    if !is_execution || data.attribute("op_name")?.as_str() != Some("tf.Const") {
        return None;
    }
    let (&[_], &[result]) = (data.operands(), data.results()) else {
        return None;
    };
    let value = attribute(module, op, "value")?;
    let Attribute::Dense(dense) = value else {
        return None;
    };
    let dtype = attribute(module, op, "dtype");
    if dtype.is_some_and(|dtype| dtype.as_type() != Some(dense.element_type())) {
        return None;
    }
    let name = match data.name().as_str() {
        "corert.executeop" => "corert.const_dense_tensor",
        _ => "corert_sync.const_dense_tensor",
    };
    let state = OpState::new(name)
        .attribute("value", value.clone())
        .result(module.value_type(result).clone())
        .location(data.location().clone());
    Some(module.create(state))
}

/// Returns an attribute of the operation that is executed.
fn attribute<'m>(module: &'m Module, op: OpId, name: &str) -> Option<&'m Attribute> {
    let pairs = module.op(op).attribute("op_attrs")?.as_array()?;
    let mut pairs = pairs.iter().filter_map(Attribute::as_array);
    pairs.find_map(|pair| match pair {
        [key, value] if key.as_str() == Some(name) => Some(value),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::passes::testing::check;

    #[test]
    fn constants_need_no_handler() {
        check(
            "canonicalize",
            r#"func.func @f(%h: !corert.ophandler) -> (!corert.tensorhandle, !corert.tensorhandle) {
                 %a = corert.executeop(%h) "tf.Const"() {dtype = i32, value = dense<[1, 2]> : tensor<2xi32>} : 1
                 %b = corert.executeop(%h) "tf.Const"() {dtype = f32, value = dense<1> : tensor<i32>} : 1
                 %c = corert.executeop(%h) "tf.Const"() {dtype = f32} : 1
                 tfrt.return %a, %b : !corert.tensorhandle, !corert.tensorhandle
               }"#,
            expect![[r#"
                func.func @f(%arg0: !corert.ophandler) -> (!corert.tensorhandle, !corert.tensorhandle) {
                  %0 = corert.const_dense_tensor dense<[1, 2]> : tensor<2xi32>
                  %1 = corert.executeop(%arg0) "tf.Const"() {dtype = f32, value = dense<1> : tensor<i32>} : 1
                  tfrt.return %0, %1 : !corert.tensorhandle, !corert.tensorhandle
                }
            "#]],
        );
    }

    #[test]
    fn ops_without_side_effects_are_merged_and_removed() {
        check(
            "cse,dce",
            r#"func.func @f(%h: !corert.ophandler, %c: !tfrt.chain, %x: !corert.tensorhandle) -> !corert.tensorhandle {
                 %a = corert.executeop(%h) "tf.Add"(%x, %x) {k = 1 : i32} : 1
                 %b = corert.executeop(%h) "tf.Add"(%x, %x) {k = 1 : i32} : 1
                 %d = corert.executeop(%h) "tf.Add"(%x, %x) {k = 2 : i32} : 1
                 %c1 = corert.executeop.seq(%h, %c) "tf.Print"(%b)
                 %c2 = corert.executeop.seq(%h, %c) "tf.Print"(%b)
                 tfrt.return %b : !corert.tensorhandle
               }"#,
            expect![[r#"
                func.func @f(%arg0: !corert.ophandler, %arg1: !tfrt.chain, %arg2: !corert.tensorhandle) -> !corert.tensorhandle {
                  %0 = corert.executeop(%arg0) "tf.Add"(%arg2, %arg2) {k = 1 : i32} : 1
                  %1 = corert.executeop.seq(%arg0, %arg1) "tf.Print"(%0)
                  %2 = corert.executeop.seq(%arg0, %arg1) "tf.Print"(%0)
                  tfrt.return %0 : !corert.tensorhandle
                }
            "#]],
        );
    }
}
