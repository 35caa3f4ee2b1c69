"func.func"() ({
^entry(%a: i64):
  "tfrt.return"() : () -> ()
}) {sym_name = "main", function_type = (i32) -> ()} : () -> ()
