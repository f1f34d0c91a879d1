@py -3 "%~dp0rlt" %*
