-- The requests, as complete as they go over the wire, are in the first argument's file, separated by NUL bytes. The
-- second argument is the index to start at.
local requests, next = {}, 0

init = function(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  for request in file:read("*a"):gmatch("%Z+") do
    requests[#requests + 1] = request
  end
  file:close()
  next = tonumber(arguments[2])
end

request = function()
  next = next % #requests + 1
  return requests[next]
end

done = function(summary, latency)
  local errors = summary.errors
  print(string.format("measured requests=%d micros=%d p50=%d p99=%d refused=%d failed=%d", summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
