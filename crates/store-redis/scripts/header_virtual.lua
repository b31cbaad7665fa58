-- The time of a decision in tests: the last argument, in microseconds.
local call, format, match, floor = redis.call, string.format, string.match, math.floor
local unpack_struct, pack_struct = struct.unpack, struct.pack
local now, shift, spare = tonumber(ARGV[#ARGV]), 1000000000000000, 1
local told = format('%d.%d', floor(now / 1000000), now % 1000000)
