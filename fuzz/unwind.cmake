# Call frame information of mapped files, which the recorder makes tables of.
tacho_fuzz(tacho_unwind fuzz_row_table)
