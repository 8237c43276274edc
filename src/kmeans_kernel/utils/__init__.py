"""What every outer folder needs: checks of arguments, threads, files that appear whole."""
