"my.use"(%a) : (i32) -> ()
%a = "my.make"() : () -> i64
