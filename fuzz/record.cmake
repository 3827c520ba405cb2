# What the recorder reads from others: the command line's events, and the texts of /proc.
tacho_fuzz(tacho_record fuzz_event_spec fuzz_proc_texts)
