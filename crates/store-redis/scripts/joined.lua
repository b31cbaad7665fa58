-- Decides on several counters of one algorithm, each by itself.
--
-- KEYS: the counters; one may be there twice. ARGV: for each its numbers, then for each what the header takes.
-- Reply: for each what the script for one replies. What goes wrong with one is an error in its place.
local replies = {}
for i = 1, #KEYS do
  local is_decided, reply = pcall(decide, KEYS[i], ARGV[i])
  if not is_decided then
    -- What Redis says begins with a word in capitals, by which it is known. What else goes wrong does not.
    local text = type(reply) == 'table' and reply.err or reply
    reply = {err = match(text, '^%u+ ') and text or 'ERR ' .. text}
  end
  replies[i] = reply
end
return replies
