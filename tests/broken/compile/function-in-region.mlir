func.func @main() {
  "my.holder"() ({
    func.func @inner() {
      tfrt.return
    }
    tfrt.return
  }) : () -> ()
  tfrt.return
}
