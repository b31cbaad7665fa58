-- The time of a decision in the race proof: Redis' own, and every decision is written down in the order
-- in which it was made, by the name that the last argument gives it.
local call, format, match, floor = redis.call, string.format, string.match, math.floor
local unpack_struct, pack_struct = struct.unpack, struct.pack
local time = call('TIME')
local now, told, shift = time[1] * 1000000 + time[2], time[1] .. '.' .. time[2], 0
local spare = 1
call('RPUSH', 'race', ARGV[#ARGV])
