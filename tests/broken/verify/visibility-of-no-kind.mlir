"func.func"() ({
^bb0:
  "tfrt.return"() : () -> ()
}) {sym_name = "f", function_type = () -> (), sym_visibility = "secret"} : () -> ()
