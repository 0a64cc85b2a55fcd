#!/usr/bin/env python3
"""A Prometheus configuration that scrapes each made-up host of made-up-hosts.py once a second.

prometheus-config.py PORT HOSTS
"""

import sys

port, hosts = sys.argv[1], int(sys.argv[2])
print("global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n  - job_name: bench\n    static_configs:")
for nth in range(hosts):
    print(f"      - {{ targets: ['127.0.0.1:{port}'], labels: {{ __metrics_path__: '/metrics/{nth}', host: 'm{nth:04}' }} }}")
