-- Stores a version of the rules and tells everybody, unless somebody was faster or it is there already.
--
-- KEYS[1]  the newest version: "<number> <digest>"
-- KEYS[2]  the history: number -> "<at> <digest> <bytes> <about>", <at> in milliseconds since 1970
-- KEYS[3]  the bodies: number -> bytes
-- ARGV[1]  digest of the body, in hex
-- ARGV[2]  its bytes
-- ARGV[3]  what is to be said about it
-- ARGV[4]  the body
-- ARGV[5]  the number that must be the newest (0: there is none), or "" for any
-- ARGV[6]  how many versions are kept
-- ARGV[7]  the channel on which it is told
--
-- Returns {word, number, before}: "pushed" with the version's own number and that of its predecessor (0 if
-- there is none), "same" with the number of the newest, which has this body, or "overtaken" with the number of
-- the newest, which is another than expected.

-- Numbers that somebody wrote by hand count only where they are exact in a double.
local function number_of(text)
  return #text <= 15 and string.match(text, '^%d+$') and tonumber(text) or nil
end

-- A key that no push has written names no version, exactly as `Head::read` has it.
local newest, digest = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%x+)$')
newest = newest and #digest == 64 and number_of(newest) or 0

if ARGV[5] ~= '' and tonumber(ARGV[5]) ~= newest then
  return {'overtaken', newest, 0}
end
if digest == ARGV[1] and redis.call('HEXISTS', KEYS[3], newest) == 1 then
  return {'same', newest, 0}
end

-- No number is given twice, also if the newest was lost.
local known, number = redis.call('HKEYS', KEYS[2]), newest
for _, field in ipairs(known) do
  number = math.max(number, number_of(field) or 0)
end
number = number + 1

local time = redis.call('TIME')
local at = time[1] * 1000 + math.floor(time[2] / 1000)
local field = string.format('%.0f', number)
local line = string.format('%.0f %s %s ', at, ARGV[1], ARGV[2]) .. ARGV[3]
redis.call('HSET', KEYS[3], field, ARGV[4])
redis.call('HSET', KEYS[2], field, line)
redis.call('SET', KEYS[1], field .. ' ' .. ARGV[1])

for _, old in ipairs(known) do
  local old_number = number_of(old)
  if old_number and old_number <= number - tonumber(ARGV[6]) then
    redis.call('HDEL', KEYS[2], old)
    redis.call('HDEL', KEYS[3], old)
  end
end

-- Who may not publish has pushed all the same: everybody looks for new versions, too.
redis.pcall('PUBLISH', ARGV[7], field)
return {'pushed', number, newest}
