-- Lists some of the counters of one server.
--
-- ARGV: where to go on, what the keys look like, about how many to look at.
-- Reply: the time, where the next page begins, and for each counter its key, when it ends in milliseconds,
-- and 1 if its last answer was a refusal.
local page = call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local reply = {time[1] .. '.' .. time[2], page[1]}
for _, key in ipairs(page[2]) do
  local ends = call('PEXPIRETIME', key) - shift
  if ends * 1000 > now then
    local kind, said, refused = string.sub(key, 32, 32), nil, nil
    if kind == 'w' then
      said, refused = redis.pcall('HEXISTS', key, 'r'), 1
    elseif kind == 'g' then
      said, refused = redis.pcall('GETRANGE', key, 20, 20), '\1'
    else
      said, refused = redis.pcall('GETRANGE', key, 0, 0), '-'
    end
    -- An error is a table: whoever writes keys of other types under our prefix is not listed.
    if type(said) ~= 'table' then
      local n = #reply
      reply[n + 1], reply[n + 2], reply[n + 3] = key, format('%d', ends), said == refused and 1 or 0
    end
  end
end
return reply
