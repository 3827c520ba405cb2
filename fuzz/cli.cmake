# Conditions that are typed on the command line.
tacho_fuzz(tacho_cli fuzz_expression)
