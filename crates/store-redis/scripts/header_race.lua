-- The time of a decision in the race proof: Redis' own, and every decision is written down in the order
-- in which it was made, by the name that its argument gives it. The line before this file sets `spare`.
local call, format, match, floor = redis.call, string.format, string.match, math.floor
local unpack_struct, pack_struct = struct.unpack, struct.pack
local time = call('TIME')
local now, shift = time[1] * 1000000 + time[2], 0
for i = #ARGV - spare + 1, #ARGV do call('RPUSH', 'race', ARGV[i]) end
