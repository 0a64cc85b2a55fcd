-- wrk: one XML-RPC call over and over; what it measured as one line of words.
--
-- METHOD and BODY come from the environment.

wrk.method = "POST"
wrk.path = "/RPC2"
wrk.headers["Content-Type"] = "text/xml"
wrk.body = os.getenv("BODY")

done = function(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        "figures %d %d %d %d %d %d %d\n",
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
        errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
