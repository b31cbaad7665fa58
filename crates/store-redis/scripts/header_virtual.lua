-- The time of a decision in tests: the last argument, in microseconds. The line before this file sets `spare`.
local call, format, match, floor = redis.call, string.format, string.match, math.floor
local unpack_struct, pack_struct = struct.unpack, struct.pack
local now, shift = tonumber(ARGV[#ARGV]), 1000000000000000
local time = {format('%d', floor(now / 1000000)), format('%d', now % 1000000)}
for i = #ARGV - spare + 1, #ARGV do
  if ARGV[i] ~= ARGV[#ARGV] then error('decisions of two times are one call', 0) end
end
