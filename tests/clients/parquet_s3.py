"""How many rows pyarrow finds in a bucket: one line of JSON.

Arguments: the endpoint (HOST:PORT) and the folder (BUCKET/PREFIX) of the export; keys from the environment.
"""

import json
import sys

import pyarrow.dataset as dataset
from pyarrow import fs

store = fs.S3FileSystem(endpoint_override=sys.argv[1], scheme="http", region="garage")
rows = {
    table: dataset.dataset(f"{sys.argv[2]}/{table}", filesystem=store, partitioning="hive").count_rows()
    for table in ("metrics", "calls", "events")
}
print(json.dumps(rows))
