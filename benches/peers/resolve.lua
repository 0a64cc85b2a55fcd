-- wrk: where one made-up domain after another is; what it measured as one line of words.
--
-- DOMAINS comes from the environment.

local domains, at = tonumber(os.getenv("DOMAINS")), 0

request = function()
    at = (at + 7919) % domains
    return wrk.format("GET", string.format("/api/v1/directory.resolve?domain=SITE-%05d", at))
end

done = function(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        "figures %d %d %d %d %d %d %d\n",
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
        errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
