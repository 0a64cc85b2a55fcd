"""What DuckDB and pyarrow see of exported days: one line of JSON.

Arguments: the folder of the export, and the document whose SQL questions are asked of it.
"""

import json
import os
import re
import sys

import duckdb
import pyarrow.compute as compute
import pyarrow.dataset as dataset

document = open(sys.argv[2], encoding="utf-8").read()
os.chdir(sys.argv[1])

METRICS = "read_parquet('metrics/**/*.parquet', hive_partitioning = true)"
CALLS = "read_parquet('calls/**/*.parquet', hive_partitioning = true)"
PROCESSES = "read_parquet('processes/**/*.parquet', hive_partitioning = true)"
EVENTS = "read_parquet('events/**/*.parquet', hive_partitioning = true)"


def rows(sql):
    return [list(row) for row in duckdb.sql(sql).fetchall()]


# Sums of each series and day: of what the daemon answers, number by number.
series = rows(
    f"""SELECT host, name, CAST(labels AS VARCHAR), CAST(date AS VARCHAR), count(*), sum(count), min(min), max(max),
               sum(sum), arg_max(last, time), sum(increase), CAST(min(epoch_us(time)) AS BIGINT), min(step_seconds)
        FROM {METRICS} WHERE domain = 'trial' GROUP BY ALL ORDER BY ALL"""
)
calls = rows(
    f"""SELECT id, product, job, name, "user", epoch_us(submitted), epoch_us(started), epoch_us(ended), outcome,
               exit_code, hosts, tries, events, CAST(date AS VARCHAR)
        FROM {CALLS} WHERE domain = 'trial' ORDER BY ended, id"""
)
events = rows(
    f"""SELECT id, kind, epoch_us(time), epoch_us(seen), call, job, "user", "from", "to", outcome, epoch_us(submitted),
               epoch_us(started), epoch_us(ended), attributes, host, file, filter, "offset", CAST(date AS VARCHAR)
        FROM {EVENTS} WHERE domain = 'trial' ORDER BY id"""
)
processes = rows(
    f"""SELECT host, pid, name, job, CAST(date AS VARCHAR), sum(cpu_seconds), sum(minutes), max(rss_max_bytes),
               sum(read_bytes), max(signal) FROM {PROCESSES} WHERE domain = 'trial' GROUP BY ALL ORDER BY ALL"""
)
questions = [len(rows(sql)) for sql in re.findall(r"```sql\n(.*?)```", document, re.DOTALL)]

table = dataset.dataset("metrics", partitioning="hive")
load = table.to_table(filter=compute.field("name") == "node_load1", columns=["sum", "count", "date"])
arrow = {
    "rows": table.count_rows(),
    "load": compute.sum(load["sum"]).as_py() / compute.sum(load["count"]).as_py(),
    "days": sorted({str(date) for date in load["date"].to_pylist()}),
}
print(json.dumps({"series": series, "calls": calls, "events": events, "processes": processes, "questions": questions, "arrow": arrow}))
