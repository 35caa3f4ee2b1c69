func.func @main() {
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
"my.region"() ({
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}) : () -> ()
tfrt.return
}
