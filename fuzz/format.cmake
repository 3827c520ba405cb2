# Parsers of format: whole captures (header, events, sections, records, samples), each on its own where the whole would
# seldom reach it.
tacho_fuzz(tacho_format
  fuzz_capture fuzz_header_noise fuzz_features fuzz_records fuzz_inflate fuzz_tracing_data fuzz_payload_schema fuzz_attachments
  fuzz_build_id)
