func.func @main(%c: i1) {
  "cf.cond_br"(%c)[^yes, ^no] : (i1) -> ()
^yes:
  tfrt.return
^no:
  tfrt.return
}
