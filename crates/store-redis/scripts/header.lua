-- The time of a decision: Redis' own.
--
-- Every script is this header, what it shares with others, and its driver. Those read:
--   now    microseconds since the epoch
--   time   the same as two strings: seconds and microseconds (not padded), with a point between them in replies
--   shift  milliseconds to add to every expiry; tests in virtual time keep their keys with it
--   spare  how many of the last arguments are the header's own; set by the line before this file
local call, format, match, floor = redis.call, string.format, string.match, math.floor
local unpack_struct, pack_struct = struct.unpack, struct.pack
local time = call('TIME')
local now, shift = time[1] * 1000000 + time[2], 0
