!n = i32
!n = i64
