"""Records: the JSON document of one test, and each trial on disk as it ends."""

from podperf.records.record import (
    SCHEMA_VERSION,
    TRIALS_SUFFIX,
    Outcome,
    RecordWriter,
    TestRecord,
    noise_from_json,
    noise_to_json,
    plain,
    record_id,
    schema_errors,
    sections_of,
    traffic_from_json,
    traffic_to_json,
    trial_from_json,
    trial_to_json,
)

__all__ = [
    "SCHEMA_VERSION",
    "TRIALS_SUFFIX",
    "Outcome",
    "RecordWriter",
    "TestRecord",
    "noise_from_json",
    "noise_to_json",
    "plain",
    "record_id",
    "schema_errors",
    "sections_of",
    "traffic_from_json",
    "traffic_to_json",
    "trial_from_json",
    "trial_to_json",
]
