-- Gives back to one counter what was charged before.
--
-- KEYS: the counter. ARGV: the numbers `a` of its algorithm, of which the cost is what is given back; and
-- since when the limit is exceeded then, in microseconds: -1 not at all, -2 as it is.
local a = {unpack_struct(NUMBERS, ARGV[1])}
local c = {key = KEYS[1]}
open(c, a)
local over = unpack_struct('<d', ARGV[2])
if over > -2 then c.over = over >= 0 and over or nil end
if c.found then refund(c, a) end
return time[1] .. '.' .. time[2]
