"""What Python sees at a proxy: urllib's handler of HTTP Digest, and the package requests.

Usage: proxy.py URL CERTIFICATE NAME SECRET; prints one line of JSON.
"""

import json
import ssl
import sys
import urllib.request

import requests

url, certificate, name, secret = sys.argv[1:]


def hosts(answer):
    return answer["hosts"][0]["host"]


# urllib answers the first challenge only, and knows MD5 alone: the path /md5 offers that.
passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
passwords.add_password("visperf", url, name, secret)
context = ssl.create_default_context(cafile=certificate)
opener = urllib.request.build_opener(
    urllib.request.HTTPSHandler(context=context),
    urllib.request.HTTPDigestAuthHandler(passwords),
)
place = url + "/md5/d/UT-ICL/api/v1/"
twice = [hosts(json.load(opener.open(place + "domain.hosts"))) for _ in range(2)]
posted = urllib.request.Request(place + "domain.hosts", data=b"{}", headers={"Content-Type": "application/json"})

# requests takes the last challenge.
digest = requests.auth.HTTPDigestAuth(name, secret)
answer = requests.get(url + "/d/UT-ICL/api/v1/domain.hosts", auth=digest, verify=certificate, timeout=20)

print(json.dumps({
    "urllib": twice,
    "post": opener.open(posted).status == 200,
    "requests": hosts(answer.json()),
}))
