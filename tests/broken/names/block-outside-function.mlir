"cf.br"()[^next] : () -> ()
