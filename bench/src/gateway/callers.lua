-- The requests of wrk, and its totals in one line.
--
--   wrk ... -s callers.lua URL -- same               one caller
--   wrk ... -s callers.lua URL -- random COUNT SEED  callers at random
--
-- Requests are joined here and not by wrk.format, which is many times slower.

local BEGIN = "GET /api/things?page=2 HTTP/1.1\r\nHost: api.example\r\nUser-Agent: wrk\r\nAccept: */*\r\nX-User: "
local END = "\r\n\r\n"

local order, count

function init(words)
   order, count = words[1], tonumber(words[2] or "1")
   math.randomseed(tonumber(words[3] or "0"))
end

function request()
   local caller = 0
   if order == "random" then
      caller = math.random(0, count - 1)
   end
   return BEGIN .. string.format("u%07d", caller) .. END
end

function done(summary)
   local errors = summary.errors
   io.write(string.format(
      "totals %d %d %d %d %d\n",
      summary.requests, summary.duration, summary.bytes, errors.status,
      errors.connect + errors.read + errors.write + errors.timeout
   ))
end
