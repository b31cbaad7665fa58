-- Decides on one limit and charges it.
--
-- Reads `key`, the counter, and `numbers`, the numbers `a` of its algorithm, as doubles.
-- Returns `1` if it admits, else `0`; then the time, a space, and the state as it was found.
local a = {unpack_struct(NUMBERS, numbers)}
local c = {key = key}
open(c, a)
local fits = weigh(c, a)
local found = c.found and (tell and tell(c, a, true) or c.found) or ''
write(c, a, true)
return (fits and '1' or '0') .. time[1] .. '.' .. time[2] .. ' ' .. found
