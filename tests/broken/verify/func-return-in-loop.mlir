"my.loop"() ({
  func.return
}) : () -> ()
