"func.func"() ({
  tfrt.return
}) {sym_name = "", function_type = () -> ()} : () -> ()
