"""Records: the JSON document of one test, and each trial on disk as it ends.

While a test runs, `records/<id>.trials.jsonl` gets a line for each trial. Its first line is the record so far. When the
test ends, `records/<id>.json` replaces this file. `record.schema.json` in this folder is the schema of the record.
"""

from podperf.records.durations import earlier_durations
from podperf.records.reading import read_record, read_records, record_files
from podperf.records.record import Figures, Outcome, TestRecord, record_id, sections_of, topology_digest
from podperf.records.recorded import (
    KINDS,
    TRIALS_SUFFIX,
    Counts,
    Data,
    Figure,
    Record,
    RecordedTrial,
    badly_delivered,
    counts_by_phase,
    trials_of,
)
from podperf.records.schema import SCHEMA_VERSION, schema_errors
from podperf.records.writer import NotWritten, RecordWriter, set_aside

__all__ = [
    "KINDS",
    "SCHEMA_VERSION",
    "TRIALS_SUFFIX",
    "Counts",
    "Data",
    "Figure",
    "Figures",
    "NotWritten",
    "Outcome",
    "Record",
    "RecordWriter",
    "RecordedTrial",
    "TestRecord",
    "badly_delivered",
    "counts_by_phase",
    "earlier_durations",
    "read_record",
    "read_records",
    "record_files",
    "record_id",
    "schema_errors",
    "sections_of",
    "set_aside",
    "topology_digest",
    "trials_of",
]
