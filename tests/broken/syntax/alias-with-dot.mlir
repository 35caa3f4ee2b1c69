!my.number = i32
