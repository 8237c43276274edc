"""One file per figure or table: config, run, results, picture."""
