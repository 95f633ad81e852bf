"""Records: the JSON document of one test, and each trial on disk as it ends.

While a test runs, `records/<id>.trials.jsonl` gets a line for each trial. Its first line is the record so far. When the
test ends, `records/<id>.json` replaces this file. `record.schema.json` in this folder is the schema of the record.
"""

from podperf.records.durations import earlier_durations
from podperf.records.reading import Record, read_record, record_files
from podperf.records.record import Outcome, TestRecord, record_id, sections_of, topology_digest
from podperf.records.schema import SCHEMA_VERSION, schema_errors
from podperf.records.writer import TRIALS_SUFFIX, NotWritten, RecordWriter, set_aside

__all__ = [
    "SCHEMA_VERSION",
    "TRIALS_SUFFIX",
    "NotWritten",
    "Outcome",
    "Record",
    "RecordWriter",
    "TestRecord",
    "earlier_durations",
    "read_record",
    "record_files",
    "record_id",
    "schema_errors",
    "sections_of",
    "set_aside",
    "topology_digest",
]
