// Locations of every form.

func.func @main() {
  "my.a"() : () -> () loc("a.py":3:7)
  "my.b"() : () -> () loc("name")
  "my.c"() : () -> () loc("name"("a.py":3:7))
  "my.d"() : () -> () loc(callsite("callee" at "b.py":1:2))
  "my.e"() : () -> () loc(fused["first", "a.py":4:5])
  "my.f"() : () -> () loc(unknown)
  "my.g"() {bef.nonstrict} : () -> ()
  tfrt.return
}
