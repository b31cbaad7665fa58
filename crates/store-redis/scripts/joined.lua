-- Decides on several counters of one algorithm, each by itself.
--
-- KEYS: the counters; one may be there twice. ARGV: for each its numbers, then for each what the header takes.
-- Reply: for each what the script for one replies. What goes wrong with one is an error in its place.
local replies = {}
for i = 1, #KEYS do
  local is_decided, reply = pcall(decide, KEYS[i], ARGV[i])
  -- What Redis throws is an error reply; what `error` throws is not yet.
  if not is_decided and type(reply) ~= 'table' then reply = {err = 'ERR ' .. reply} end
  replies[i] = reply
end
return replies
